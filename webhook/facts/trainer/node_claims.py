"""The device claims that the node of a TrainJob is meant to have, resolved."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from webhook.attributes import JSON
from webhook.facts.dra.pod_claims import PodClaim, claims_of
from webhook.facts.dra.selected_requests import selected
from webhook.facts.pods.containers import containers
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.nodes import name_of
from webhook.facts.train_job_pods.releases import KEEPS_CLAIMS
from webhook.facts.train_job_pods.train_job import TrainJob, train_job
from webhook.paths import get
from webhook.workloads.podsets import PodSet

_POD = ("template", "spec", "template")


class NodeClaim(NamedTuple):
    """A claim. devices is None where their number is open; is_other says that all are known to be no GPUs.

    The installed release drops one that `is_dropped`, which shows all the same what the nodes are meant to have. One
    that `is_unused` is allocated for the pod, and no container of it refers to it.
    """

    name: str
    kind: str
    reference: str
    found: bool
    devices: int | None
    at_least: int
    is_gpu: bool
    is_other: bool
    is_dropped: bool = False
    is_unused: bool = False


def node_claims(subject: Subject) -> tuple[NodeClaim, ...]:
    """The claims, to be asked for with `Subject.once`.

    Those that the container `node` refers to, and those that it would but for resourcesPerNode; where there are none,
    those that no container refers to, and those of patches that the release drops. What the claims are missing is not
    said here: `found` and `devices` tell.
    """
    job = subject.once(train_job)
    if not job.object:
        return ()
    podset = _template(job)
    declared = {name_of(claim) for claim in get(podset.template, ("spec", "resourceClaims"), [])}
    dropped = [each for each in _dropped(job, subject.object) if name_of(each) not in declared]
    extra = _claims((*_unmerged(job), *dropped), "trainer")
    node = next((each for each in containers(podset.template) if each.name == "node" and not each.init), None)
    wanted: dict[str, set[str]] = {name: {""} for name in job.merged.lost_claims}
    for entry in node.claims() if node else ():
        wanted.setdefault(name_of(entry), set()).add(entry.get("request") or "")
    claims = claims_of((podset, extra), subject.view()).claims
    used = [claim for claim in claims if claim.name in wanted]
    meant = used or [claim for claim in claims if not claim.users]
    is_unused = not used and node is not None
    names = {*map(name_of, dropped)}
    return tuple(_claim(claim, wanted.get(claim.name, ()), dropped=names, is_unused=is_unused) for claim in meant)


def _claims(claims: Sequence[JSON], at: str) -> PodSet:
    return PodSet(name="", path=("spec", at), template={"spec": {"resourceClaims": [*claims]}})


def _template(job: TrainJob) -> PodSet:
    """The template of the node, without the runtime the claims that the TrainJob carries."""
    node = job.node_job
    if node is None:
        return _claims([*_of_patches(job.object)], "runtimePatches")
    return PodSet(name=name_of(node), path=(), template=get(node, _POD) or {})


def _unmerged(job: TrainJob) -> Sequence[JSON]:
    """Claims that the TrainJob asks for and that are not merged into the template of the node."""
    is_merged = job.node_job is not None and job.release >= KEEPS_CLAIMS
    claims: Sequence[JSON] = [] if is_merged else job.trainer.get("resourceClaimsPerNode", [])
    return claims


def _dropped(job: TrainJob, written: JSON) -> Iterator[JSON]:
    """Claims that patches carry and that the API server drops."""
    if job.release < KEEPS_CLAIMS:
        yield from _of_patches(written)
        yield from get(written, ("spec", "trainer", "resourceClaimsPerNode"), [])


def _of_patches(job: JSON) -> Iterator[JSON]:
    """The claims of patches; of one name the last, as merging would have it."""
    claims: dict[str, JSON] = {}
    for patch in get(job, ("spec", "runtimePatches"), []):
        for each in get(patch, ("trainingRuntimeSpec", "template", "spec", "replicatedJobs"), []):
            for claim in get(each, (*_POD, "spec", "resourceClaims"), []):
                claims[name_of(claim)] = claim
    yield from claims.values()


def _claim(claim: PodClaim, requests: Collection[str], *, dropped: Collection[str], is_unused: bool) -> NodeClaim:
    contents = selected(claim.contents, requests)
    devices = [choice.device for request in contents.requests for choice in request.with_choices]
    return NodeClaim(
        name=claim.name,
        kind=claim.kind,
        reference=claim.reference,
        found=claim.is_found,
        devices=contents.devices,
        at_least=contents.at_least,
        is_gpu=contents.is_gpu,
        is_other=bool(devices) and all(device.kind and not device.gpu for device in devices),
        is_dropped=claim.name in dropped,
        is_unused=is_unused and claim.name not in dropped,
    )
