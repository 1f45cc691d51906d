"""Estimates the cost of calls and the size of their results from the sizes of their arguments.

There are three tables of formulas. The first table that has the call applies: _BY_LIBRARY by overload (cel-go v0.26.0
ext/lists.go, ext/sets.go), _BY_FUNCTION by function (k8s.io/apiserver v0.36.1 pkg/cel/library/cost.go
EstimateCallCost), _BY_OVERLOAD by overload (cel-go checker/cost.go functionCost). Other calls cost 1. Where Go
overflows, numbers stop at UNBOUNDED or 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from webhook.cel.estimate.sizes import (
    NOTHING,
    ONE,
    UNBOUNDED,
    UNKNOWN,
    NodeEstimate,
    Range,
    Sizes,
    combined_entry_sizes,
    range_of_value,
)
from webhook.cel.library.declaration import Overload
from webhook.cel.library.named_format import FORMATS

WALK = 0.1
"""The cost of one character of a text."""
_PATTERN = 0.25
"""The cost of one character of a pattern."""
_LIST = range_of_value(10)
_CHECK = range_of_value(350_000)
_FORMAT_PATTERN, _FORMAT_NAME = 128, 64
_ADDRESS = Range(4, 16)


class OverloadCall(Struct, frozen=True):
    """A call with one overload; `target` is None for a global function. `worst` is the argument of `estimate_cost`."""

    function: str
    overload: Overload
    target: NodeEstimate | None
    arguments: Sequence[NodeEstimate]
    sizes: Sizes | None
    worst: bool = False

    @property
    def first(self) -> NodeEstimate:
        """Return the target, or the first argument of a global function."""
        return self.arguments[0] if self.target is None else self.target


Answer: TypeAlias = tuple[Range, Range | None]
"""The cost of a call without the cost of its arguments, and the size of the result; None if this size is unknown."""
_Formula: TypeAlias = Callable[[OverloadCall], Answer | None]


def estimate_call(call: OverloadCall) -> Answer:
    """Return the cost of a call with one overload, and the size of its result."""
    if call.worst and call.function in _WORST:
        return _WORST[call.function](call)
    overload = call.overload.id
    for formula in (_BY_LIBRARY.get(overload), _BY_FUNCTION.get(call.function), _BY_OVERLOAD.get(overload)):
        estimated = formula(call) if formula is not None else None
        if estimated is not None:
            return estimated
    return ONE, None


# ---- cel-go's libraries


def _estimate_list_creation(size: Range, factor: float) -> Answer:
    return size.multiplied_by(factor) + ONE + _LIST, size


def _constant_or_default(part: NodeEstimate, otherwise: int) -> int:
    return otherwise if part.constant is None else max(part.constant, 0)


def _estimate_slice(call: OverloadCall) -> Answer:
    start, end = call.arguments
    return _estimate_list_creation(
        range_of_value(max(_constant_or_default(end, call.first.size_range.most) - _constant_or_default(start, 0), 0)),
        1,
    )


def _estimate_flatten(call: OverloadCall) -> Answer:
    depth = _constant_or_default(call.arguments[0], UNBOUNDED) if call.arguments else 1
    return _estimate_list_creation(call.first.size_range, depth)


def _estimate_distinct(call: OverloadCall) -> Answer:
    return _estimate_list_creation(call.first.size_range * call.first.size_range, 2)


def _estimate_sort(call: OverloadCall) -> Answer:
    keys = call.arguments[0] if call.arguments else call.first
    element = call.overload.parameters[-1].parameters[0].name
    return _estimate_list_creation(keys.size_range * keys.size_range, 2.1 if element in ("string", "bytes") else 2)


def _create_estimator_of_set_function(factor: int) -> _Formula:
    return lambda call: (
        (call.arguments[0].size_range * call.arguments[1].size_range).multiplied_by(factor) + ONE,
        None,
    )


_KEYS = ("int", "uint", "double", "bool", "google.protobuf.Duration", "google.protobuf.Timestamp", "string", "bytes")
_BY_LIBRARY: Mapping[str, _Formula] = {
    "list_slice": _estimate_slice,
    "list_flatten": _estimate_flatten,
    "list_flatten_int": _estimate_flatten,
    "lists_range": lambda call: _estimate_list_creation(
        range_of_value(_constant_or_default(call.arguments[0], UNBOUNDED)), 1
    ),
    "list_reverse": lambda call: _estimate_list_creation(call.first.size_range, 1),
    "list_distinct": _estimate_distinct,
    **{f"list_{key}_sort": _estimate_sort for key in _KEYS},
    **{f"list_{key}_sortByAssociatedKeys": _estimate_sort for key in _KEYS},
    "list_sets_contains_list": _create_estimator_of_set_function(1),
    "list_sets_intersects_list": _create_estimator_of_set_function(1),
    "list_sets_equivalent_list": _create_estimator_of_set_function(2),
    # k8s.io/dynamic-resource-allocation v0.36.1 cel/compile.go: lists of attributes have at most 48 values
    "dra_includes_dyn_dyn": lambda _: (Range(0, 48), None),
}


# ---- the API server's libraries


def _estimate_unit_cost(_: OverloadCall) -> Answer:
    return ONE, None


def _estimate_authorizer_selector(call: OverloadCall) -> Answer:
    length = call.arguments[0].size_range
    # 50 for each requirement, which has at least two characters
    return _LIST + length.multiplied_by(WALK) + length.multiplied_by(0.5).multiplied_by(50), None


def _size_of_elements(call: OverloadCall, container: NodeEstimate) -> Range | None:
    # None if the value may be something other than a list
    if not container.type.parameters:
        return None
    path = (*container.path, "@items") if container.path else ()
    size = call.sizes(path, container.type.parameters[0]) if call.sizes else None
    return size or UNKNOWN


def _estimate_traversal(call: OverloadCall) -> Answer | None:
    if call.target is None:
        return None
    element = _size_of_elements(call, call.target)
    if element is None:
        return call.target.size_range.multiplied_by(WALK), None
    each = ONE
    if call.target.type.parameters[0].name in ("string", "bytes"):
        each += element.multiplied_by(WALK)
    return call.target.size_range * each, None


def _estimate_walk_over_first_operand(call: OverloadCall) -> Answer:
    return call.first.size_range.multiplied_by(WALK), None


def _estimate_walk_keeping_size(call: OverloadCall) -> Answer:
    return call.first.size_range.multiplied_by(WALK), call.first.size_range


def _estimate_replace(call: OverloadCall) -> Answer:
    text, old, new = call.first.size_range, call.arguments[0].size_range, call.arguments[1].size_range
    if old.least == 0:  # an empty `old` puts the new text around every character
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
    return text.multiplied_by(2 * WALK), Range(min(least, UNBOUNDED), min(most, UNBOUNDED))


def _estimate_split(call: OverloadCall) -> Answer:
    most = call.first.size_range.most
    if len(call.arguments) > 1 and call.arguments[1].constant is not None:
        most = call.arguments[1].constant % 2**64  # -1 means any number
    return call.first.size_range.multiplied_by(2 * WALK), Range(0, most)


def _estimate_join(call: OverloadCall) -> Answer:
    count = call.first.size_range
    element = _size_of_elements(call, call.first)
    size = NOTHING if element is None else count * element
    if call.arguments:
        size += call.arguments[0].size_range * Range(max(count.least - 1, 0), max(count.most - 1, 0))
    return size.multiplied_by(WALK), size


def _estimate_find(call: OverloadCall) -> Answer:
    text = call.first.size_range
    return (text + ONE).multiplied_by(WALK) * call.arguments[0].size_range.multiplied_by(_PATTERN), Range(0, text.most)


def _estimate_ip(call: OverloadCall) -> Answer:
    return (ONE, None) if call.overload.id == "cidr_ip" else _estimate_walk_over_first_operand(call)


def _estimate_is_canonical(call: OverloadCall) -> Answer:
    return call.first.size_range.multiplied_by(2 * WALK), None


def _estimate_contains_ip(call: OverloadCall) -> Answer:
    cost = (_ADDRESS + _ADDRESS).multiplied_by(WALK)
    if call.overload.id.endswith("_string"):
        cost += call.arguments[0].size_range.multiplied_by(WALK)
    return cost, None


def _estimate_contains_cidr(call: OverloadCall) -> Answer:
    cost, size = _estimate_contains_ip(call)
    return cost + _ADDRESS.multiplied_by(WALK) + ONE, size


def _estimate_format_validation(call: OverloadCall) -> Answer:
    return call.arguments[0].size_range.multiplied_by(WALK).multiplied_by(_FORMAT_PATTERN * _PATTERN), None


_EQUAL_AT_ONCE = frozenset(
    (
        *("net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver"),
        *("kubernetes.authorization.Authorizer", "kubernetes.authorization.PathCheck"),
        *("kubernetes.authorization.GroupCheck", "kubernetes.authorization.ResourceCheck"),
        "kubernetes.authorization.Decision",
    )
)


def _estimate_opaque_equality(call: OverloadCall) -> Answer | None:
    left, right = call.arguments
    if left.type != right.type:
        return None
    if left.type.name in _EQUAL_AT_ONCE:
        return ONE, None
    if left.type.name == "kubernetes.NamedFormat":
        return Range(1, _FORMAT_NAME).multiplied_by(WALK), None
    if left.type.name == "kubernetes.URL":
        return Range(1, 1 if right.size is None else right.size.most).multiplied_by(WALK), None
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
    **dict.fromkeys(_ONES, _estimate_unit_cost),
    "check": lambda _: (_CHECK, None),
    **dict.fromkeys(("fieldSelector", "labelSelector"), _estimate_authorizer_selector),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _estimate_traversal),
    **dict.fromkeys(
        ("url", "jsonpatch.escapeKey", "lowerAscii", "upperAscii", "substring", "trim"), _estimate_walk_keeping_size
    ),
    "replace": _estimate_replace,
    "split": _estimate_split,
    "join": _estimate_join,
    **dict.fromkeys(("find", "findAll"), _estimate_find),
    **dict.fromkeys(
        ("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _estimate_walk_over_first_operand
    ),
    "ip": _estimate_ip,
    "ip.isCanonical": _estimate_is_canonical,
    "containsIP": _estimate_contains_ip,
    "containsCIDR": _estimate_contains_cidr,
    "validate": _estimate_format_validation,
    "_==_": _estimate_opaque_equality,
}


# ---- the standard functions


def _estimate_string_to_bytes(call: OverloadCall) -> Answer:
    size = call.first.size_range
    return size.multiplied_by(WALK), Range(size.least, min(size.most * 4, UNBOUNDED))


def _estimate_bytes_to_string(call: OverloadCall) -> Answer:
    size = call.first.size_range
    return size.multiplied_by(WALK), Range(size.least // 4, size.most)


def _estimate_quote(call: OverloadCall) -> Answer:
    size = call.first.size_range
    return size.multiplied_by(WALK), size * Range(1, 2) + range_of_value(2)


def _estimate_starts_or_ends_with(call: OverloadCall) -> Answer:
    return call.arguments[0].size_range.multiplied_by(WALK), None


def _estimate_matches(call: OverloadCall) -> Answer:
    return (call.first.size_range + ONE).multiplied_by(WALK) * call.arguments[0].size_range.multiplied_by(
        _PATTERN
    ), None


def _estimate_contains(call: OverloadCall) -> Answer:
    return call.first.size_range.multiplied_by(WALK) * call.arguments[0].size_range.multiplied_by(WALK), None


def _estimate_concatenation(call: OverloadCall) -> Answer:
    size = call.arguments[0].size_range + call.arguments[1].size_range
    return (ONE if call.overload.id == "add_list" else size.multiplied_by(WALK)), size


def _estimate_comparison(call: OverloadCall) -> Answer:
    most = min(call.arguments[0].size_range.most, call.arguments[1].size_range.most)
    return Range(min(most, 1), most).multiplied_by(WALK), None


def _estimate_worst_starts_or_ends_with(call: OverloadCall) -> Answer:
    # at run time either the text or the affix is counted
    return call.first.size_range.multiplied_by(WALK) | call.arguments[0].size_range.multiplied_by(WALK), None


def _estimate_worst_format_validation(call: OverloadCall) -> Answer:
    # at run time the longest pattern of all formats may be counted
    return (call.arguments[0].size_range + ONE).multiplied_by(WALK) * Range(1, _LONGEST_PATTERN), None


def _known_size_of_elements(call: OverloadCall) -> Range | None:
    container = call.first
    return container.entries.value if container.entries else _size_of_elements(call, container)


def _estimate_worst_join(call: OverloadCall) -> Answer:
    # at run time the result is counted twice, even if the static type of the value is not a list
    size = call.first.size_range * (_known_size_of_elements(call) or UNKNOWN)
    if call.arguments:
        size += call.arguments[0].size_range * call.first.size_range
    return size.multiplied_by(2 * WALK), size


def _estimate_worst_traversal(call: OverloadCall) -> Answer:
    # at run time the elements of all levels count; this estimate counts one level of nested elements
    container = call.first
    element = ONE if container.type.name == "string" else _known_size_of_elements(call) or container.size_range
    scalar = container.type.name == "list" and container.type.parameters[0].name in _SCALARS
    return container.size_range * (ONE if scalar else ONE + element), None


_LONGEST_PATTERN = max(each.pattern_length for each in FORMATS.values()) // 4 + 1
_SCALARS = frozenset(("bool", "int", "uint", "double", "google.protobuf.Duration", "google.protobuf.Timestamp"))
_WORST: Mapping[str, Callable[[OverloadCall], Answer]] = {
    **dict.fromkeys(("startsWith", "endsWith"), _estimate_worst_starts_or_ends_with),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _estimate_worst_traversal),
    "validate": _estimate_worst_format_validation,
    "join": _estimate_worst_join,
}
"""The functions for which cel-go's estimate may be below the cost at run time."""
_COMPARISONS = [f"{name}_{kind}" for name in ("less", "less_equals") for kind in ("string", "bytes")]
_COMPARISONS += [f"{name}_{kind}" for name in ("greater", "greater_equals") for kind in ("string", "bytes")]
_BY_OVERLOAD: Mapping[str, _Formula] = {
    "string_format": _estimate_walk_over_first_operand,
    "string_to_bytes": _estimate_string_to_bytes,
    "bytes_to_string": _estimate_bytes_to_string,
    "strings_quote": _estimate_quote,
    **dict.fromkeys(("starts_with_string", "ends_with_string"), _estimate_starts_or_ends_with),
    "in_list": lambda call: (call.arguments[1].size_range, None),
    "matches_string": _estimate_matches,
    "contains_string": _estimate_contains,
    **dict.fromkeys(("add_string", "add_bytes", "add_list"), _estimate_concatenation),
    **dict.fromkeys((*_COMPARISONS, "equals", "not_equals"), _estimate_comparison),
}


# ---- sizes of results for the worst case: cel-go's estimate treats the sizes of these optionals and texts as unknown


_NUMBER = 40
"""A number, time or address has at most this number of characters."""
_Result: TypeAlias = Callable[[OverloadCall, NodeEstimate], NodeEstimate]


def with_result_size(call: OverloadCall, part: NodeEstimate) -> NodeEstimate:
    """Return the estimate with the size and entries that the arguments imply. An optional has the size of its value."""
    result_of_function = _RESULTS.get(call.function)
    return part if result_of_function is None else result_of_function(call, part)


def _with_size_of_first_argument(call: OverloadCall, part: NodeEstimate) -> NodeEstimate:
    # an empty optional has the size 1
    size = None if call.first.size is None else call.first.size | Range(0, 1)
    return replace(part, size=size, entries=call.first.entries, path=call.first.path)


def _with_size_of_element(call: OverloadCall, part: NodeEstimate) -> NodeEstimate:
    path = (*call.first.path, "@items")
    entries = call.first.entries
    size = entries.value if entries else call.sizes(path, part.type) if call.sizes else None
    return replace(part, size=size, path=path)


def _with_size_of_either_argument(call: OverloadCall, part: NodeEstimate) -> NodeEstimate:
    first, second = call.first, call.arguments[0]
    size = None if first.size is None or second.size is None else first.size | second.size
    return replace(part, size=size, entries=combined_entry_sizes(first.entries, second.entries), path=first.path)


def _with_size_of_string_conversion(call: OverloadCall, part: NodeEstimate) -> NodeEstimate:
    if call.first.type.name in ("string", "bytes", "dyn", "any") or call.first.size is None:
        return replace(part, size=call.first.size_range | Range(0, _NUMBER))
    return replace(part, size=Range(0, _NUMBER))


def _with_size_of_formatted_text(call: OverloadCall, part: NodeEstimate) -> NodeEstimate:
    values = call.arguments[0]
    if values.entries is None:
        return part
    each = Range(0, max(values.entries.value.most, _NUMBER))
    return replace(part, size=call.first.size_range + values.size_range * each)


def _size_limiter(most: int) -> _Result:
    return lambda _, part: replace(part, size=Range(0, most))


_RESULTS: Mapping[str, _Result] = {
    **dict.fromkeys(("value", "optional.of", "optional.ofNonZeroValue"), _with_size_of_first_argument),
    **dict.fromkeys(("first", "last"), _with_size_of_element),
    **dict.fromkeys(("or", "orValue"), _with_size_of_either_argument),
    "optional.none": lambda _, part: replace(part, size=Range(0, 1)),
    "string": _with_size_of_string_conversion,
    "format": _with_size_of_formatted_text,
    "charAt": _size_limiter(1),
    **dict.fromkeys(("getScheme", "getPort"), _size_limiter(_NUMBER)),
}
