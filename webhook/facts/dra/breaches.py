"""Invalid values of claims, templates, classes and configurations: the breaches, and their messages.

A breach is an invalid value. claims.yaml declares the types and limits of single fields. This module checks what
claims.yaml cannot declare: names of requests in constraints and configurations, tolerations, and the length of
parameters for drivers. The rules of other modules report the breaches.

Source: k8s.io/kubernetes v1.36.1 pkg/apis/resource/validation/validation.go, validateRawExtension for parameters.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath, path_as_text
from webhook.apimachinery.quantity import example_quantities
from webhook.facts.dra.requests import CheckedSelector, DeviceRequestOfClaim
from webhook.facts.dra.types import (
    FLAT_VERSIONS,
    ClaimSpec,
    DeviceConstraint,
    DeviceRequest,
    OpaqueConfiguration,
    ResourceClaim,
    ResourceClaimTemplate,
)
from webhook.facts.view import ClusterView
from webhook.rules.problem import Problem
from webhook.rules.rule import Rule
from webhook.schema.values import FORMS, Breach, declarations_of_file, fault_of_name, fix_of_name, read_data_file
from webhook.text.wording import counted, shown
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
    return (breach for breach in breaches if breach.what != "wrongType" and not _is_field_of_first_release(breach, obj))


def _is_field_of_first_release(breach: Breach, obj: Object) -> bool:
    """Return whether an unknown field is a field that v1alpha3 had in Kubernetes 1.31 only."""
    return (
        breach.what == "unknownField" and obj.version == "v1alpha3" and breach.at[-1] in ("controller", "suitableNodes")
    )


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


class BreachWords(NamedTuple):
    """The message and the fix for a breach, and the invalid value for the message; "" to show no value."""

    message: str
    fix: str
    shown: str = ""


def message_and_fix(breach: Breach) -> BreachWords:
    """Return the message and the fix for a breach of the API server's validation."""
    return _WORDS[breach.what](breach)


def problem_of_breach(breach: Breach, rules: Mapping[str, Rule]) -> Problem:
    """Return the problem for a breach. `rules` maps each kind of breach to the rule that reports the breach."""
    message, fix, value = message_and_fix(breach)
    return rules[breach.what].problem(breach.at, message, fix, shown=value)


def problems_of_breaches(breaches: Iterable[Breach], rules: Mapping[str, Rule]) -> Iterator[Problem]:
    """Yield the problem for each breach. `rules` maps each kind of breach to the rule that reports the breach."""
    return (problem_of_breach(breach, rules) for breach in breaches)


def _shown_value(breach: Breach) -> str:
    return shown(breach.given) if breach.given != "" else ""


def _words_with_value(breach: Breach, message: str, fix: str) -> BreachWords:
    return BreachWords(message, fix, f"`{_shown_value(breach)}`")


def _fix_with_nearest(breach: Breach, otherwise: str = "") -> str:
    return f"write `{breach.nearest}` if that is meant" if breach.nearest else otherwise


def _words_for_wrong_type(breach: Breach) -> BreachWords:
    kind, _, examples = breach.expected.partition(" such as ")
    if breach.what == "notQuantity":
        examples = example_quantities(breach.at)
    fix = f"write a value such as {examples}" if examples else f"write {kind}"
    if kind == "an object" and breach.given and isinstance(breach.given, list):
        fix = "write the settings without the list"
    return _words_with_value(breach, f"must be {kind}", fix)


def _words_for_missing_field(breach: Breach) -> BreachWords:
    field = path_as_text(breach.at).rpartition(".")[2]
    message = f"must be set to {breach.expected}" if breach.expected else "must be set"
    return BreachWords(message, "add cel with the field expression" if field == "cel" else f"add the field {field}")


def _words_for_too_many(breach: Breach) -> BreachWords:
    more = breach.given - int(breach.expected)
    message = f"has {breach.given} entries, but at most {breach.expected} are allowed"
    return BreachWords(message, f"remove {counted(more, 'entry', 'entries')}")


def _words_for_too_long(breach: Breach) -> BreachWords:
    message = f"has {breach.given} bytes of JSON, but at most {breach.expected} are allowed"
    return BreachWords(message, "shorten the parameters")


def _words_for_duplicate(breach: Breach) -> BreachWords:
    return _words_with_value(breach, f"is also the entry at index {breach.expected}", "give every entry its own name")


def _words_for_bad_name(breach: Breach) -> BreachWords:
    if fault := fault_of_name(_shown_value(breach), breach.expected):
        fix = fix_of_name(_shown_value(breach), breach.expected)
        return _words_with_value(breach, f"is not a valid name because {fault}", fix)
    return _words_with_value(breach, f"must be {breach.expected}", f"write {breach.expected}")


def _words_for_not_one_of(breach: Breach) -> BreachWords:
    return _words_with_value(breach, f"must be one of {breach.expected}", _fix_with_nearest(breach, "use one of these"))


def _words_for_forbidden_field(breach: Breach) -> BreachWords:
    return BreachWords(f"must not be set because {breach.expected}", "remove the field")


def _words_for_excluded_field(breach: Breach) -> BreachWords:
    fix = f"remove the field, or set {breach.expected}"
    return BreachWords(f"must not be set with {_shown_value(breach)}", fix)


def _words_for_unknown_field(breach: Breach) -> BreachWords:
    place = breach.expected  # the right path, relative to the parent of the field; or a fix in words; or ""
    target = path_as_text((*breach.at[:-1], *place.split(".")))
    move = (
        place if " " in place else f"move the field to {target}" if place else "remove the field, or correct its name"
    )
    return BreachWords("is ignored because this field does not exist", _fix_with_nearest(breach, move))


def _words_for_unknown_request(breach: Breach) -> BreachWords:
    fix = _fix_with_nearest(breach, "name a request, or an alternative as request/alternative")
    return _words_with_value(breach, "is not a request of this claim", fix)


def _words_for_bad_capacity_name(breach: Breach) -> BreachWords:
    message = f"cannot be the name of a capacity because {fault_of_name(_shown_value(breach), breach.expected)}"
    return _words_with_value(breach, message, "write the name of a capacity of the device")


_WORDS: Final[Mapping[str, Callable[[Breach], BreachWords]]] = {
    "wrongType": _words_for_wrong_type,
    "notQuantity": _words_for_wrong_type,
    "parameters": lambda breach: _words_with_value(breach, "must be an object", "write the parameters as an object"),
    "missing": _words_for_missing_field,
    "tooMany": _words_for_too_many,
    "tooLong": _words_for_too_long,
    "duplicate": _words_for_duplicate,
    "badName": _words_for_bad_name,
    "notOneOf": _words_for_not_one_of,
    "outOfRange": lambda breach: _words_with_value(breach, f"must be {breach.expected}", "set a number in this range"),
    "forbidden": _words_for_forbidden_field,
    "excluded": _words_for_excluded_field,
    "allocationMode": lambda breach: BreachWords("must be ExactCount or All", "set one of these", f"`{breach.given}`"),
    "noAttribute": lambda _: BreachWords("has no attribute", "set one of matchAttribute and distinctAttribute"),
    "unknownField": _words_for_unknown_field,
    "unknownRequest": _words_for_unknown_request,
    "noCapacity": _words_for_bad_capacity_name,
}


def describe_refusal(selector: CheckedSelector) -> tuple[str, str]:
    """Return the message and the fix for a selector that the API server always rejects."""
    return f"{_first_line(selector.errors.problem)}, so the API server refuses the object", "correct the expression"


def describe_feature_gate() -> tuple[str, str]:
    """Return the message and the fix for a selector that the API server rejects without a feature gate."""
    message = (
        "uses an attribute as a list, which needs the feature gate DRAListTypeAttributes (off by default), so the API "
        "server may refuse the expression"
    )
    return message, "compare the attribute with one value, or ask the administrator of the cluster to turn the gate on"


def _first_line(text: str) -> str:
    return text.partition("\n")[0]
