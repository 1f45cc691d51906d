"""Kubernetes' own rules for the device claims of pods, for the kinds whose templates Kubernetes does not check.

Source: k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go. That a claim has exactly one source is the
policy claims-exactly-one's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from webhook.facts.dra.groups import DEVICE_CLAIMS
from webhook.facts.subject import Subject
from webhook.facts.view import View
from webhook.name_faults import label_fault, subdomain_fault
from webhook.names import dns1123_label, dns1123_subdomain
from webhook.placeholders import names_variable
from webhook.problem import Problem
from webhook.typed.pods import Container, ContainerClaim, Pod, PodClaim, PodSpec

CLAIM_NAME: Final = DEVICE_CLAIMS.rule(
    "device-claims/claim-name",
    title="The name of a claim is a DNS label.",
    why="Containers refer to the claim by this name, and the API server takes no other.",
    function="validatePodResourceClaim",
)
SOURCE_NAME: Final = DEVICE_CLAIMS.rule(
    "device-claims/source-name",
    title="A claim names a ResourceClaim or a ResourceClaimTemplate by a name that objects can have.",
    why="No object has another name, so the API server refuses it.",
    function="validatePodResourceClaim",
)
CLAIM_NAME_TWICE: Final = DEVICE_CLAIMS.rule(
    "device-claims/claim-name-twice",
    title="The claims of a pod have different names.",
    why="Nobody could tell which of two claims of one name a container means.",
    function="gatherPodResourceClaimNames",
)
UNDECLARED: Final = DEVICE_CLAIMS.rule(
    "device-claims/undeclared",
    title="A container takes claims that its pod declares.",
    why="A container has access only to the claims of its own pod.",
    function="validateResourceClaimNames",
)
CONTAINER_CLAIM_NAME: Final = DEVICE_CLAIMS.rule(
    "device-claims/container-claim-name",
    title="A container takes a claim by its name.",
    why="Without a name, nobody knows which claim the container takes.",
    function="validateContainerResourceClaims",
)
REQUEST_NAME: Final = DEVICE_CLAIMS.rule(
    "device-claims/request-name",
    title="A container names a request of a claim by a DNS label.",
    why="Requests have no other names.",
    function="validateContainerResourceClaims",
)
TAKEN_TWICE: Final = DEVICE_CLAIMS.rule(
    "device-claims/taken-twice",
    title="A container takes a claim, or each of its requests, once.",
    why="The devices of a request are given to a container once.",
    function="validateContainerResourceClaims",
)
EPHEMERAL_CONTAINER: Final = DEVICE_CLAIMS.rule(
    "device-claims/ephemeral-container",
    title="An ephemeral container takes no claims.",
    why="It is added to a running pod and uses what that has.",
    function="validateEphemeralContainers",
)
POD_LEVEL: Final = DEVICE_CLAIMS.rule(
    "device-claims/pod-level",
    title="A pod as a whole takes no claims.",
    why="Devices are given to containers.",
    function="validatePodResources",
)
STATIC_POD: Final = DEVICE_CLAIMS.rule(
    "device-claims/static-pod",
    title="A static pod has no claims.",
    why="The kubelet runs static pods from files without the scheduler, which allocates claims.",
    function="ValidatePod",
)

_LABEL: Final = "use at most 63 lower-case letters, digits and dashes, such as gpu"
_MIRROR: Final = "kubernetes.io/config.mirror"


def validate_pod_claims(subject: Subject) -> Iterator[Problem]:
    """What Kubernetes refuses of the claims of a pod and of its containers."""
    pod = subject.typed(Pod)
    if pod.spec.resource_claims:
        if subject.template_of is None:
            yield from _static_pod(pod)
        for claim in pod.spec.resource_claims:
            yield from validate_pod_resource_claim(claim)
        yield from validate_claim_names(pod.spec)
    yield from _validate_containers(pod.spec, subject.view())
    if pod.spec.has("ephemeralContainers"):
        yield from _ephemeral_containers(pod.spec)
    if pod.spec.has("resources"):
        yield from _pod_level(pod.spec)


def _static_pod(pod: Pod) -> Iterator[Problem]:
    """As ValidatePod of a mirror pod."""
    if _MIRROR in pod.parts.present:
        message = (
            f"must not be set because annotation {_MIRROR} marks a static pod, and a static pod cannot have claims"
        )
        fix = "remove the claims, or remove the annotation if the pod is not static"
        yield STATIC_POD.problem(pod.spec.path("resourceClaims"), message, fix)


def validate_pod_resource_claim(claim: PodClaim) -> Iterator[Problem]:
    """As validatePodResourceClaim: the names of one entry of spec.resourceClaims."""
    yield from _claim_name(claim)
    yield from _source_name(claim, "resourceClaimName", claim.resource_claim_name, "ResourceClaim")
    yield from _source_name(
        claim, "resourceClaimTemplateName", claim.resource_claim_template_name, "ResourceClaimTemplate"
    )


def _claim_name(claim: PodClaim) -> Iterator[Problem]:
    if not claim.name:
        message = "must be set because containers refer to the claim by its name"
        yield CLAIM_NAME.problem(claim.path("name"), message, "set a name such as gpu")
    elif not names_variable(claim.name) and dns1123_label(claim.name):
        message = f"cannot be the name of a claim because {label_fault(claim.name)}"
        yield CLAIM_NAME.problem(claim.path("name"), message, _LABEL, claim.name)


def _source_name(claim: PodClaim, field: str, name: str, kind: str) -> Iterator[Problem]:
    if name and not names_variable(name) and dns1123_subdomain(name):
        message = f"cannot be the name of a {kind} because {subdomain_fault(name)}"
        yield SOURCE_NAME.problem(claim.path(field), message, f"write the name of a {kind} of this namespace", name)


def validate_claim_names(pod: PodSpec) -> Iterator[Problem]:
    """As gatherPodResourceClaimNames: the entries of a list have different names, in a patch as well."""
    first: dict[str, int] = {}
    for index, claim in enumerate(pod.resource_claims):
        if claim.name and first.setdefault(claim.name, index) != index:
            message = f"is also the name of the claim at index {first[claim.name]}"
            yield CLAIM_NAME_TWICE.problem(claim.path("name"), message, "give each claim its own name", claim.name)


def _validate_containers(pod: PodSpec, view: View) -> Iterator[Problem]:
    """The claims that containers take."""
    taking = [container for container in pod.all_containers() if container.resources.claims]
    declared = dict.fromkeys(claim.name for claim in pod.resource_claims) if taking else {}
    is_open = any(map(names_variable, declared))  # a name that is filled in later may be any
    for container in taking:
        yield from validate_container_resource_claims(container)
        if not is_open:
            yield from _undeclared(container, declared, view)


def validate_container_resource_claims(container: Container) -> Iterator[Problem]:
    """As validateContainerResourceClaims: a container takes each claim once, whole or each of its requests once."""
    before: dict[str, set[str]] = {}
    for claim in container.resources.claims:
        requests = before.setdefault(claim.name, set())
        if not claim.name:
            fix = "set name to the name of an entry of spec.resourceClaims"
            yield CONTAINER_CLAIM_NAME.problem(claim.at, "must have the name of a claim", fix)
        elif claim.request and not names_variable(claim.request) and dns1123_label(claim.request):
            message = f"cannot be the name of a request because {label_fault(claim.request)}"
            fix = "write the name of a request of the claim"
            yield REQUEST_NAME.problem(claim.path("request"), message, fix, claim.request)
        elif requests and (not claim.request or not requests.isdisjoint((claim.request, ""))):
            yield _taken_twice(claim, requests)
        requests.add(claim.request)


def _taken_twice(claim: ContainerClaim, before: Collection[str]) -> Problem:
    what = f"request `{claim.request}` of claim" if claim.request else "claim"
    listed = "the whole claim" if "" in before else "this request" if claim.request else "a request of this claim"
    message = f"lists {what} `{claim.name}`, but an entry before it in this container already lists {listed}"
    return TAKEN_TWICE.problem(claim.at, message, "remove one of the two entries")


def _undeclared(container: Container, declared: Collection[str], view: View) -> Iterator[Problem]:
    """As validateResourceClaimNames: a container takes claims of its pod."""
    for claim in container.resources.claims:
        if claim.name and claim.name not in declared and not names_variable(claim.name):
            near = view.nearest(claim.name, declared)
            fix = (
                f"write `{near}` if that is meant, or declare the claim there"
                if near
                else "declare the claim there, or correct the name"
            )
            message = "is not declared in spec.resourceClaims, but a container can use only the claims of its pod"
            yield UNDECLARED.problem(claim.path("name"), message, fix, claim.name)


def _ephemeral_containers(pod: PodSpec) -> Iterator[Problem]:
    """As validateEphemeralContainers."""
    for container in pod.ephemeral_containers:
        if container.resources.claims:
            message = "must not be set because an ephemeral container uses the resources that its pod already has"
            yield EPHEMERAL_CONTAINER.problem(container.resources.at, message, "remove the claims")


def _pod_level(pod: PodSpec) -> Iterator[Problem]:
    """As validatePodResources."""
    if pod.resources.claims:
        message = "must not be set because claims are given to containers, not to a pod as a whole"
        fix = "list the claims in resources.claims of the containers"
        yield POD_LEVEL.problem(pod.resources.path("claims"), message, fix)
