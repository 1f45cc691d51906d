"""The requests of a device claim, in one form for all versions of resource.k8s.io.

v1beta1 and v1alpha3 have the fields of an exact request next to the name of the request. v1beta2 and v1 have these
fields under `exactly`. All four versions have alternatives under `firstAvailable`. The defaults come from
k8s.io/kubernetes v1.36 pkg/apis/resource/v1/defaults.go. A claim of v1alpha2 has one resourceClassName for the whole
claim, and is read as one request of kind `unsupported`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct, field

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath
from webhook.facts.dra.selectors import SelectorErrors, check_selector
from webhook.facts.dra.types import (
    FLAT_VERSIONS,
    GROUP,
    ClaimSpec,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimTemplate,
)
from webhook.facts.gpu.devices import UNKNOWN, DeviceCatalogueRow, device_of_class_name
from webhook.facts.subject import Subject
from webhook.typed.collections import Items
from webhook.typed.fields import Amount

_INTEGERS: Final = range(-(2**63), 2**63)
_WORK_OF_REQUEST: Final = 10
"""The charge for one request or alternative. Reading a request takes about 9 microseconds."""
_CLAIMS: Final[Mapping[tuple[str, str], type[ResourceClaim | ResourceClaimTemplate]]] = {
    (GROUP, "ResourceClaim"): ResourceClaim,
    (GROUP, "ResourceClaimTemplate"): ResourceClaimTemplate,
}
Kind: TypeAlias = Literal["exactly", "firstAvailable", "choice", "none", "both", "unsupported"]


class CheckedSelector(Struct, frozen=True):
    """A selector: the expression, its path, and the errors that the API server finds in the expression."""

    at: FieldPath
    expression: str
    errors: SelectorErrors


class DeviceRequestOfClaim(Struct, frozen=True, kw_only=True):
    """A request, or an alternative of a request.

    Args:
        name: the name of the request.
        at: the path of the request.
        kind: `exactly`, `firstAvailable`, `choice` (an alternative), `none` (no field of this version sets what is
            requested), `both` (exactly and firstAvailable) or `unsupported` (v1alpha2).
        device: the kind of devices that the name of the class suggests.
        device_class: deviceClassName.
        allocation_mode: ExactCount, All, or another written value.
        count: the number of requested devices; 0 if the value is not a number.
        has_admin_access: whether the request is for admin access.
        selectors: the selectors of the request.
        capacities: how much the request needs of each capacity of a device.
        tolerations: the tolerations of the request, as JSON.
        devices: how many devices the request gets; None if not known, as with All or firstAvailable.
        at_least: the least number of devices that the request gets.
        is_gpu: whether the devices are GPUs or parts of GPUs.
        choices: the alternatives of firstAvailable.
    """

    name: str
    at: FieldPath
    kind: Kind
    device: DeviceCatalogueRow = UNKNOWN
    device_class: str = ""
    allocation_mode: str = ""
    count: int = 0
    has_admin_access: bool = False
    selectors: tuple[CheckedSelector, ...] = ()
    capacities: Mapping[str, Amount] = field(default_factory=dict)
    tolerations: tuple[JSON, ...] = ()
    devices: int | None = None
    at_least: int = 0
    is_gpu: bool = False
    choices: tuple[DeviceRequestOfClaim, ...] = ()

    @property
    def self_and_alternatives(self) -> tuple[DeviceRequestOfClaim, ...]:
        """Return the request, followed by its alternatives (`firstAvailable`)."""
        return (self, *self.choices)


def reviewed_claim(subject: Subject) -> ResourceClaim | ResourceClaimTemplate | None:
    """Return the claim or the template that is reviewed; None for other objects."""
    kind = _CLAIMS.get(subject.group_kind)
    return subject.typed(kind) if kind else None


def requests_of_reviewed_claim(subject: Subject) -> Items[DeviceRequestOfClaim]:
    """Return the requests of a reviewed claim or template. Call this function through `Subject.once`."""
    claim = reviewed_claim(subject)
    return read_requests(claim.claim_spec, claim.version) if claim else Items((), subject.deadline)


def read_requests(spec: ClaimSpec, version: str) -> Items[DeviceRequestOfClaim]:
    """Return the requests of a claim's spec in a version of the API; empty requests are left out."""
    deadline = spec.reading.deadline
    if version == "v1alpha2":
        return Items([DeviceRequestOfClaim(name="", at=spec.at, kind="unsupported")], deadline)
    is_flat = version in FLAT_VERSIONS
    return Items([_read_request(request, is_flat=is_flat) for request in spec.devices.requests if request], deadline)


def _read_request(request: DeviceRequest, *, is_flat: bool) -> DeviceRequestOfClaim:
    exact = request.flat_request if is_flat else request.exactly
    choices = [choice for choice in request.first_available if choice]
    if choices:
        return _request_with_alternatives(request, choices, "both" if exact else "firstAvailable")
    if exact:
        return _request_for_one_class(request.name, "exactly", exact, has_admin_access=exact.admin_access)
    meant = request.flat_request or request.exactly
    if meant:  # the API server refuses this form of another version, but the meaning is clear
        return _request_for_one_class(request.name, "none", ExactDeviceRequest(meant.json, request.at, request.reading))
    return DeviceRequestOfClaim(name=request.name, at=request.at, kind="none")


def _request_with_alternatives(
    request: DeviceRequest, listed: Sequence[DeviceSubRequest], kind: Kind
) -> DeviceRequestOfClaim:
    choices = tuple(_request_for_one_class(choice.name, "choice", choice) for choice in listed)
    counts = {choice.devices for choice in choices}
    return DeviceRequestOfClaim(
        name=request.name,
        at=request.at,
        kind=kind,
        devices=choices[0].devices if len(counts) == 1 else None,
        at_least=min(choice.at_least for choice in choices),
        is_gpu=any(choice.is_gpu for choice in choices),
        choices=choices,
    )


def _request_for_one_class(
    name: str, kind: Kind, asked: ExactDeviceRequest | DeviceSubRequest, *, has_admin_access: bool = False
) -> DeviceRequestOfClaim:
    """Return a request or an alternative for devices of one class, with what is known about the devices."""
    asked.reading.deadline.spend(_WORK_OF_REQUEST)
    device = device_of_class_name(asked.device_class_name)
    mode = asked.allocation_mode or "ExactCount"
    count = _requested_count(asked, mode)
    is_exact = mode == "ExactCount" and count > 0
    return DeviceRequestOfClaim(
        name=name,
        at=asked.at,
        kind=kind,
        device=device,
        device_class=asked.device_class_name,
        allocation_mode=mode,
        count=count,
        has_admin_access=has_admin_access,
        selectors=read_selectors(asked.selectors),
        capacities=dict(asked.capacity.requests.items()),
        tolerations=tuple(asked.tolerations_json),
        devices=count if is_exact else None,
        at_least=count if is_exact else 1 if mode == "All" else 0,
        is_gpu=device.gpu and device.kind != "",
    )


def _requested_count(asked: ExactDeviceRequest | DeviceSubRequest, mode: str) -> int:
    count = asked.count or (1 if mode == "ExactCount" else 0)
    return count if count in _INTEGERS else 0


def read_selectors(listed: Items[DeviceSelector]) -> tuple[CheckedSelector, ...]:
    """Return the selectors of a request or a DeviceClass, with the errors that the API server finds in their
    expressions.

    A selector without `cel` is not returned; breaches.py reports it.
    """
    return tuple(_checked_selector(selector) for selector in listed if selector.cel)


def _checked_selector(selector: DeviceSelector) -> CheckedSelector:
    expression = selector.cel.expression
    return CheckedSelector(
        selector.cel.path("expression"), expression, check_selector(expression, selector.reading.deadline)
    )
