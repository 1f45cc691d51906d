"""Device claims of TrainJobs: resourceClaimsPerNode, and claims in runtimePatches.

Source: KEP-2782@3c8b998afa6b, kubeflow/trainer#3540. Trainer takes them only with its feature gate on, which the param
`dynamicResourceAllocation` says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from webhook.facts.dra.device_claims import consequence_of_unused_claim, may_devices_stay_idle
from webhook.facts.dra.pod_claims import PodClaim as ResolvedClaim
from webhook.facts.dra.pod_claims import pod_claims
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.groups import TRAIN_JOB, TRAIN_JOB_ADVICE
from webhook.facts.train_job_pods.merged_train_job import MergedTrainJob, merge_train_job
from webhook.facts.train_job_pods.overlays import JobOverlay
from webhook.facts.train_job_pods.releases import CLAIMS
from webhook.facts.trainer.generated_pods import GeneratedPods, sentence_about_several_sources, source_fields_of
from webhook.facts.trainer.node_claims import NodeDeviceClaim
from webhook.name_faults import label_fault
from webhook.names import dns1123_label_errors
from webhook.paths import FieldPath
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.releases import release_as_text
from webhook.typed.pods import Container, PodClaim

CLAIM_TEMPLATE: Final = TRAIN_JOB.rule(
    "train-job/claim-template",
    title="A claim of resourceClaimsPerNode names a ResourceClaimTemplate.",
    why="Trainer takes no other source there, for each node needs devices of its own.",
    source="https://github.com/kubeflow/trainer/pull/3540",
    refused_on_updates="",
)
CLAIM_NAME: Final = TRAIN_JOB.rule(
    "train-job/claim-name",
    title="The name of a claim of resourceClaimsPerNode is a DNS label.",
    why="The pods have a claim of that name.",
    source="https://github.com/kubeflow/trainer/pull/3540",
    refused_on_updates="",
)
CLAIM_TWICE: Final = TRAIN_JOB.rule(
    "train-job/claim-twice",
    title="Each claim of resourceClaimsPerNode has a name of its own.",
    why="The list is a map by name.",
    source="https://github.com/kubeflow/trainer/pull/3540",
    refused_on_updates="",
)
CLAIM_COUNT: Final = TRAIN_JOB.rule(
    "train-job/claim-count",
    title="resourceClaimsPerNode has at most 32 claims.",
    why="The CustomResourceDefinition takes no more.",
    source="https://github.com/kubeflow/trainer/pull/3540",
    refused_on_updates="",
)
CLAIM_FEATURE_GATE: Final = TRAIN_JOB.rule(
    "train-job/claim-feature-gate",
    title="Claims of TrainJobs need Trainer's feature gate for dynamic resource allocation.",
    why="Trainer refuses the fields while the gate is off. The param dynamicResourceAllocation says that it is on.",
    source="https://github.com/kubeflow/trainer/pull/3540",
)

_MOST: Final = 32
RESOURCES_CLAIMS: Final = TRAIN_JOB.rule(
    "train-job/resources-claims",
    title="resourcesPerNode has no claims since 2.4.",
    why="Trainer refuses them, for resourceClaimsPerNode names the claims of a node.",
    source="https://github.com/kubeflow/trainer/pull/4027",
)
IGNORED_CLAIMS: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/ignored-claims",
    title="resourcesPerNode has no claims before 2.4.",
    why="Trainer copies only limits and requests, so the claims never reach a pod.",
    refused_by="nobody; the claims are ignored",
    source="https://github.com/kubeflow/trainer/pull/4027",
)
SHARED_CLAIM: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/shared-claim",
    title="Nodes do not share one ResourceClaim.",
    why="A ResourceClaim is allocated once, on one node of the cluster. A template gives each pod a claim of its own.",
    fails="pending",
    issues=("https://github.com/kubeflow/trainer/pull/3540",),
)
CLAIM_DECLARED: Final = TRAIN_JOB.rule(
    "train-job/claim-declared",
    title="Containers refer to claims that the merged pod declares.",
    why="The API server refuses the pods otherwise.",
    refused_by="the API server, when the pods are created",
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    fails="controller",
    issues=("https://github.com/kubeflow/trainer/pull/4027",),
)
CLAIM_SOURCE: Final = TRAIN_JOB.rule(
    "train-job/claim-source",
    title="A claim of the merged pod has one source.",
    why=(
        "A patch that gives a claim of the runtime another source adds it to the first, and the API server refuses "
        "the pods."
    ),
    refused_by="the API server, when the pods are created",
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    fails="controller",
    issues=("https://github.com/kubeflow/trainer/pull/4027",),
)
UNUSED_CLAIM: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/unused-claim",
    title="A container uses each claim of the pod.",
    why="The devices of a claim are allocated for the pod, and stay idle where no container refers to it.",
    issues=("https://github.com/kubeflow/trainer/pull/3540",),
)


def validate_resource_claims_per_node(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield the problems of claims, which Trainer has since 2.4."""
    if job.release < CLAIMS:
        return
    claims, path = job.trainer.resource_claims_per_node, job.trainer.path("resourceClaimsPerNode")
    names = Counter(claim.name for claim in claims)
    for claim in claims:
        yield from _validate_claim(claim, names)
    if len(claims) > _MOST:
        message, fix = f"are more than the {_MOST} that are allowed", "ask for several devices in one claim"
        yield CLAIM_COUNT.problem(path, message, fix, shown=f"{len(claims)} claims")
    if not job.takes_claims:
        yield from _check_claim_feature_gate(job, [path] if claims else [])


def _validate_claim(claim: PodClaim, names: Counter[str]) -> Iterator[Problem]:
    name = claim.name
    if not claim.resource_claim_template_name:
        message = f"must name a ResourceClaimTemplate for claim `{name}` because Trainer accepts no other source here"
        yield CLAIM_TEMPLATE.problem(claim.at, message, "set resourceClaimTemplateName")
    if dns1123_label_errors(name) and not is_placeholder(name):
        message = f"cannot be the name of a claim because {label_fault(name)}"
        fix = "use at most 63 lower-case letters, digits and dashes"
        yield CLAIM_NAME.problem(claim.path("name"), message, fix, name)
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
            f"must not be set because Trainer {release_as_text(job.release)} takes claims only with its feature "
            "gate for dynamic "
            "resource allocation, which is off"
        )
        fix = (
            "declare claims in the pod template of the runtime, or ask the administrator to turn the gate on and set "
            "dynamicResourceAllocation to true in ConfigMap `trainer`"
        )
        yield CLAIM_FEATURE_GATE.problem(place, message, fix)


def _paths_of_claims_in_overlay(overlay: JobOverlay) -> Iterator[FieldPath]:
    for claim in overlay.pod.resource_claims:
        yield claim.at
    for container in overlay.pod.all_containers():
        if container.resources.claims:
            yield container.resources.path("claims")


def check_claims_in_resources_per_node(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield claims in resourcesPerNode, of which builder.go copies only limits and requests (kubeflow/trainer#4027)."""
    resources = job.trainer.resources_per_node
    if not resources.claims:
        return
    names = ", ".join(f"`{claim.name}`" for claim in resources.claims)
    if job.release >= CLAIMS:
        message = f"must not be set because Trainer {release_as_text(job.release)} refuses claims here"
        fix = "name the claim's template in spec.trainer.resourceClaimsPerNode"
        yield RESOURCES_CLAIMS.problem(resources.path("claims"), message, fix, shown=names)
    else:
        fix = "declare the claim in the pod template of the runtime"
        message = f"is ignored because Trainer {release_as_text(job.release)} copies only limits and requests"
        yield IGNORED_CLAIMS.problem(resources.path("claims"), message, fix, shown=names)


def check_shared_claims(job: MergedTrainJob, claims: Sequence[NodeDeviceClaim]) -> Iterator[Problem]:
    """Yield the problem of one ResourceClaim that several nodes share."""
    shared = [claim.reference for claim in claims if claim.kind == "ResourceClaim"]
    if job.number_of_nodes > 1 and shared:
        listed = ", ".join(f"`{name}`" for name in shared)
        message = (
            f"pods share ResourceClaim {listed}, which has its devices on one node of the cluster, so pods that do not "
            "fit there stay Pending"
        )
        fix = (
            "create a ResourceClaimTemplate, and name it in resourceClaimTemplateName instead of resourceClaimName in "
            "the resourceClaims of the pods"
        )
        yield SHARED_CLAIM.problem("spec.trainer.numNodes", message, fix, job.number_of_nodes)


def claim_source_problem(claim: PodClaim, before: Mapping[str, list[str]], pods: GeneratedPods) -> Problem:
    """Return the problem of a claim of the merged pod with several sources, or without any."""
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
    """Yield claims for devices of a node that no container refers to."""
    if not pods.spec.resource_claims:
        return
    used = {claim.name for container in pods.spec.all_containers() for claim in container.resources.claims}
    kept = subject.once(_idle_claims_by_job)
    for name in sorted({claim.name for claim in pods.spec.resource_claims} - used):
        if (claim := kept.get((pods.replicated.name, name))) is not None:
            message = f"no container of {pods} uses claim `{name}`{consequence_of_unused_claim(claim)}"
            fix = "name the claim in resources.claims of a container, or remove the claim"
            yield UNUSED_CLAIM.problem("", message, fix)


def _idle_claims_by_job(subject: Subject) -> Mapping[tuple[str, str], ResolvedClaim]:
    """Return claims that would be allocated without a user, by their replicated jobs and names."""
    lost = set(subject.once(merge_train_job).merged.lost_claims)
    return {
        (claim.pod_set, claim.name): claim
        for claim in subject.once(pod_claims).claims
        if claim.name not in lost and may_devices_stay_idle(claim)
    }
