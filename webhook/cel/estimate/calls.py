"""Estimates the cost of calls and the size of their results from the sizes of their arguments.

By overload, as cel-go's own libraries say (v0.26.0 ext/lists.go, ext/sets.go), then by function, as the API server says
(k8s.io/apiserver v0.36.1 pkg/cel/library/cost.go EstimateCallCost), then by overload again (cel-go checker/cost.go
functionCost); what none of them knows costs 1. Where Go's numbers wrap around, these stop at UNBOUNDED or 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from webhook.cel.estimate.sizes import NOTHING, ONE, UNBOUNDED, UNKNOWN, Part, Range, Sizes, exactly
from webhook.cel.library.declaration import Overload
from webhook.cel.library.named_format import FORMATS

WALK = 0.1
"""The cost of reading one character of a text once."""
_PATTERN = 0.25
"""The cost of one character of a pattern."""
_LIST = exactly(10)
_CHECK = exactly(350_000)
_FORMAT_PATTERN, _FORMAT_NAME = 128, 64
_ADDRESS = Range(4, 16)


@dataclass(frozen=True, slots=True)
class OverloadCall:
    """A call with one of its overloads; the target is None for a global function. worst: see estimate()."""

    function: str
    overload: Overload
    target: Part | None
    arguments: Sequence[Part]
    sizes: Sizes | None
    worst: bool = False

    @property
    def first(self) -> Part:
        """Return the target, or the first argument of a global function."""
        return self.arguments[0] if self.target is None else self.target


Answer: TypeAlias = tuple[Range, Range | None]
"""The cost of a call beyond its arguments, and the size of the result where it is known."""
_Formula: TypeAlias = Callable[[OverloadCall], Answer | None]


def estimate_call(call: OverloadCall) -> Answer:
    """Return the estimated cost of a call with one of its overloads, and the size of its result."""
    if call.worst and call.function in _WORST:
        return _WORST[call.function](call)
    overload = call.overload.id
    for formula in (_BY_LIBRARY.get(overload), _BY_FUNCTION.get(call.function), _BY_OVERLOAD.get(overload)):
        estimated = formula(call) if formula is not None else None
        if estimated is not None:
            return estimated
    return ONE, None


# ---- cel-go's libraries


def _making(size: Range, factor: float) -> Answer:
    return size.times(factor) + ONE + _LIST, size


def _number(part: Part, otherwise: int) -> int:
    return otherwise if part.constant is None else max(part.constant, 0)


def _slice(call: OverloadCall) -> Answer:
    start, end = call.arguments
    return _making(exactly(max(_number(end, call.first.extent.most) - _number(start, 0), 0)), 1)


def _flatten(call: OverloadCall) -> Answer:
    depth = _number(call.arguments[0], UNBOUNDED) if call.arguments else 1
    return _making(call.first.extent, depth)


def _distinct(call: OverloadCall) -> Answer:
    return _making(call.first.extent * call.first.extent, 2)


def _sort(call: OverloadCall) -> Answer:
    keys = call.arguments[0] if call.arguments else call.first
    element = call.overload.parameters[-1].parameters[0].name
    return _making(keys.extent * keys.extent, 2.1 if element in ("string", "bytes") else 2)


def _sets(factor: int) -> _Formula:
    return lambda call: ((call.arguments[0].extent * call.arguments[1].extent).times(factor) + ONE, None)


_KEYS = ("int", "uint", "double", "bool", "google.protobuf.Duration", "google.protobuf.Timestamp", "string", "bytes")
_BY_LIBRARY: Mapping[str, _Formula] = {
    "list_slice": _slice,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "lists_range": lambda call: _making(exactly(_number(call.arguments[0], UNBOUNDED)), 1),
    "list_reverse": lambda call: _making(call.first.extent, 1),
    "list_distinct": _distinct,
    **{f"list_{key}_sort": _sort for key in _KEYS},
    **{f"list_{key}_sortByAssociatedKeys": _sort for key in _KEYS},
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
    # k8s.io/dynamic-resource-allocation v0.36.1 cel/compile.go: lists of attributes have 48 values at most
    "dra_includes_dyn_dyn": lambda _: (Range(0, 48), None),
}


# ---- the API server's libraries


def _one(_: OverloadCall) -> Answer:
    return ONE, None


def _selector(call: OverloadCall) -> Answer:
    length = call.arguments[0].extent
    # 50 for each requirement, which is two characters at least
    return _LIST + length.times(WALK) + length.times(0.5).times(50), None


def _element_size(call: OverloadCall, container: Part) -> Range | None:
    """Return the size of a list's elements; None when the value is not known to be a list."""
    if not container.type.parameters:
        return None
    path = (*container.path, "@items") if container.path else ()
    size = call.sizes(path, container.type.parameters[0]) if call.sizes else None
    return size or UNKNOWN


def _traversal(call: OverloadCall) -> Answer | None:
    if call.target is None:
        return None
    element = _element_size(call, call.target)
    if element is None:
        return call.target.extent.times(WALK), None
    each = ONE
    if call.target.type.parameters[0].name in ("string", "bytes"):
        each += element.times(WALK)
    return call.target.extent * each, None


def _walk(call: OverloadCall) -> Answer:
    return call.first.extent.times(WALK), None


def _same_size(call: OverloadCall) -> Answer:
    return call.first.extent.times(WALK), call.first.extent


def _replace(call: OverloadCall) -> Answer:
    text, old, new = call.first.extent, call.arguments[0].extent, call.arguments[1].extent
    if old.least == 0:  # the new text goes around every character
        most = (text + ONE).most * new.most + text.most
    elif new.most <= old.least:
        most = text.most
    else:
        most = -(-text.most // old.least) * new.most
    if old.most == 0:
        least = (text + ONE).least * new.least + text.least
    elif old.most <= new.least:
        least = text.least
    else:
        least = -(-text.least // old.most) * new.least
    return text.times(2 * WALK), Range(min(least, UNBOUNDED), min(most, UNBOUNDED))


def _split(call: OverloadCall) -> Answer:
    most = call.first.extent.most
    if len(call.arguments) > 1 and call.arguments[1].constant is not None:
        most = call.arguments[1].constant % 2**64  # -1 is any number
    return call.first.extent.times(2 * WALK), Range(0, most)


def _join(call: OverloadCall) -> Answer:
    count = call.first.extent
    element = _element_size(call, call.first)
    size = NOTHING if element is None else count * element
    if call.arguments:
        size += call.arguments[0].extent * Range(max(count.least - 1, 0), max(count.most - 1, 0))
    return size.times(WALK), size


def _find(call: OverloadCall) -> Answer:
    text = call.first.extent
    return (text + ONE).times(WALK) * call.arguments[0].extent.times(_PATTERN), Range(0, text.most)


def _ip(call: OverloadCall) -> Answer:
    return (ONE, None) if call.overload.id == "cidr_ip" else _walk(call)


def _canonical(call: OverloadCall) -> Answer:
    return call.first.extent.times(2 * WALK), None


def _contains_ip(call: OverloadCall) -> Answer:
    cost = (_ADDRESS + _ADDRESS).times(WALK)
    if call.overload.id.endswith("_string"):
        cost += call.arguments[0].extent.times(WALK)
    return cost, None


def _contains_cidr(call: OverloadCall) -> Answer:
    cost, size = _contains_ip(call)
    return cost + _ADDRESS.times(WALK) + ONE, size


def _validate(call: OverloadCall) -> Answer:
    return call.arguments[0].extent.times(WALK).times(_FORMAT_PATTERN * _PATTERN), None


_EQUAL_AT_ONCE = frozenset(
    (
        *("net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver"),
        *("kubernetes.authorization.Authorizer", "kubernetes.authorization.PathCheck"),
        *("kubernetes.authorization.GroupCheck", "kubernetes.authorization.ResourceCheck"),
        "kubernetes.authorization.Decision",
    )
)


def _opaque_equality(call: OverloadCall) -> Answer | None:
    left, right = call.arguments
    if left.type != right.type:
        return None
    if left.type.name in _EQUAL_AT_ONCE:
        return ONE, None
    if left.type.name == "kubernetes.NamedFormat":
        return Range(1, _FORMAT_NAME).times(WALK), None
    if left.type.name == "kubernetes.URL":
        return Range(1, 1 if right.size is None else right.size.most).times(WALK), None
    return None


_ONES = (
    *("serviceAccount", "path", "group", "resource", "subresource", "namespace"),
    *("name", "allowed", "reason", "error", "errored", "masked"),
    *("prefixLength", "family", "isUnspecified", "isLoopback", "isLinkLocalMulticast", "isLinkLocalUnicast"),
    *("isGlobalUnicast", "format.named", "sign", "asInteger", "isInteger", "asApproximateFloat"),
    *("isGreaterThan", "isLessThan", "compareTo", "add", "sub", "major"),
    *("minor", "patch", "getScheme", "getHostname", "getHost", "getPort"),
    *("getEscapedPath", "getQuery"),
)
_BY_FUNCTION: Mapping[str, _Formula] = {
    **dict.fromkeys(_ONES, _one),
    "check": lambda _: (_CHECK, None),
    **dict.fromkeys(("fieldSelector", "labelSelector"), _selector),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _traversal),
    **dict.fromkeys(("url", "jsonpatch.escapeKey", "lowerAscii", "upperAscii", "substring", "trim"), _same_size),
    "replace": _replace,
    "split": _split,
    "join": _join,
    **dict.fromkeys(("find", "findAll"), _find),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _walk),
    "ip": _ip,
    "ip.isCanonical": _canonical,
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "validate": _validate,
    "_==_": _opaque_equality,
}


# ---- the standard functions


def _bytes_of(call: OverloadCall) -> Answer:
    size = call.first.extent
    return size.times(WALK), Range(size.least, min(size.most * 4, UNBOUNDED))


def _text_of(call: OverloadCall) -> Answer:
    size = call.first.extent
    return size.times(WALK), Range(size.least // 4, size.most)


def _quote(call: OverloadCall) -> Answer:
    size = call.first.extent
    return size.times(WALK), size * Range(1, 2) + exactly(2)


def _affix(call: OverloadCall) -> Answer:
    return call.arguments[0].extent.times(WALK), None


def _matches(call: OverloadCall) -> Answer:
    return (call.first.extent + ONE).times(WALK) * call.arguments[0].extent.times(_PATTERN), None


def _contains(call: OverloadCall) -> Answer:
    return call.first.extent.times(WALK) * call.arguments[0].extent.times(WALK), None


def _concatenation(call: OverloadCall) -> Answer:
    size = call.arguments[0].extent + call.arguments[1].extent
    return (ONE if call.overload.id == "add_list" else size.times(WALK)), size


def _comparison(call: OverloadCall) -> Answer:
    most = min(call.arguments[0].extent.most, call.arguments[1].extent.most)
    return Range(min(most, 1), most).times(WALK), None


def _worst_affix(call: OverloadCall) -> Answer:
    """Estimate startsWith and endsWith: at run time the size of the text may be counted as well as that of the
    affix.
    """
    return call.first.extent.times(WALK) | call.arguments[0].extent.times(WALK), None


def _worst_validate(call: OverloadCall) -> Answer:
    """Estimate the validation of a format: at run time the longest pattern of all formats may be counted."""
    return (call.arguments[0].extent + ONE).times(WALK) * Range(1, _LONGEST_PATTERN), None


def _known_elements(call: OverloadCall) -> Range | None:
    container = call.first
    return container.entries.value if container.entries else _element_size(call, container)


def _worst_join(call: OverloadCall) -> Answer:
    """Estimate join: at run time the result is counted twice, also for a value that is not known to be a list."""
    size = call.first.extent * (_known_elements(call) or UNKNOWN)
    if call.arguments:
        size += call.arguments[0].extent * call.first.extent
    return size.times(2 * WALK), size


def _worst_traversal(call: OverloadCall) -> Answer:
    """Estimate a traversal: at run time the elements of elements are counted, here one level of them."""
    container = call.first
    element = ONE if container.type.name == "string" else _known_elements(call) or container.extent
    scalar = container.type.name == "list" and container.type.parameters[0].name in _SCALARS
    return container.extent * (ONE if scalar else ONE + element), None


_LONGEST_PATTERN = max(each.pattern_length for each in FORMATS.values()) // 4 + 1
_SCALARS = frozenset(("bool", "int", "uint", "double", "google.protobuf.Duration", "google.protobuf.Timestamp"))
_WORST: Mapping[str, Callable[[OverloadCall], Answer]] = {
    **dict.fromkeys(("startsWith", "endsWith"), _worst_affix),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _worst_traversal),
    "validate": _worst_validate,
    "join": _worst_join,
}
"""The estimates of functions for which cel-go's may be lower than the cost at run time."""
_COMPARISONS = [f"{name}_{kind}" for name in ("less", "less_equals") for kind in ("string", "bytes")]
_COMPARISONS += [f"{name}_{kind}" for name in ("greater", "greater_equals") for kind in ("string", "bytes")]
_BY_OVERLOAD: Mapping[str, _Formula] = {
    "string_format": _walk,
    "string_to_bytes": _bytes_of,
    "bytes_to_string": _text_of,
    "strings_quote": _quote,
    **dict.fromkeys(("starts_with_string", "ends_with_string"), _affix),
    "in_list": lambda call: (call.arguments[1].extent, None),
    "matches_string": _matches,
    "contains_string": _contains,
    **dict.fromkeys(("add_string", "add_bytes", "add_list"), _concatenation),
    **dict.fromkeys((*_COMPARISONS, "equals", "not_equals"), _comparison),
}
