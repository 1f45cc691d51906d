"""The device claims of the node of a TrainJob, resolved."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from webhook.attributes import JSON
from webhook.facts.dra.pod_claims import PodClaim as ResolvedClaim
from webhook.facts.dra.pod_claims import claims_of_pod_sets, pod_claims
from webhook.facts.dra.selected_requests import claim_with_selected_requests
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.merged_train_job import MergedTrainJob, merge_train_job
from webhook.facts.train_job_pods.releases import KEEPS_CLAIMS
from webhook.facts.train_job_pods.types import TrainJob
from webhook.typed.collections import Items
from webhook.typed.pods import PodClaim
from webhook.workloads.podsets import PodSet


class NodeDeviceClaim(NamedTuple):
    """A device claim of a training node. `devices` is None if their number is open; `is_other` if all are known not to
    be GPUs.

    The installed release drops one that `is_dropped`, which shows all the same what the nodes are meant to have: of an
    object that an API server has sent none is, for its release has the fields. One that `is_unused` is allocated for
    the pod, and no container of it refers to it.
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


def device_claims_of_training_node(subject: Subject) -> tuple[NodeDeviceClaim, ...]:
    """Return the device claims of a training node; call it through `Subject.once`.

    Those that the container `node` refers to, and those that it would but for resourcesPerNode; where there are none,
    those that no container refers to, and those of patches that the release drops. What the claims are missing is not
    said here: `found` and `devices` tell.
    """
    job = subject.once(merge_train_job)
    if not job.object:
        return ()
    dropped = _claims_dropped_by_api_server(job, subject)
    wanted: dict[str, set[str]] = {name: {""} for name in job.merged.lost_claims}
    for entry in job.node_container.resources.claims if job.node_container is not None else ():
        wanted.setdefault(entry.name, set()).add(entry.request)
    outside = (*_claims_not_merged(job), *dropped)
    claims = [
        *_claims_of_pod(job, subject),
        *(_resolved_claims(_template_with_claims(outside), subject) if outside else ()),
    ]
    used = [claim for claim in claims if claim.name in wanted]
    meant = used or [claim for claim in claims if not claim.users]
    is_unused = not used and job.node_container is not None
    names = {claim.name for claim in dropped}
    is_sent = subject.attributes.is_decoded
    return tuple(
        _node_claim(
            claim,
            wanted.get(claim.name, ()),
            is_dropped=claim.name in names and not is_sent,
            is_unused=is_unused and claim.name not in names,
        )
        for claim in Items(meant, subject.deadline)
    )


def _claims_of_pod(job: MergedTrainJob, subject: Subject) -> Iterable[ResolvedClaim]:
    """Return the claims of the pod of the node; without the runtime those of the patches."""
    if job.node_job is None:
        return _resolved_claims(_template_with_claims(_claims_of_patches(job.object)), subject)
    pods = [replicated for replicated in job.replicated_jobs if replicated.name == job.node_job.name]
    if len(pods) > 1:  # no API server takes this: their names do not tell them apart
        return _resolved_claims(job.node_job.pod_template.json, subject)
    return [claim for claim in subject.once(pod_claims).claims if claim.pod_set == job.node_job.name]


def _resolved_claims(template: JSON, subject: Subject) -> Iterable[ResolvedClaim]:
    """Return the claims of a pod, resolved."""
    pod = PodSet(name="", path=("spec",), template=template)
    return claims_of_pod_sets(Items((pod,), subject.deadline), subject.cluster_view()).claims


def _template_with_claims(claims: Collection[PodClaim]) -> JSON:
    return {"spec": {"resourceClaims": [claim.json for claim in claims]}}


def _claims_not_merged(job: MergedTrainJob) -> Collection[PodClaim]:
    """Return claims of the TrainJob that are not merged into the template of the node."""
    is_merged = job.node_job is not None and job.release >= KEEPS_CLAIMS
    return () if is_merged else job.trainer.resource_claims_per_node


def _claims_dropped_by_api_server(job: MergedTrainJob, subject: Subject) -> Collection[PodClaim]:
    """Return claims of the TrainJob that the API server drops; those of the pods take precedence."""
    if job.release >= KEEPS_CLAIMS:
        return ()
    written = job.object if job.object.json is subject.object else subject.typed(TrainJob)
    pod_claims = _claims_of_patches(job.object) if job.node_job is None else job.node_job.pod.resource_claims
    names = {claim.name for claim in pod_claims}
    claims = (*_claims_of_patches(written), *written.spec.trainer.resource_claims_per_node)
    return [claim for claim in claims if claim.name not in names]


def _claims_of_patches(job: TrainJob) -> Collection[PodClaim]:
    """Return the claims of patches; the last one of each name, as in a merge."""
    claims: dict[str, PodClaim] = {}
    for patch in job.spec.runtime_patches:
        for replicated in patch.training_runtime_spec.template.spec.replicated_jobs:
            claims |= {claim.name: claim for claim in replicated.pod.resource_claims}
    return claims.values()


def _node_claim(
    claim: ResolvedClaim, requests: Collection[str], *, is_dropped: bool, is_unused: bool
) -> NodeDeviceClaim:
    contents = claim_with_selected_requests(claim.contents, requests)
    devices = [choice.device for request in contents.requests for choice in request.self_and_alternatives]
    return NodeDeviceClaim(
        name=claim.name,
        kind=claim.kind,
        reference=claim.reference,
        found=claim.is_found,
        devices=contents.devices,
        at_least=contents.at_least,
        is_gpu=contents.is_gpu,
        is_other=bool(devices) and all(device.kind and not device.gpu for device in devices),
        is_dropped=is_dropped,
        is_unused=is_unused,
    )
