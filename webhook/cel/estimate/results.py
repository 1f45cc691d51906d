"""Estimates the sizes of results for the worst case, where cel-go's estimate treats optionals and texts as unknown.

An optional counts as the value that it has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from msgspec.structs import replace

from webhook.cel.estimate.calls import OverloadCall
from webhook.cel.estimate.sizes import NodeEstimate, Range, combined_entry_sizes

_NUMBER = 40
"""The longest text of a number, a time or an address."""
_Result: TypeAlias = Callable[[OverloadCall, NodeEstimate], NodeEstimate]


def with_result_size(call: OverloadCall, part: NodeEstimate) -> NodeEstimate:
    """Return the estimate of a call's result with the size and the entries that follow from its arguments."""
    known = _RESULTS.get(call.function)
    return part if known is None else known(call, part)


def _with_size_of_first_argument(call: OverloadCall, part: NodeEstimate) -> NodeEstimate:
    """Return an estimate with the size of the first argument; an optional without a value counts 1."""
    size = None if call.first.size is None else call.first.size | Range(0, 1)
    return replace(part, size=size, entries=call.first.entries, path=call.first.path)


def _with_size_of_element(call: OverloadCall, part: NodeEstimate) -> NodeEstimate:
    path = (*call.first.path, "@items")
    entries = call.first.entries
    size = entries.value if entries else call.sizes(path, part.type) if call.sizes else None
    return replace(part, size=size, path=path)


def _with_size_of_either_argument(call: OverloadCall, part: NodeEstimate) -> NodeEstimate:
    one, other = call.first, call.arguments[0]
    size = None if one.size is None or other.size is None else one.size | other.size
    return replace(part, size=size, entries=combined_entry_sizes(one.entries, other.entries), path=one.path)


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
