"""Device claims and GPUs of the nodes of a TrainJob: resourceClaimsPerNode, claims in runtimePatches, and their rules.

Trainer accepts claims only if a feature gate is on. The param `dynamicResourceAllocation` of a policy says whether
this gate is on.

Source: KEP-2782@3c8b998afa6b, kubeflow/trainer#3540.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from webhook.apimachinery.names import (
    dns1123_label_errors,
    label_fault,
    label_fix,
)
from webhook.apimachinery.paths import FieldPath
from webhook.apimachinery.releases import release_as_text
from webhook.facts.dra.device_claims import consequence_of_unused_claim, may_devices_stay_idle
from webhook.facts.dra.pod_claims import PodClaim as ResolvedClaim
from webhook.facts.dra.pod_claims import claims_of_templates, pod_claims
from webhook.facts.dra.requested_devices import claim_with_selected_requests
from webhook.facts.gpu.resources import count_gpus_of_json_resources
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.merged_train_job import MergedTrainJob, merge_train_job, merge_train_job_for_pods
from webhook.facts.train_job_pods.nodes_and_processes import container_named, first_node_job
from webhook.facts.train_job_pods.releases import CLAIMS, KEEPS_CLAIMS
from webhook.facts.train_job_pods.train_job_patches import JobOverlay
from webhook.facts.train_job_pods.types import TRAIN_JOB, TRAIN_JOB_ADVICE, TrainJob
from webhook.facts.trainer.generated_pods import GeneratedPods, sentence_about_several_sources, source_fields_of
from webhook.rules.problem import Problem
from webhook.typed.collections import Items
from webhook.typed.pods import Container, PodClaim, PodTemplate
from webhook.typed.view import ReadingContext
from webhook.workloads.podsets import PodSet
from webhook.yamltext.placeholders import is_placeholder

CLAIM_TEMPLATE: Final = TRAIN_JOB.rule(
    "train-job/claim-template",
    title="A claim in resourceClaimsPerNode has no resourceClaimTemplateName",
    why="Each node needs its own devices, so Trainer accepts only a template here.",
    source="https://github.com/kubeflow/trainer/pull/3540",
    refused_on_updates="",
)
CLAIM_NAME: Final = TRAIN_JOB.rule(
    "train-job/claim-name",
    title="The claim name in resourceClaimsPerNode is not a DNS label",
    why="The pods get a claim with this name, and Kubernetes accepts only a DNS label.",
    source="https://github.com/kubeflow/trainer/pull/3540",
    refused_on_updates="",
)
CLAIM_TWICE: Final = TRAIN_JOB.rule(
    "train-job/claim-twice",
    title="resourceClaimsPerNode has two claims of the same name",
    why="A container could mean either of the two claims, so the API server refuses the second claim.",
    source="https://github.com/kubeflow/trainer/pull/3540",
    refused_on_updates="",
)
CLAIM_COUNT: Final = TRAIN_JOB.rule(
    "train-job/claim-count",
    title="resourceClaimsPerNode has more than 32 claims",
    why="The CustomResourceDefinition allows at most 32 claims.",
    source="https://github.com/kubeflow/trainer/pull/3540",
    refused_on_updates="",
)
CLAIM_FEATURE_GATE: Final = TRAIN_JOB.rule(
    "train-job/claim-feature-gate",
    title="The TrainJob uses device claims, but Trainer's feature gate for claims is off",
    why=(
        "Trainer refuses fields for claims while the gate is off. If the gate is on, set param "
        "dynamicResourceAllocation to true."
    ),
    source="https://github.com/kubeflow/trainer/pull/3540",
)
RESOURCES_CLAIMS: Final = TRAIN_JOB.rule(
    "train-job/resources-claims",
    title="resourcesPerNode has claims, which Trainer refuses",
    why="Trainer accepts claims only in resourceClaimsPerNode.",
    source="https://github.com/kubeflow/trainer/pull/4027",
)
IGNORED_CLAIMS: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/ignored-claims",
    title="Trainer ignores the claims of resourcesPerNode",
    why="Trainer before 2.4 copies only limits and requests, so the claims never reach a pod.",
    refused_by="nothing; the claims are ignored",
    source="https://github.com/kubeflow/trainer/pull/4027",
)
SHARED_CLAIM: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/shared-claim",
    title="All nodes share one ResourceClaim",
    why="A ResourceClaim is allocated once, on one node. A template gives each pod its own claim.",
    fails="pending",
    issues=("https://github.com/kubeflow/trainer/pull/3540",),
)
CLAIM_DECLARED: Final = TRAIN_JOB.rule(
    "train-job/claim-declared",
    title="The container uses a claim that the merged pod does not declare",
    why="The API server refuses pods with a container that uses an undeclared claim.",
    refused_by="the API server, when the pods are created",
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    fails="controller",
    issues=("https://github.com/kubeflow/trainer/pull/4027",),
)
CLAIM_SOURCE: Final = TRAIN_JOB.rule(
    "train-job/claim-source",
    title="The claim of the merged pod has several sources or none",
    why="A claim has exactly one source. If a patch adds a second source, the API server refuses the pods.",
    refused_by="the API server, when the pods are created",
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    fails="controller",
    issues=("https://github.com/kubeflow/trainer/pull/4027",),
)
UNUSED_CLAIM: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/unused-claim",
    title="No container of the TrainJob uses the claim",
    why="The devices of the claim are allocated for the pod and stay idle.",
    issues=("https://github.com/kubeflow/trainer/pull/3540",),
)
_MOST: Final = 32


def gpus_of_node_container(job: MergedTrainJob) -> int:
    """Return how many GPUs the container `node` requests."""
    return _gpus_of_container(job.node_container)


def gpus_of_node_in_runtime(job: MergedTrainJob) -> int:
    """Return how many GPUs the container `node` requests in the runtime, before the merge."""
    return _gpus_of_container(container_named(first_node_job(job.runtime.spec.template.spec), "node"))


def _gpus_of_container(node: Container | None) -> int:
    return 0 if node is None else count_gpus_of_json_resources(node.resources.json, node.reading.deadline)


class NodeDeviceClaim(NamedTuple):
    """A device claim of a training node.

    Args:
        devices: the number of devices in the requests that the container uses; None if not known.
        at_least: the fewest devices that these requests get.
        is_other: whether all devices are known not to be GPUs.
        is_dropped: whether the release of Trainer drops the claim. False for an object that an API server sent, because
            the server has already removed dropped claims.
        is_unused: whether no container refers to the claim, although it is allocated for the pod.
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
    """Return the device claims of a training node. Call this function through `Subject.once`.

    The result has the claims that the container `node` refers to, including claims that resourcesPerNode removes from
    the container. If the container refers to no claim, the result has the claims that no container refers to. Claims
    that the release drops are included. `devices` is None for a claim with missing objects.
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
        *(_resolved_claims(_template_with_claims(outside, subject), subject) if outside else ()),
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
    """Return the claims of the pod with the container `node`; without the runtime, the claims of the patches."""
    node = job.node_job
    if node is None:
        return _resolved_claims(_template_with_claims(_claims_of_patches(job.object), subject), subject)
    if [replicated.name for replicated in job.replicated_jobs].count(node.name) > 1:
        return _resolved_claims(node.pod_template, subject)  # no API server accepts two jobs with one name
    jobs = subject.once(merge_train_job_for_pods).replicated_jobs
    return [
        claim
        for replicated in jobs
        if replicated.name == node.name
        for claim in _resolved_claims(replicated.pod_template, subject)
    ]


def _resolved_claims(template: PodTemplate, subject: Subject) -> Iterable[ResolvedClaim]:
    pod = PodSet(name="", path=("spec",), template=template.json)
    return claims_of_templates([(pod, template)], subject.cluster_view()).claims


def _template_with_claims(claims: Collection[PodClaim], subject: Subject) -> PodTemplate:
    template = {"spec": {"resourceClaims": [claim.json for claim in claims]}}
    return PodTemplate(template, (), ReadingContext(subject.deadline))


def _claims_not_merged(job: MergedTrainJob) -> Collection[PodClaim]:
    """Return claims of the TrainJob that are not merged into the template of the node."""
    is_merged = job.node_job is not None and job.release >= KEEPS_CLAIMS
    return () if is_merged else job.trainer.resource_claims_per_node


def _claims_dropped_by_api_server(job: MergedTrainJob, subject: Subject) -> Collection[PodClaim]:
    """Return claims of the TrainJob that the API server drops, if the pods do not have a claim of the same name."""
    if job.release >= KEEPS_CLAIMS:
        return ()
    written = job.object if job.object.json is subject.object else subject.typed(TrainJob)
    pod_claims = _claims_of_patches(job.object) if job.node_job is None else job.node_job.pod.resource_claims
    names = {claim.name for claim in pod_claims}
    claims = (*_claims_of_patches(written), *written.spec.trainer.resource_claims_per_node)
    return [claim for claim in claims if claim.name not in names]


def _claims_of_patches(job: TrainJob) -> Collection[PodClaim]:
    """Return the claims of patches. Of claims with the same name, the last one counts, as in a merge."""
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


def validate_resource_claims_per_node(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield the problems of resourceClaimsPerNode, which Trainer has since 2.4."""
    if job.release < CLAIMS:
        return
    claims, path = job.trainer.resource_claims_per_node, job.trainer.path("resourceClaimsPerNode")
    names = Counter(claim.name for claim in claims)
    for claim in claims:
        yield from _validate_claim(claim, names)
    if len(claims) > _MOST:
        message, fix = f"are more than the {_MOST} that are allowed", "ask for several devices in one claim"
        yield CLAIM_COUNT.problem(path, message, fix, shown=f"{len(claims)} claims")
    if not job.accepts_claims:
        yield from _check_claim_feature_gate(job, [path] if claims else [])


def _validate_claim(claim: PodClaim, names: Counter[str]) -> Iterator[Problem]:
    name = claim.name
    if not claim.resource_claim_template_name:
        message = f"must name a ResourceClaimTemplate for claim `{name}` because Trainer accepts no other source here"
        yield CLAIM_TEMPLATE.problem(claim.at, message, "set resourceClaimTemplateName")
    if dns1123_label_errors(name) and not is_placeholder(name):
        message = f"cannot be the name of a claim because {label_fault(name)}"
        yield CLAIM_NAME.problem(claim.path("name"), message, label_fix(name), name)
    if names[name] > 1:
        message = "is the name of several claims"
        yield CLAIM_TWICE.problem(claim.path("name"), message, "give each claim its own name", name)


def _check_claim_feature_gate(job: MergedTrainJob, places: list[FieldPath]) -> Iterator[Problem]:
    """Yield the fields that need the feature gate for claims."""
    for layer in job.layers:
        for overlay in layer.overlays:
            places.extend(_paths_of_claims_in_overlay(overlay))
    for place in places:
        message = (
            f"must not be set because Trainer {release_as_text(job.release)} accepts claims only with its feature "
            "gate for dynamic "
            "resource allocation, which is off"
        )
        fix = (
            "remove this field, and use a runtime whose pod template declares the claims, or ask the administrator to "
            "turn the gate on and to tell claimgate (dynamicResourceAllocation in ConfigMap `trainer`)"
        )
        yield CLAIM_FEATURE_GATE.problem(place, message, fix)


def _paths_of_claims_in_overlay(overlay: JobOverlay) -> Iterator[FieldPath]:
    for claim in overlay.pod.resource_claims:
        yield claim.at
    for container in overlay.pod.all_containers():
        if container.resources.claims:
            yield container.resources.path("claims")


def check_claims_in_resources_per_node(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield claims in resourcesPerNode; builder.go copies only limits and requests (kubeflow/trainer#4027)."""
    resources = job.trainer.resources_per_node
    if not resources.claims:
        return
    names = ", ".join(f"`{claim.name}`" for claim in resources.claims)
    if job.release >= CLAIMS:
        message = f"must not be set because Trainer {release_as_text(job.release)} refuses claims here"
        entries = "an entry" if len(resources.claims) == 1 else "entries"
        fix = f"remove this field, and add {entries} with name and resourceClaimTemplateName to "
        fix += "spec.trainer.resourceClaimsPerNode"
        yield RESOURCES_CLAIMS.problem(resources.path("claims"), message, fix, shown=names)
    else:
        fix = "remove this field, and use a runtime whose pod template declares the claim"
        message = f"is ignored because Trainer {release_as_text(job.release)} copies only limits and requests"
        yield IGNORED_CLAIMS.problem(resources.path("claims"), message, fix, shown=names)


def check_shared_claims(job: MergedTrainJob, claims: Sequence[NodeDeviceClaim]) -> Iterator[Problem]:
    """Yield the problem of one ResourceClaim that several nodes share."""
    shared = [claim for claim in claims if claim.kind == "ResourceClaim"]
    if job.number_of_nodes > 1 and shared:
        listed = ", ".join(f"`{claim.reference}`" for claim in shared)
        of_patches = {claim.name for claim in _claims_of_patches(job.object)}
        is_of_patch = any(claim.name in of_patches for claim in shared)
        where = "the runtime patch" if is_of_patch else str(job.runtime)
        asks = "ask the administrator to " if job.runtime.is_of_cluster and not is_of_patch else ""
        message = (
            f"pods share ResourceClaim {listed}, which has its devices on one node of the cluster, so pods that do not "
            "fit there stay Pending"
        )
        fix = (
            f"create a ResourceClaimTemplate, and {asks}name the template in resourceClaimTemplateName "
            f"instead of resourceClaimName in the resourceClaims of {where}"
        )
        yield SHARED_CLAIM.problem("spec.trainer.numNodes", message, fix, job.number_of_nodes)


def claim_source_problem(claim: PodClaim, before: Mapping[str, list[str]], pods: GeneratedPods) -> Problem:
    """Return the problem of a claim that has several sources or no source in the merged pod."""
    message = f"claim `{claim.name}` of {pods} has no source"
    fix = "set resourceClaimName or resourceClaimTemplateName"
    if source_fields_of(claim):
        message, fix = sentence_about_several_sources(claim, "claim", before, pods)
    return CLAIM_SOURCE.problem("", message, fix)


def check_claims_are_declared(
    container: Container, declared: Collection[str], pods: GeneratedPods
) -> Iterator[Problem]:
    """Yield claims of a container that its pod does not declare."""
    for claim in container.resources.claims:
        if claim.name not in declared and not is_placeholder(claim.name):
            refers = f"container `{container.name}` of {pods} refers to claim `{claim.name}`"
            fix = "declare the claim in resourceClaims, or correct the name"
            yield CLAIM_DECLARED.problem("", f"{refers}, which the pod does not declare", fix)


def advise_unused_claims(pods: GeneratedPods, subject: Subject) -> Iterator[Problem]:
    """Yield claims of a pod that no container uses, so that devices may stay idle."""
    if not pods.spec.resource_claims:
        return
    used = {claim.name for container in pods.spec.all_containers() for claim in container.resources.claims}
    for name in sorted({claim.name for claim in pods.spec.resource_claims} - used):
        if (claim := subject.once(_idle_claims_by_job).get((pods.replicated.name, name))) is not None:
            message = f"no container of {pods} uses claim `{name}`{consequence_of_unused_claim(claim)}"
            fix = "name the claim in resources.claims of a container, or remove the claim"
            yield UNUSED_CLAIM.problem("", message, fix)


def _idle_claims_by_job(subject: Subject) -> Mapping[tuple[str, str], ResolvedClaim]:
    """Return the claims with devices that may stay idle, by replicated job and name."""
    lost = set(subject.once(merge_train_job).merged.lost_claims)
    return {
        (claim.pod_set, claim.name): claim
        for claim in subject.once(pod_claims).claims
        if claim.name not in lost and may_devices_stay_idle(claim)
    }
