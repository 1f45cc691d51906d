"""Checks the objects that claims of a pod refer to, admin access in their templates, and GPUs requested twice.

An object counts as absent only if it is known to be absent: in the view of a whole cluster. Otherwise the rule is
reported as not checked. A ComputeDomain creates its template, so that template counts as existing. A container that
asks for a vendor's GPUs by a claim and as an extended resource gets both. Multi-node jobs correctly claim NICs and
ComputeDomain channels in addition to a GPU.

Source: k8s.io/kubernetes v1.36 pkg/registry/resource/utils.go AuthorizedForAdmin.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from msgspec.structs import replace

from webhook.facts.dra.device_claims_classes import validate_class_exists
from webhook.facts.dra.pod_claims import TEMPLATE, ClaimReference, PodClaim, allows_admin_access, pod_claims
from webhook.facts.dra.types import DEVICE_CLAIMS_ADVICE
from webhook.facts.gpu import devices
from webhook.facts.subject import Subject
from webhook.rules.problem import MissingObject, Problem
from webhook.text.wording import named
from webhook.typed.collections import Items
from webhook.typed.pods import Container, Pod

ADMIN_ACCESS: Final = DEVICE_CLAIMS_ADVICE.rule(
    "device-claims/admin-access",
    title="The namespace does not allow adminAccess",
    why=(
        "Kubernetes checks the namespace again for each claim that is made from a template. It makes no claim, and the "
        "pods stay Pending."
    ),
    refused_by="the API server, when a claim is made from the template",
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
    title="The claim has no request of this name",
    why="The container starts without a device.",
    source="k8s.io/api v0.36.1 core/v1 types.go ResourceClaim",
)
GPU_ASKED_TWICE: Final = DEVICE_CLAIMS_ADVICE.rule(
    "device-claims/gpu-asked-twice",
    title="The container asks for a GPU twice: by a claim and as a resource",
    why="The container gets two GPUs of the same kind, and one probably stays idle.",
    issues=("https://github.com/kubeflow/trainer/pull/3540",),
)


def validate_admin_access(claim: PodClaim, subject: Subject) -> Iterator[Problem]:
    """Yield the problem of AuthorizedForAdmin, which the API server checks for every claim created from a template."""
    if not claim.contents.has_admin_access or claim.source != "template":
        return
    view = subject.cluster_view()
    allowed = allows_admin_access(view)
    if allowed is None:
        yield ADMIN_ACCESS.problem(claim.at, missing=view.missing_objects_by_field()[""])
    elif not allowed:
        label = 'the label resource.kubernetes.io/admin-access: "true"'
        asks = f"{view.name_with_file(TEMPLATE, claim.reference, view.namespace)} asks for admin access"
        message = f"{asks}, but this namespace lacks {label}, so no claim is created, and the pods stay Pending"
        yield ADMIN_ACCESS.problem(claim.at, message, "use a namespace with that label")


def validate_claims(subject: Subject) -> Iterator[Problem]:
    """Yield claims with an object or class that does not exist, or that the namespace does not allow."""
    for claim in subject.once(pod_claims).claims:
        yield from _check_claim_exists(claim, subject)
        for request in claim.requests:
            asks = f"{claim.kind} `{claim.reference}` asks for DeviceClass"
            state = claim.contents.classes[request.device_class]
            yield from validate_class_exists(request.device_class, state, asks, claim.at, subject)
        yield from validate_admin_access(claim, subject)


def _check_claim_exists(claim: PodClaim, subject: Subject) -> Iterator[Problem]:
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


def _missing_objects(claim: PodClaim, subject: Subject) -> tuple[MissingObject, ...]:
    """Return the claim or the template that does not exist, with the reason."""
    view = subject.cluster_view()
    if claim.referenced_kind:
        view.find(claim.referenced_kind, claim.reference)
    missing, elsewhere = view.all_missing_objects(), claim.absence.elsewhere
    if not elsewhere:
        return missing
    why = f"not found in namespace {subject.namespace}, but in {', '.join(elsewhere)}"
    return tuple(replace(each, why=why) if each.why == "not found" else each for each in missing)


def validate_requests(subject: Subject) -> Iterator[Problem]:
    """Yield requests that containers name and their claims do not have."""
    for reference in subject.once(pod_claims).references:
        if reference.request and reference.claim is not None:
            yield from _check_request_exists(reference, reference.claim, subject)


def _check_request_exists(reference: ClaimReference, claim: PodClaim, subject: Subject) -> Iterator[Problem]:
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
    """The extended resources for the GPUs of a claim, and the vendors of these."""

    resources: frozenset[str]
    vendors: frozenset[str]

    def has_resource(self, resource: str) -> bool:
        """Return whether an extended resource is for such GPUs."""
        return resource in self.resources or _vendor_of_resource(resource) in self.vendors


def advise_gpu_requested_twice(subject: Subject) -> Iterator[Problem]:
    """Yield containers that ask for a GPU both ways."""
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
                yield GPU_ASKED_TWICE.problem(container.at, message, "keep either the claim or the request")


def _gpu_resources_of_container(container: Container, gpus: _GpuResources) -> Items[str]:
    """Return the extended resources of a container for such GPUs."""
    names = dict.fromkeys((*container.resources.requests, *container.resources.limits))
    return Items([name for name in names if gpus.has_resource(name)], container.reading.deadline)


def _gpu_resources_of_claim(claim: PodClaim) -> _GpuResources:
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
