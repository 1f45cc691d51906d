"""Kubernetes' own rules for the device claims of pods, applied to pod templates, which Kubernetes does not check.

Source: k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go. The policy claims-exactly-one checks that a
claim has exactly one source.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from webhook.apimachinery.attributes import Operation
from webhook.apimachinery.names import dns1123_label_errors, dns1123_subdomain_errors, label_fault, subdomain_fault
from webhook.facts.dra.pod_claims import PodClaim as ResolvedClaim
from webhook.facts.dra.pod_claims import pod_claims
from webhook.facts.dra.types import DEVICE_CLAIMS, DEVICE_CLAIMS_ADVICE
from webhook.facts.gpu.resources import has_device_requests
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.rules.problem import Problem
from webhook.typed.pods import Container, ContainerClaim, Pod, PodClaim, PodSpec
from webhook.yamltext.placeholders import has_placeholder_variable

CLAIM_NAME: Final = DEVICE_CLAIMS.rule(
    "device-claims/claim-name",
    title="The claim name is not a DNS label",
    why="Containers refer to the claim by this name. The API server accepts only a DNS label.",
    function="validatePodResourceClaim",
)
SOURCE_NAME: Final = DEVICE_CLAIMS.rule(
    "device-claims/source-name",
    title="The claim names an object with an invalid name",
    why="No object can have such a name, so the API server refuses the reference.",
    function="validatePodResourceClaim",
)
CLAIM_NAME_TWICE: Final = DEVICE_CLAIMS.rule(
    "device-claims/claim-name-twice",
    title="Two claims of the pod have the same name",
    why="A container could mean either of the two claims.",
    function="gatherPodResourceClaimNames",
)
UNDECLARED: Final = DEVICE_CLAIMS.rule(
    "device-claims/undeclared",
    title="The container uses a claim that the pod does not declare",
    why="A container has access only to the claims of its own pod.",
    function="validateResourceClaimNames",
)
CONTAINER_CLAIM_NAME: Final = DEVICE_CLAIMS.rule(
    "device-claims/container-claim-name",
    title="The container lists a claim without a name",
    why="Without a name, the container refers to no claim.",
    function="validateContainerResourceClaims",
)
REQUEST_NAME: Final = DEVICE_CLAIMS.rule(
    "device-claims/request-name",
    title="The request name is not a DNS label",
    why="The API server accepts only DNS labels as names of requests.",
    function="validateContainerResourceClaims",
)
TAKEN_TWICE: Final = DEVICE_CLAIMS.rule(
    "device-claims/taken-twice",
    title="The container lists the same claim or request twice",
    why="A container gets the devices of a request once. The API server refuses a second entry.",
    function="validateContainerResourceClaims",
)
EPHEMERAL_CONTAINER: Final = DEVICE_CLAIMS.rule(
    "device-claims/ephemeral-container",
    title="An ephemeral container uses a claim",
    why="An ephemeral container joins a running pod and uses the resources that the pod already has.",
    function="validateEphemeralContainers",
)
POD_LEVEL: Final = DEVICE_CLAIMS.rule(
    "device-claims/pod-level",
    title="resources of the pod as a whole list claims",
    why="Kubernetes gives devices to containers, not to a pod as a whole.",
    function="validatePodResources",
)
STATIC_POD: Final = DEVICE_CLAIMS.rule(
    "device-claims/static-pod",
    title="A static pod has claims",
    why="The kubelet runs static pods from files without the scheduler, and only the scheduler allocates claims.",
    function="ValidatePod",
)

_LABEL: Final = "use at most 63 lower-case letters, digits and dashes, such as gpu"
_MIRROR: Final = "kubernetes.io/config.mirror"
NODE_NAME: Final = DEVICE_CLAIMS_ADVICE.rule(
    "device-claims/node-name",
    title="nodeName is set on a pod with claims",
    why=(
        "Only the scheduler allocates claims. A pod with nodeName skips the scheduler, so the kubelet waits for the "
        "claims for ever."
    ),
    fails="start",
)
SHARED: Final = DEVICE_CLAIMS_ADVICE.rule(
    "device-claims/shared",
    title="All pods of the template share one ResourceClaim",
    why=(
        "All pods of the template share the devices of one ResourceClaim, and at most 256 pods can. Channels, network "
        "devices, admin access, shares of a capacity and GPUs with a sharing strategy are exempt."
    ),
    source="k8s.io/api v0.36.1 resource/v1 types.go ResourceClaimReservedForMaxSize",
    severity="low",
)
UNUSED: Final = DEVICE_CLAIMS_ADVICE.rule(
    "device-claims/unused",
    title="No container uses the claim",
    why="The devices of the claim are allocated and reserved for the pod, and stay idle.",
    severity="low",
)
_STAYS_IDLE: Final = frozenset(("device", "slice"))
USE_TEMPLATE: Final = (
    "create a ResourceClaimTemplate, and name it in resourceClaimTemplateName instead of resourceClaimName"
)
OWN_DEVICES: Final = f"{USE_TEMPLATE}, so that each pod gets its own devices"
_MOST_PODS: Final = 256
"""k8s.io/api v0.36.1 resource/v1 types.go ResourceClaimReservedForMaxSize."""


def validate_pod_claims(subject: Subject) -> Iterator[Problem]:
    """Yield the problems that Kubernetes would report for the claims of a pod and of its containers."""
    pod = subject.typed(Pod)
    if pod.spec.resource_claims:
        if subject.template_of is None:
            yield from _check_static_pod(pod)
        for claim in pod.spec.resource_claims:
            yield from validate_pod_resource_claim(claim)
        yield from validate_unique_claim_names(pod.spec)
    yield from _validate_claims_of_containers(pod.spec, subject.cluster_view())
    if pod.spec.has("ephemeralContainers"):
        yield from _check_ephemeral_containers(pod.spec)
    if pod.spec.has("resources"):
        yield from _check_pod_level_claims(pod.spec)


def _check_static_pod(pod: Pod) -> Iterator[Problem]:
    """Yield the problems that ValidatePod of a mirror pod would report."""
    if _MIRROR in pod.parts.present:
        message = (
            f"must not be set because annotation {_MIRROR} marks a static pod, and a static pod cannot have claims"
        )
        fix = "remove the claims, or remove the annotation if the pod is not static"
        yield STATIC_POD.problem(pod.spec.path("resourceClaims"), message, fix)


def validate_pod_resource_claim(claim: PodClaim) -> Iterator[Problem]:
    """Yield the problems that validatePodResourceClaim would report: the names of one entry of spec.resourceClaims."""
    yield from _check_claim_name(claim)
    yield from _check_source_name(claim, "resourceClaimName", claim.resource_claim_name, "ResourceClaim")
    yield from _check_source_name(
        claim, "resourceClaimTemplateName", claim.resource_claim_template_name, "ResourceClaimTemplate"
    )


def _check_claim_name(claim: PodClaim) -> Iterator[Problem]:
    if not claim.name:
        message = "is not set, but containers refer to a claim by its name"
        yield CLAIM_NAME.problem(claim.path("name"), message, "set a name such as gpu")
    elif not has_placeholder_variable(claim.name) and dns1123_label_errors(claim.name):
        message = f"cannot be the name of a claim because {label_fault(claim.name)}"
        yield CLAIM_NAME.problem(claim.path("name"), message, _LABEL, claim.name)


def _check_source_name(claim: PodClaim, field: str, name: str, kind: str) -> Iterator[Problem]:
    if name and not has_placeholder_variable(name) and dns1123_subdomain_errors(name):
        message = f"cannot be the name of a {kind} because {subdomain_fault(name)}"
        yield SOURCE_NAME.problem(claim.path(field), message, f"write the name of a {kind} of this namespace", name)


def validate_unique_claim_names(pod: PodSpec) -> Iterator[Problem]:
    """Yield the names that two claims of a pod or a patch have (gatherPodResourceClaimNames)."""
    first: dict[str, int] = {}
    for index, claim in enumerate(pod.resource_claims):
        if claim.name and first.setdefault(claim.name, index) != index:
            message = f"is also the name of the claim at index {first[claim.name]}"
            yield CLAIM_NAME_TWICE.problem(claim.path("name"), message, "give each claim its own name", claim.name)


def _validate_claims_of_containers(pod: PodSpec, view: ClusterView) -> Iterator[Problem]:
    """Yield the problems of the claims that the containers of a pod use."""
    taking = [container for container in pod.all_containers() if container.resources.claims]
    declared = dict.fromkeys(claim.name for claim in pod.resource_claims) if taking else {}
    is_open = any(map(has_placeholder_variable, declared))  # a name that is filled in later may be any
    for container in taking:
        yield from validate_container_resource_claims(container)
        if not is_open:
            yield from _check_undeclared_claims(container, declared, view)


def validate_container_resource_claims(container: Container) -> Iterator[Problem]:
    """Yield claims that a container uses twice, and invalid names (validateContainerResourceClaims)."""
    before: dict[str, set[str]] = {}
    for claim in container.resources.claims:
        requests = before.setdefault(claim.name, set())
        if not claim.name:
            fix = "set name to the name of an entry of spec.resourceClaims"
            yield CONTAINER_CLAIM_NAME.problem(claim.at, "is not set, so the entry refers to no claim", fix)
        elif claim.request and not has_placeholder_variable(claim.request) and dns1123_label_errors(claim.request):
            message = f"cannot be the name of a request because {label_fault(claim.request)}"
            fix = "write the name of a request of the claim"
            yield REQUEST_NAME.problem(claim.path("request"), message, fix, claim.request)
        elif requests and (not claim.request or not requests.isdisjoint((claim.request, ""))):
            yield _claim_taken_twice_problem(claim, requests)
        requests.add(claim.request)


def _claim_taken_twice_problem(claim: ContainerClaim, before: Collection[str]) -> Problem:
    what = f"request `{claim.request}` of claim" if claim.request else "claim"
    listed = "the whole claim" if "" in before else "this request" if claim.request else "a request of this claim"
    message = f"lists {what} `{claim.name}`, but an entry before it in this container already lists {listed}"
    return TAKEN_TWICE.problem(claim.at, message, "remove one of the two entries")


def _check_undeclared_claims(container: Container, declared: Collection[str], view: ClusterView) -> Iterator[Problem]:
    """Yield the problems that validateResourceClaimNames would report: a container uses claims of its pod."""
    for claim in container.resources.claims:
        if claim.name and claim.name not in declared and not has_placeholder_variable(claim.name):
            near = view.nearest(claim.name, declared)
            fix = (
                f"write `{near}` if that is meant, or declare the claim there"
                if near
                else "declare the claim there, or correct the name"
            )
            message = "is not declared in spec.resourceClaims, but a container can use only the claims of its pod"
            yield UNDECLARED.problem(claim.path("name"), message, fix, claim.name)


def _check_ephemeral_containers(pod: PodSpec) -> Iterator[Problem]:
    """Yield the problems that validateEphemeralContainers would report."""
    for container in pod.ephemeral_containers:
        if container.resources.claims:
            message = "must not be set because an ephemeral container uses the resources that its pod already has"
            yield EPHEMERAL_CONTAINER.problem(container.resources.at, message, "remove resources from this container")


def _check_pod_level_claims(pod: PodSpec) -> Iterator[Problem]:
    """Yield the problems that validatePodResources would report."""
    if pod.resources.claims:
        message = "must not be set because claims are given to containers, not to a pod as a whole"
        fix = "list the claims in resources.claims of the containers"
        yield POD_LEVEL.problem(pod.resources.path("claims"), message, fix)


def validate_no_node_name(subject: Subject) -> Iterator[Problem]:
    """Yield the problem of a new pod with claims that names its node, because only the scheduler allocates claims."""
    pod = subject.typed(Pod).spec
    if pod.node_name and subject.attributes.operation is Operation.CREATE:
        message = (
            "must not be set on a pod with claims because only the scheduler allocates claims, so the pod never starts"
        )
        fix = "use the node selector kubernetes.io/hostname instead"
        yield NODE_NAME.problem(pod.path("nodeName"), message, fix, pod.node_name)


def check_unused_and_shared_claims(subject: Subject) -> Iterator[Problem]:
    """Yield the claims that no container uses, and those that all pods of a template share."""
    for claim in subject.once(pod_claims).claims:
        yield from _check_unused_claim(claim, subject)
        if subject.template_of is not None:
            yield from _check_shared_claim(claim, subject.pods or 1)


def _check_unused_claim(claim: ResolvedClaim, subject: Subject) -> Iterator[Problem]:
    if not claim.users and may_devices_stay_idle(claim) and (claim.is_found or not subject.once(has_device_requests)):
        message = f"no container uses claim `{claim.name}`{consequence_of_unused_claim(claim)}"
        fix = "name the claim in resources.claims of a container, or remove the claim"
        yield UNUSED.problem(claim.at, message, fix)


def may_devices_stay_idle(claim: ResolvedClaim) -> bool:
    """Return whether devices of a claim stay idle if no container names it; true for a claim that is not found."""
    return not claim.is_found or any(request.device.kind in _STAYS_IDLE for request in claim.requests)


def consequence_of_unused_claim(claim: ResolvedClaim) -> str:
    """Return the end of a sentence with the consequence of a claim that no container names; "" if it is not known."""
    if claim.is_found:
        return ", so the devices of the claim are allocated and stay idle"
    if claim.absence.is_absent or claim.absence.is_promised or not claim.reference:
        return ""
    source = f"{claim.kind} `{claim.reference}`"
    return f", so the GPUs of the claim, if any, stay idle ({source} was not found)"


def _check_shared_claim(claim: ResolvedClaim, pods: int) -> Iterator[Problem]:
    """Yield the problem of a ResourceClaim that several pods share, if its devices cannot be shared."""
    if pods <= 1 or claim.source != "claim":
        return
    is_exclusive = claim.is_found and claim.contents.is_exclusive
    message = f"{pods} pods share ResourceClaim `{claim.reference}` and its devices"
    if pods > _MOST_PODS:
        message += f", but a claim serves at most {_MOST_PODS} pods"
        yield SHARED.problem(claim.at, message, OWN_DEVICES if is_exclusive else USE_TEMPLATE)
    elif is_exclusive:
        yield SHARED.problem(claim.at, message, OWN_DEVICES)
