"""What a device claim asks for, in one form over every version of resource.k8s.io.

v1beta1 and v1alpha3 write an exact request flat, next to its name, v1beta2 and v1 under `exactly`; all of them write
alternatives under `firstAvailable`. Defaults as in k8s.io/kubernetes v1.36 pkg/apis/resource/v1/defaults.go. v1alpha2
named one resourceClassName for the whole claim: it has no requests, and `kind` says `unsupported`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from webhook.attributes import JSON
from webhook.deadline import STEP, Deadline
from webhook.facts.dra.selectors import judge
from webhook.facts.gpu import devices
from webhook.facts.values import items, mapping, text
from webhook.paths import FieldPath, get, render

_FLAT = ("deviceClassName", "selectors", "allocationMode", "count", "adminAccess", "tolerations", "capacity")
_FLAT_VERSIONS = frozenset(("v1alpha3", "v1beta1"))
_INTEGERS = range(-(2**63), 2**63)
_ZERO = frozenset(("deviceClassName", "allocationMode", "count"))


def requests(spec: JSON, at: FieldPath, version: str = "v1", deadline: Deadline | None = None) -> list[JSON]:
    """The requests of a claim's spec (`{devices: {requests}}`) in a version of the API; `at` is where that spec stands.

    A null among the requests is one that says nothing, as for the API server.
    """
    if version == "v1alpha2":
        return [_shape("", "unsupported", at, devices.UNKNOWN)]
    listed, until = items(get(spec, ("devices", "requests"))), deadline or Deadline()
    return [
        _request(request or {}, (*at, "devices", "requests", index), until, flat=version in _FLAT_VERSIONS)
        for index, request in enumerate(until.paced(listed))
        if request is None or isinstance(request, dict)
    ]


def written_requests(
    spec: JSON, at: FieldPath, version: str, deadline: Deadline
) -> Iterator[tuple[JSON, Mapping[str, JSON], str]]:
    """Every request of `requests` and every alternative: with what is written of it, and which one it is an alternative
    of, "" for none.
    """
    listed = (
        each or {} for each in items(get(spec, ("devices", "requests"))) if each is None or isinstance(each, dict)
    )
    for request, given in zip(requests(spec, at, version, deadline), listed, strict=False):
        yield request, mapping(given.get("exactly")) or given, ""  # before v1beta2 it stands next to the name
        choices = (each for each in items(given.get("firstAvailable")) if isinstance(each, dict))
        for choice, written in zip(request["choices"], choices, strict=False):
            yield choice, written, request["name"]


def version_of(obj: JSON) -> str:
    """The version of an object's API: `v1beta1`."""
    return text(obj.get("apiVersion")).rpartition("/")[2]


def constraints(spec: JSON, at: FieldPath) -> list[JSON]:
    """The constraints of a claim's spec: which requests, and the attribute that must match or differ."""
    listed = items(get(spec, ("devices", "constraints")))
    return [
        {
            "path": render((*at, "devices", "constraints", index)),
            "requests": [name for name in items(constraint.get("requests")) if isinstance(name, str)],
            "matchAttribute": text(constraint.get("matchAttribute")),
            "distinctAttribute": text(constraint.get("distinctAttribute")),
        }
        for index, constraint in enumerate(listed)
        if isinstance(constraint, dict)
    ]


def _request(request: JSON, at: FieldPath, deadline: Deadline, *, flat: bool) -> JSON:
    name = text(request.get("name"))
    choices = [choice for choice in items(request.get("firstAvailable")) if isinstance(choice, dict)]
    exact, where = _exact(request, at, flat=flat)
    if exact is not None and not choices:
        return _asked(name, "exactly", exact, where, deadline)
    if exact is None and not choices:
        meant = request if _says_something(request) else request.get("exactly")
        if isinstance(meant, dict):  # of another version: refused, but what it means is clear
            return _asked(name, "none", meant, at, deadline)
    known = devices.UNKNOWN
    made = _shape(name, "both" if exact is not None else "firstAvailable" if choices else "none", at, known)
    made["choices"] = [
        _asked(text(choice.get("name")), "choice", choice, (*at, "firstAvailable", index), deadline)
        for index, choice in enumerate(deadline.paced(choices))
    ]
    counts = [choice["devices"] for choice in made["choices"]]
    made["devices"] = counts[0] if counts and len(set(counts)) == 1 else None
    made["atLeast"] = min((choice["atLeast"] for choice in made["choices"]), default=0)
    made["gpu"] = any(choice["gpu"] for choice in made["choices"])
    return made


def _exact(request: JSON, at: FieldPath, *, flat: bool) -> tuple[JSON | None, FieldPath]:
    """What is asked for exactly, and where it stands; zeros say nothing where it stands next to the name.

    k8s.io/kubernetes v1.36 pkg/apis/resource/v1beta1/conversion.go hasDeviceRequestMainRequestFieldsSet.
    """
    if flat:
        return (request, at) if _says_something(request) else (None, at)
    exactly = request.get("exactly")
    return (exactly, (*at, "exactly")) if isinstance(exactly, dict) else (None, at)


def _says_something(request: JSON) -> bool:
    return any(request.get(each) or (each not in _ZERO and request.get(each) is not None) for each in _FLAT)


def _asked(name: str, kind: str, asked: JSON, at: FieldPath, deadline: Deadline) -> JSON:
    """One request for devices of one class."""
    device_class = text(asked.get("deviceClassName"))
    made = _shape(name, kind, at, devices.device_class(device_class))
    mode = text(asked.get("allocationMode")) or "ExactCount"
    count = asked.get("count") or (1 if mode == "ExactCount" else 0)
    is_number = type(count) is int and count in _INTEGERS
    is_count = is_number and count > 0
    made |= {
        "deviceClass": device_class,
        "allocationMode": mode,
        "count": count if is_number else 0,
        "adminAccess": kind == "exactly" and asked.get("adminAccess") is True,
        "selectors": selectors(asked, at, deadline),
        "devices": count if mode == "ExactCount" and is_count else None,
        "atLeast": count if mode == "ExactCount" and is_count else 1 if mode == "All" else 0,
    }
    return made


def selectors(asked: JSON, at: FieldPath, deadline: Deadline) -> list[JSON]:
    """The selectors of a request or of a DeviceClass's spec, each with what is wrong with its expression.

    A selector without `cel`, or of a wrong type, is for shape.py to tell.
    """
    listed = []
    for index, selector in enumerate(items(get(asked, ("selectors",)))):
        cel = get(selector, ("cel",))
        if isinstance(cel, dict) and isinstance(cel.get("expression"), str | None):
            expression = cel.get("expression") or ""
            deadline.spend(STEP)  # compiling it takes about a millisecond
            judged = judge(expression)
            where = render((*at, "selectors", index, "cel", "expression"))
            listed.append({"path": where, "expression": expression, "problem": judged.problem, "gated": judged.gated})
    return listed


def _shape(name: str, kind: str, at: FieldPath, known: devices.Device) -> JSON:
    return {
        "name": name,
        "path": render(at),
        "kind": kind,
        "deviceClass": "",
        "vendor": known.vendor,
        "deviceKind": known.kind,
        "gpu": known.gpu and known.kind != "",
        "allocationMode": "",
        "count": 0,
        "adminAccess": False,
        "selectors": [],
        "devices": None,
        "atLeast": 0,
        "choices": [],
    }


def names(asked: list[JSON]) -> list[str]:
    """The names by which a container may refer to requests: `main`, and `main/choice` for an alternative of one.

    k8s.io/api resource/v1 types.go: a container's `claims[].request` names a request; a constraint may name a choice.
    """
    return [request["name"] for request in asked if request["name"]]
