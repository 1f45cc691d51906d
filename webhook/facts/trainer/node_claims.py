"""The device claims that the node of a TrainJob is meant to have, resolved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from webhook.attributes import JSON
from webhook.facts.dra.pod_claims import dra
from webhook.facts.pods.containers import containers
from webhook.facts.subject import Subject
from webhook.facts.trainer.releases import KEEPS_CLAIMS
from webhook.facts.trainer.train_job import TrainJob, name_of, train_job
from webhook.paths import get
from webhook.workloads.podsets import PodSet

_POD = ("template", "spec", "template")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeClaim:
    """A claim. devices is None where their number is open; is_other says that all are known to be no GPUs."""

    name: str
    kind: str
    reference: str
    found: bool
    devices: int | None
    at_least: int
    is_gpu: bool
    is_other: bool


def node_claims(subject: Subject) -> tuple[NodeClaim, ...]:
    """The claims, to be asked for with `Subject.once`.

    Those that the container `node` refers to, those that it would but for resourcesPerNode, and those that no container
    refers to. What the claims are missing is not said here: `found` and `devices` tell.
    """
    job = subject.once(train_job)
    if not job.object:
        return ()
    podset, extra = _templates(job)
    node = next((each for each in containers(podset.template) if each.name == "node" and not each.init), None)
    wanted = {*job.merged.lost_claims, *(name_of(entry) for entry in (node.claims() if node else ()))}
    found = dra({}, (podset, extra), subject.view())["claims"]
    return tuple(_claim(each) for each in found if each["name"] in wanted or not each["users"])


def _templates(job: TrainJob) -> tuple[PodSet, PodSet]:
    """The template of the node, and claims that are not merged into it."""
    node = job.node_job
    template = get(node, _POD) if node is not None else {"spec": {"resourceClaims": list(_own_claims(job))}}
    is_merged = template is not None and job.release >= KEEPS_CLAIMS
    per_node = [] if is_merged else job.trainer.get("resourceClaimsPerNode", [])
    return (
        PodSet(name=name_of(node), path=(), template=template or {}),
        PodSet(name="", path=("spec", "trainer"), template={"spec": {"resourceClaims": per_node}}),
    )


def _own_claims(job: TrainJob) -> Iterator[JSON]:
    """The claims that a TrainJob's patches carry; of one name the last, as merging would have it."""
    claims: dict[str, JSON] = {}
    for patch in job.spec.get("runtimePatches", []):
        for each in get(patch, ("trainingRuntimeSpec", "template", "spec", "replicatedJobs"), []):
            for claim in get(each, (*_POD, "spec", "resourceClaims"), []):
                claims[name_of(claim)] = claim
    yield from claims.values()


def _claim(claim: JSON) -> NodeClaim:
    known = [each for request in claim["requests"] for each in (request, *request["choices"])]
    return NodeClaim(
        name=claim["name"],
        kind=claim["kind"],
        reference=claim["reference"],
        found=claim["found"],
        devices=claim["devices"],
        at_least=claim["atLeast"],
        is_gpu=claim["gpu"],
        is_other=bool(known) and all(each["deviceKind"] and not each["gpu"] for each in known),
    )
