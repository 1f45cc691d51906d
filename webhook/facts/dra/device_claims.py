"""The rules for the device claims of pods and pod templates, and for the objects that the claims refer to.

The API server checks the claims of pods, but not the claims of pod templates. The policy claims-exactly-one checks that
a claim has exactly one source.

An object counts as absent only if the view has all objects of the cluster. Otherwise the rule is reported as not
checked. A ComputeDomain creates a ResourceClaimTemplate, so this template counts as existing. A container may request
GPUs of a vendor both by a claim and as an extended resource. The container then gets the GPUs of both requests, and is
reported. If a container has claims for NICs or ComputeDomain channels in addition to GPUs, these claims are not
reported, because multi-node jobs need such claims.

Source: k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go, and pkg/registry/resource/utils.go
AuthorizedForAdmin for admin access.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import islice
from typing import Final, NamedTuple

from msgspec.structs import replace

from webhook.apimachinery.attributes import Operation
from webhook.apimachinery.names import (
    dns1123_label_errors,
    dns1123_subdomain_errors,
    label_fault,
    label_fix,
    subdomain_fault,
)
from webhook.facts.dra.device_claims_classes import validate_class_exists
from webhook.facts.dra.pod_claims import TEMPLATE, ClaimReference, pod_claims, why_no_admin_access
from webhook.facts.dra.pod_claims import PodClaim as ResolvedClaim
from webhook.facts.dra.types import DEVICE_CLAIMS, DEVICE_CLAIMS_ADVICE
from webhook.facts.gpu import devices
from webhook.facts.gpu.resources import has_device_requests
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.rules.problem import MissingObject, Problem
from webhook.text.wording import either, named
from webhook.typed.collections import Items
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
    title="A claim of the pod names a ResourceClaim or template with an invalid name",
    why="No object can have this name, so the API server refuses the reference.",
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
    why="The name says which claim of the pod the container uses.",
    function="validateContainerResourceClaims",
)
REQUEST_NAME: Final = DEVICE_CLAIMS.rule(
    "device-claims/request-name",
    title="The request name is not a DNS label",
    why="Containers refer to the request by this name. The API server accepts only a DNS label.",
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
    title="The pod-level resources list claims",
    why="Kubernetes allocates devices to containers, not to a pod as a whole.",
    function="validatePodResources",
)
STATIC_POD: Final = DEVICE_CLAIMS.rule(
    "device-claims/static-pod",
    title="A static pod has claims",
    why="The kubelet runs static pods from files without the scheduler, and only the scheduler allocates claims.",
    function="ValidatePod",
)
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
        "The pods use the same devices, and at most 256 pods can share a ResourceClaim. Claims for channels, network "
        "devices, admin access, shares of a capacity and shared GPUs, and claims named `shared`, are not reported."
    ),
    source="k8s.io/api v0.36.1 resource/v1 types.go ResourceClaimReservedForMaxSize",
    severity="low",
)
UNUSED: Final = DEVICE_CLAIMS_ADVICE.rule(
    "device-claims/unused",
    title="No container of the pod uses the claim",
    why="The devices of the claim are allocated and reserved for the pod, and stay idle.",
    severity="low",
)
ADMIN_ACCESS: Final = DEVICE_CLAIMS_ADVICE.rule(
    "device-claims/admin-access",
    title="A claim of the pod needs adminAccess, which the namespace does not allow",
    why=(
        "Kubernetes creates no claim with adminAccess in this namespace, because the namespace lacks a label. The pods "
        "stay Pending."
    ),
    refused_by="the API server, when a claim is created from the template",
    source="k8s.io/kubernetes v1.36 pkg/registry/resource/utils.go",
    function="AuthorizedForAdmin",
    fails="controller",
)
CLAIM_EXISTS: Final = DEVICE_CLAIMS_ADVICE.rule(
    "device-claims/claim-exists",
    title="The ResourceClaim or ResourceClaimTemplate does not exist",
    why="The pods stay Pending until the claim or template exists in their namespace.",
    source="k8s.io/dynamic-resource-allocation v0.36.1 resourceclaim/claim.go",
    fails="pending",
    issues=("https://github.com/opendatahub-io/architecture-decision-records/pull/158",),
)
REQUEST_EXISTS: Final = DEVICE_CLAIMS_ADVICE.rule(
    "device-claims/request-exists",
    title="The container uses a request that the claim does not have",
    why="The container starts without a device.",
    source="k8s.io/api v0.36.1 core/v1 types.go ResourceClaim",
)
GPU_ASKED_TWICE: Final = DEVICE_CLAIMS_ADVICE.rule(
    "device-claims/gpu-asked-twice",
    title="The container requests a GPU twice: by a claim and as a resource",
    why="The container gets two GPUs of the same kind, and probably uses only one of them.",
    issues=("https://github.com/kubeflow/trainer/pull/3540",),
)
_MIRROR: Final = "kubernetes.io/config.mirror"
_MOST_NAMED: Final = 3
"""A fix names at most this number of claims."""
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
    """Yield the problem that ValidatePod would report about claims of a mirror pod, the API's copy of a static pod."""
    if _MIRROR in pod.parts.present:
        message = (
            f"must not be set because annotation {_MIRROR} marks a static pod, and a static pod cannot have claims"
        )
        fix = "remove the claims, or remove the annotation if the pod is not static"
        yield STATIC_POD.problem(pod.spec.path("resourceClaims"), message, fix)


def validate_pod_resource_claim(claim: PodClaim) -> Iterator[Problem]:
    """Yield the problems that validatePodResourceClaim would report about the names in an entry of
    spec.resourceClaims.
    """
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
        yield CLAIM_NAME.problem(claim.path("name"), message, label_fix(claim.name), claim.name)


def _check_source_name(claim: PodClaim, field: str, name: str, kind: str) -> Iterator[Problem]:
    if name and not has_placeholder_variable(name) and dns1123_subdomain_errors(name):
        message = f"cannot be the name of a {kind} because {subdomain_fault(name)}"
        yield SOURCE_NAME.problem(claim.path(field), message, f"write the name of a {kind} of this namespace", name)


def validate_unique_claim_names(pod: PodSpec) -> Iterator[Problem]:
    """Report a name that is used for two claims of a pod or a patch (gatherPodResourceClaimNames)."""
    first: dict[str, int] = {}
    for index, claim in enumerate(pod.resource_claims):
        if claim.name and first.setdefault(claim.name, index) != index:
            message = f"is also the name of the claim at index {first[claim.name]}"
            yield CLAIM_NAME_TWICE.problem(claim.path("name"), message, "give each claim its own name", claim.name)


def _validate_claims_of_containers(pod: PodSpec, view: ClusterView) -> Iterator[Problem]:
    """Yield the problems of the claims that the containers of a pod use."""
    taking = [container for container in pod.all_containers() if container.resources.claims]
    declared = dict.fromkeys(claim.name for claim in pod.resource_claims) if taking else {}
    has_placeholders = any(map(has_placeholder_variable, declared))  # a placeholder may become any name
    for container in taking:
        yield from validate_container_resource_claims(container)
        if not has_placeholders:
            yield from _check_undeclared_claims(container, declared, view)


def validate_container_resource_claims(container: Container) -> Iterator[Problem]:
    """Report claims that a container lists twice, and invalid names (validateContainerResourceClaims)."""
    before: dict[str, set[str]] = {}
    for claim in container.resources.claims:
        requests = before.setdefault(claim.name, set())
        if not claim.name:
            fix = "set name to the name of an entry of spec.resourceClaims"
            yield CONTAINER_CLAIM_NAME.problem(claim.at, "name is not set, so the entry refers to no claim", fix)
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
    message = f"lists {what} `{claim.name}`, but an earlier entry of this container already lists {listed}"
    return TAKEN_TWICE.problem(claim.at, message, "remove one of the two entries")


def _check_undeclared_claims(container: Container, declared: Collection[str], view: ClusterView) -> Iterator[Problem]:
    """Yield the problems that validateResourceClaimNames would report about claims that the pod does not declare."""
    listed = {claim.name for claim in container.resources.claims}
    unlisted = [name for name in declared if name not in listed]
    for claim in container.resources.claims:
        if claim.name and claim.name not in declared and not has_placeholder_variable(claim.name):
            near = view.nearest(claim.name, unlisted)
            declaring = f"declare `{claim.name}` there"
            if near:
                fix = f"write `{near}` if that is meant, or {declaring}"
            elif unlisted:
                fix = f"{declaring}, or use {either(f'`{name}`' for name in islice(unlisted, _MOST_NAMED))}"
            else:
                fix = f"{declaring}, or remove this entry"
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
        message = "must not be set because devices are allocated to containers, not to a pod as a whole"
        fix = "list the claims in resources.claims of the containers"
        yield POD_LEVEL.problem(pod.resources.path("claims"), message, fix)


def validate_no_node_name(subject: Subject) -> Iterator[Problem]:
    """Report nodeName on a new pod with claims, because only the scheduler allocates claims."""
    pod = subject.typed(Pod).spec
    if pod.node_name and subject.attributes.operation is Operation.CREATE:
        message = (
            "must not be set on a pod with claims because only the scheduler allocates claims, so the pod never starts"
        )
        fix = "use the node selector kubernetes.io/hostname instead"
        yield NODE_NAME.problem(pod.path("nodeName"), message, fix, pod.node_name)


_SAYS_SHARED: Final = re.compile(r"(?<![a-z])shared(?![a-z])")
"""Matches the name of a claim that pods share on purpose."""


def check_unused_and_shared_claims(subject: Subject) -> Iterator[Problem]:
    """Report claims that no container uses, and ResourceClaims that all pods of a template share."""
    for claim in subject.once(pod_claims).claims:
        yield from _check_unused_claim(claim, subject)
        if subject.template_of is not None:
            yield from _check_shared_claim(claim, subject.pods or 1)


def _check_unused_claim(claim: ResolvedClaim, subject: Subject) -> Iterator[Problem]:
    if not claim.users and may_devices_stay_idle(claim) and (claim.is_found or not subject.once(has_device_requests)):
        message = f"no container uses claim `{claim.name}`{consequence_of_unused_claim(claim)}"
        fix = "name the claim in resources.claims of a container, or remove the claim"
        yield UNUSED.problem(claim.at, message, fix)


_SAYS_DEVICE: Final = re.compile(r"(?i)gpu|cuda|nvidia|accel|gaudi|neuron|(?<![a-z])(?:mig|[tnx]pu)")
"""Matches names of claims for devices that only containers use. Often no container names a claim for a network."""


def may_devices_stay_idle(claim: ResolvedClaim) -> bool:
    """Return whether the devices of a claim stay idle if no container names the claim. If the claim is not found, its
    names show its purpose.
    """
    if claim.is_found or not claim.kind:
        return not claim.is_found or any(request.device.kind in _STAYS_IDLE for request in claim.requests)
    return any(map(_SAYS_DEVICE.search, (claim.name, claim.reference)))


def consequence_of_unused_claim(claim: ResolvedClaim) -> str:
    """Return the consequence of a claim that no container names, as the end of a message. Return "" for a claim that is
    known to be absent, that a ComputeDomain creates, or that names no object.
    """
    if claim.is_found:
        return ", so the devices of the claim are allocated and stay idle"
    if claim.absence.is_absent or claim.absence.is_promised or not claim.kind or not claim.reference:
        return ""
    source = f"{claim.kind} `{claim.reference}`"
    return f", so any GPUs of the claim stay idle ({source} was not found)"


def _check_shared_claim(claim: ResolvedClaim, pods: int) -> Iterator[Problem]:
    """Report a ResourceClaim that several pods share, if pods cannot share its devices or if the pods are too many."""
    if pods <= 1 or claim.source != "claim":
        return
    is_exclusive = claim.is_found and claim.contents.is_exclusive
    message = f"{pods} pods share ResourceClaim `{claim.reference}` and its devices"
    if pods > _MOST_PODS:
        message += f", but a claim serves at most {_MOST_PODS} pods"
        yield SHARED.problem(claim.at, message, OWN_DEVICES if is_exclusive else USE_TEMPLATE)
    elif is_exclusive and not any(map(_SAYS_SHARED.search, (claim.name, claim.reference))):
        yield SHARED.problem(claim.at, message, OWN_DEVICES)


def validate_admin_access(claim: ResolvedClaim, subject: Subject) -> Iterator[Problem]:
    """Report a template with admin access in a namespace that does not allow admin access. The API server calls
    AuthorizedForAdmin for every claim that is created from the template.
    """
    if not claim.contents.has_admin_access or claim.source != "template":
        return
    view = subject.cluster_view()
    why = why_no_admin_access(view)
    if why is None:
        yield ADMIN_ACCESS.problem(claim.at, missing=view.missing_objects_by_field()[""])
    elif why:
        request_text = f"{view.name_with_file(TEMPLATE, claim.reference, view.namespace)} requests admin access"
        message = f"{request_text}, but this namespace {why}, so no claim is created, and the pods stay Pending"
        fix = "use a namespace with that label, or a template without adminAccess"
        yield ADMIN_ACCESS.problem(claim.at, message, fix)


def validate_claims(subject: Subject) -> Iterator[Problem]:
    """Report absent claims and templates, absent DeviceClasses, and admin access that the namespace does not allow."""
    for claim in subject.once(pod_claims).claims:
        yield from _check_claim_exists(claim, subject)
        for request in claim.requests:
            request_text = f"{claim.kind} `{claim.reference}` requests DeviceClass"
            state = claim.contents.classes[request.device_class]
            yield from validate_class_exists(request.device_class, state, request_text, claim.at, subject)
        yield from validate_admin_access(claim, subject)


def _check_claim_exists(claim: ResolvedClaim, subject: Subject) -> Iterator[Problem]:
    absence = claim.absence
    if not absence.is_absent:
        if not claim.is_found and claim.referenced_kind and subject.namespace and not absence.is_promised:
            yield CLAIM_EXISTS.problem(claim.at, missing=_missing_objects(claim, subject))
        return
    where, fix = "does not exist in this namespace", f"create the {claim.kind}, or correct the name"
    if absence.nearest:
        fix = f"write `{absence.nearest}` if that is meant, or create the {claim.kind}"
    elif absence.elsewhere:
        others = named([f"`{name}`" for name in absence.elsewhere], "namespace")
        where = f"is not in namespace `{subject.namespace}` but in {others}"
        fix = f"create the {claim.kind} in namespace `{subject.namespace}`"
    message = f"{claim.kind} `{claim.reference}` {where}, so the pods stay Pending"
    yield CLAIM_EXISTS.problem(claim.at, message, fix)


def _missing_objects(claim: ResolvedClaim, subject: Subject) -> tuple[MissingObject, ...]:
    """Return the missing objects of a review, among them the claim or template. If other namespaces have an object of
    this name, the text `why` of an object that was not found names these namespaces.
    """
    view = subject.cluster_view()
    if claim.referenced_kind:
        view.find(claim.referenced_kind, claim.reference)
    missing, elsewhere = view.all_missing_objects(), claim.absence.elsewhere
    if not elsewhere:
        return missing
    why = f"not found in namespace {subject.namespace}, but in {', '.join(elsewhere)}"
    return tuple(replace(each, why=why) if each.why == "not found" else each for each in missing)


def validate_requests(subject: Subject) -> Iterator[Problem]:
    """Report requests that containers name but that the claims do not have."""
    for reference in subject.once(pod_claims).references:
        if reference.request and reference.claim is not None:
            yield from _check_request_exists(reference, reference.claim, subject)


def _check_request_exists(reference: ClaimReference, claim: ResolvedClaim, subject: Subject) -> Iterator[Problem]:
    path = (*reference.at, "request")
    if reference.is_resolved:
        if not reference.is_request_found:
            message = f"is not a request of claim `{reference.name}`, so the container gets no device"
            near = reference.nearest_request
            fix = f"write `{near}` if that is meant" if near else "write the name of a request of the claim"
            yield REQUEST_EXISTS.problem(path, message, fix, reference.request)
    elif claim.referenced_kind and not claim.absence.is_absent and subject.namespace:
        yield REQUEST_EXISTS.problem(path, missing=_missing_objects(claim, subject))


class _GpuResources(NamedTuple):
    """The extended resources and the vendors of the GPUs of a claim."""

    resources: frozenset[str]
    vendors: frozenset[str]

    def has_resource(self, resource: str) -> bool:
        """Return whether an extended resource counts GPUs of the claim's class or vendor."""
        return resource in self.resources or _vendor_of_resource(resource) in self.vendors


def advise_gpu_requested_twice(subject: Subject) -> Iterator[Problem]:
    """Report containers that request a GPU both by a claim and as an extended resource."""
    by_name = {
        claim.name: _gpu_resources_of_claim(claim) for claim in subject.once(pod_claims).claims if claim.contents.is_gpu
    }
    for container in subject.typed(Pod).spec.all_containers() if by_name else ():
        asked: dict[_GpuResources, Items[str]] = {}
        for claim in container.resources.claims:
            if (gpus := by_name.get(claim.name)) is None:
                continue
            if gpus not in asked:
                asked[gpus] = _gpu_resources_of_container(container, gpus)
            for resource in asked[gpus]:
                message = (
                    f"uses claim `{claim.name}` and requests `{resource}`, which are the same kind of GPU, so the "
                    "container gets both"
                )
                yield GPU_ASKED_TWICE.problem(container.at, message, "remove either the claim or the request")


def _gpu_resources_of_container(container: Container, gpus: _GpuResources) -> Items[str]:
    """Return the extended resources of a container that count GPUs of the claim's class or vendor."""
    names = dict.fromkeys((*container.resources.requests, *container.resources.limits))
    return Items([name for name in names if gpus.has_resource(name)], container.reading.deadline)


def _gpu_resources_of_claim(claim: ResolvedClaim) -> _GpuResources:
    asked = [request for request in claim.requests if request.is_gpu]
    states = claim.contents.classes
    return _GpuResources(
        frozenset(states[request.device_class].extended_resource for request in asked),
        frozenset(request.device.vendor for request in asked) - {""},
    )


def _vendor_of_resource(name: str) -> str:
    """Return the vendor of the devices that a resource counts; "" if it counts no devices."""
    known = devices.device_of_resource_name(name)
    return known.vendor if known.kind in devices.COUNTED else ""
