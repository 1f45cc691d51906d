"""Checks the values of a claim, a template or the claims of a pod group.

claims.yaml declares the types and limits of single fields. This module checks what claims.yaml cannot declare: names of
requests in constraints and configurations, tolerations, and the length of parameters for drivers. resource_claims.py
has the rules that report the breaches.

Source: k8s.io/kubernetes v1.36.1 pkg/apis/resource/validation/validation.go, validateRawExtension for parameters.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath
from webhook.facts.dra.requests import FLAT_VERSIONS, DeviceRequestOfClaim
from webhook.facts.dra.types import (
    ClaimSpec,
    DeviceConstraint,
    DeviceRequest,
    OpaqueConfiguration,
    ResourceClaim,
    ResourceClaimTemplate,
)
from webhook.facts.view import ClusterView
from webhook.schema.values import FORMS, Breach, declarations_of_file, read_data_file
from webhook.typed.collections import Items
from webhook.typed.objects import Object
from webhook.typed.pods import Toleration
from webhook.yamltext.placeholders import is_placeholder
from webhook.yamltext.unread import Unread

FILE: Final = Path(__file__).with_name("claims.yaml")
_LARGEST: Final = 10 * 1024
"""k8s.io/api v0.36.1 resource/v1 types.go OpaqueParametersMaxLength, in bytes."""


def is_version_declared(version: str) -> bool:
    """Return whether claims.yaml describes this version of resource.k8s.io."""
    return version in read_data_file(FILE)["objects"]["Devices"]["requests"]["list"]["object"]


def shape_breaches(obj: Object) -> Iterator[Breach]:
    """Yield the breaches of claims.yaml in an object, except wrong types, which the decoding of objects reports."""
    breaches = declarations_of_file(FILE, obj.version).breaches(obj.json, obj.gvk.kind, (), obj.reading.deadline)
    return (breach for breach in breaches if breach.what != "wrongType")


def claim_breaches(
    claim: ResourceClaim | ResourceClaimTemplate, requests: Items[DeviceRequestOfClaim], view: ClusterView
) -> Iterator[Breach]:
    """Yield the breaches of a claim or a template: first breaches of claims.yaml, then breaches that depend on several
    fields. An unknown API version yields nothing.
    """
    if is_version_declared(claim.version):
        yield from shape_breaches(claim)
        yield from _spec_breaches(claim.claim_spec, requests, view, is_flat=claim.version in FLAT_VERSIONS)


def _spec_breaches(
    spec: ClaimSpec, requests: Items[DeviceRequestOfClaim], view: ClusterView, *, is_flat: bool
) -> Iterator[Breach]:
    names, devices = _RequestNames(requests, view), spec.devices
    for request in devices.requests:
        yield from _request_breaches(request, is_flat=is_flat)
    for constraint in devices.constraints:
        yield from _constraint_breaches(constraint)
        yield from names.breaches_of_unknown_names(constraint.requests, constraint.path("requests"))
    for config in devices.config:
        yield from names.breaches_of_unknown_names(config.requests, config.path("requests"))
    yield from parameter_breaches(config.opaque for config in devices.config)


def _request_breaches(request: DeviceRequest, *, is_flat: bool) -> Iterator[Breach]:
    exact = request.flat_request if is_flat else request.exactly
    yield from _toleration_breaches(exact.tolerations)
    for choice in request.first_available:
        yield from _toleration_breaches(choice.tolerations)


def _toleration_breaches(tolerations: Items[Toleration]) -> Iterator[Breach]:
    """Yield the breaches of validateDeviceToleration."""
    is_good, expected = FORMS["labelValue"]
    for toleration in tolerations:
        value, at = toleration.value, toleration.path("value")
        if toleration.operator == "Exists" and value:
            yield Breach(what="excluded", at=at, given="operator Exists", expected="operator Equal")
        elif toleration.operator in ("", "Equal") and not is_good(value) and not is_placeholder(value):
            yield Breach(what="badName", at=at, given=value, expected=expected)


def _constraint_breaches(constraint: DeviceConstraint) -> Iterator[Breach]:
    """Yield the breaches of validateDeviceConstraint."""
    if constraint.json.get("matchAttribute") is None and constraint.json.get("distinctAttribute") is None:
        yield Breach(what="noAttribute", at=constraint.at)


class _RequestNames:
    """The names by which parts of a claim may refer to its requests: `request`, and `request/alternative`."""

    def __init__(self, requests: Items[DeviceRequestOfClaim], view: ClusterView) -> None:
        self._view = view
        paced = view.deadline.items_with_clock_checks
        self._names = dict.fromkeys(paced(name for request in requests for name in _names_of_request(request)))
        # full names by the part after the slash, because users leave out `request/` by mistake
        self._names_by_alternative = {
            name.partition("/")[2]: name for name in paced(reversed(self._names)) if "/" in name
        }

    def breaches_of_unknown_names(self, names: Items[str], at: FieldPath) -> Iterator[Breach]:
        """Yield a breach for each name that no request has (validateRequestNameRef)."""
        for index, name in enumerate(names):
            if name not in self._names and not is_placeholder(name):
                near = self._names_by_alternative.get(name, "") if name else ""
                near = near or self._view.nearest(name, self._names)
                yield Breach(what="unknownRequest", at=(*at, index), given=name, nearest=near)


def _names_of_request(request: DeviceRequestOfClaim) -> Iterator[str]:
    yield request.name
    yield from (f"{request.name}/{choice.name}" for choice in request.choices)


def parameter_breaches(configurations: Iterable[OpaqueConfiguration]) -> Iterator[Breach]:
    """Yield the breaches of the parameters in configurations for drivers."""
    for opaque in configurations:
        if opaque:
            yield from _breaches_of_parameters(opaque)


def _breaches_of_parameters(opaque: OpaqueConfiguration) -> Iterator[Breach]:
    at, parameters = opaque.path("parameters"), opaque.parameters
    if parameters is None:
        yield Breach(what="missing", at=at, expected="an object that the driver understands")
        return
    length = _length_of_json(parameters)
    if length > _LARGEST:
        yield Breach(what="tooLong", at=at, given=length, expected=str(_LARGEST))
    elif not isinstance(parameters, dict):
        yield Breach(what="parameters", at=at, given=parameters)


def _length_of_json(parameters: JSON) -> int:
    """Return the length of parameters as compact JSON, in bytes.

    Parts that are nested too deeply to be read count too.
    """
    unread: list[Unread] = []
    text = json.dumps(parameters, ensure_ascii=False, separators=(",", ":"), default=unread.append)
    return len(text.encode()) + sum(len(part.text.encode()) - len("null") for part in unread)
