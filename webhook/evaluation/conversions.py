"""Converts objects of resource.k8s.io from and to v1beta1, as API servers do.

In v1beta1, a device request has the fields of `exactly` itself, and a device of a ResourceSlice has its fields inside
`basic`. v1beta2 and v1 have `exactly`, and no `basic`. All other fields are the same. Source: k8s.io/kubernetes v1.36
pkg/apis/resource/v1beta1/conversion.go. equivalent_resources.json has the conversion of each resource.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from webhook.apimachinery.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.dra.types import POINTERS
from webhook.policy.matching import Match

_OLD: Final = "v1beta1"
_SET: Final = ("deviceClassName", "allocationMode", "count")
_EXACT: Final = (*_SET, *POINTERS)
_NO_CLASS: Final = {"deviceClassName": ""}
"""The field of a request that API servers write even if it is empty."""


def convert_to_version(obj: JSON, match: Match, deadline: Deadline) -> JSON:
    """Return an object in the version that matched. An object that cannot be converted is returned unchanged.

    Raises:
        BudgetExceeded: the time is up.
    """
    if match.conversion not in ("version", "fields") or not isinstance(obj, dict):
        return obj
    if match.conversion == "fields":
        obj = _PARTS[match.kind.kind](obj, match.kind.version == _OLD, deadline)
    return {**obj, "apiVersion": match.kind.api_version}


def _convert_claim(obj: JSON, is_old: bool, deadline: Deadline) -> JSON:
    change = _request_as_v1beta1 if is_old else _request_as_v1
    return _convert_at_path(obj, ("spec", "devices", "requests"), change, deadline)


def _convert_claim_template(obj: JSON, is_old: bool, deadline: Deadline) -> JSON:
    spec = obj.get("spec")
    return {**obj, "spec": _convert_claim(spec, is_old, deadline)} if isinstance(spec, dict) else obj


def _convert_slice(obj: JSON, is_old: bool, deadline: Deadline) -> JSON:
    return _convert_at_path(obj, ("spec", "devices"), _device_as_v1beta1 if is_old else _device_as_v1, deadline)


_PARTS: Final = {
    "ResourceClaim": _convert_claim,
    "ResourceClaimTemplate": _convert_claim_template,
    "ResourceSlice": _convert_slice,
}


def _convert_at_path(value: JSON, path: tuple[str, ...], change: Callable[[JSON], JSON], deadline: Deadline) -> JSON:
    """Return a value in which `change` was applied to every object of the list at a path."""
    if not path:
        paced = deadline.items_with_clock_checks(value) if isinstance(value, list) else ()
        return [change(each) if isinstance(each, dict) else each for each in paced] or value
    if not isinstance(value, dict) or path[0] not in value:
        return value
    return {**value, path[0]: _convert_at_path(value[path[0]], path[1:], change, deadline)}


def _request_as_v1beta1(request: JSON) -> JSON:
    exactly = request.get("exactly")
    others = {name: value for name, value in request.items() if name != "exactly"}
    return {**_NO_CLASS, **(exactly if isinstance(exactly, dict) else {}), **others}


def _request_as_v1(request: JSON) -> JSON:
    is_exact = any(request.get(name) for name in _SET) or any(request.get(name) is not None for name in POINTERS)
    if not is_exact:
        return {name: value for name, value in request.items() if name not in _EXACT}
    exactly = _NO_CLASS | {name: value for name, value in request.items() if name in _EXACT}
    return {**{name: value for name, value in request.items() if name not in _EXACT}, "exactly": exactly}


def _device_as_v1beta1(device: JSON) -> JSON:
    return {"name": device.get("name"), "basic": {name: value for name, value in device.items() if name != "name"}}


def _device_as_v1(device: JSON) -> JSON:
    basic = device.get("basic")
    others = {name: value for name, value in device.items() if name != "basic"}
    return {**others, **basic} if isinstance(basic, dict) else others
