"""Estimates the sizes of results for the worst case, where cel-go's estimate treats optionals and texts as unknown.

An optional counts as the value that it has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

from webhook.cel.estimate.calls import OverloadCall
from webhook.cel.estimate.sizes import Part, Range, either_entries

_NUMBER = 40
"""The longest text of a number, a time or an address."""
_Result: TypeAlias = Callable[[OverloadCall, Part], Part]


def result(call: OverloadCall, part: Part) -> Part:
    """Return the estimate of a call's result with the size and the entries that follow from its arguments."""
    known = _RESULTS.get(call.function)
    return part if known is None else known(call, part)


def _same(call: OverloadCall, part: Part) -> Part:
    """Return an estimate with the size of the first argument; an optional without a value counts 1."""
    size = None if call.first.size is None else call.first.size | Range(0, 1)
    return replace(part, size=size, entries=call.first.entries, path=call.first.path)


def _element(call: OverloadCall, part: Part) -> Part:
    path = (*call.first.path, "@items")
    entries = call.first.entries
    size = entries.value if entries else call.sizes(path, part.type) if call.sizes else None
    return replace(part, size=size, path=path)


def _either(call: OverloadCall, part: Part) -> Part:
    one, other = call.first, call.arguments[0]
    size = None if one.size is None or other.size is None else one.size | other.size
    return replace(part, size=size, entries=either_entries(one.entries, other.entries), path=one.path)


def _text(call: OverloadCall, part: Part) -> Part:
    if call.first.type.name in ("string", "bytes", "dyn", "any") or call.first.size is None:
        return replace(part, size=call.first.extent | Range(0, _NUMBER))
    return replace(part, size=Range(0, _NUMBER))


def _formatted(call: OverloadCall, part: Part) -> Part:
    values = call.arguments[0]
    if values.entries is None:
        return part
    each = Range(0, max(values.entries.value.most, _NUMBER))
    return replace(part, size=call.first.extent + values.extent * each)


def _at_most(most: int) -> _Result:
    return lambda _, part: replace(part, size=Range(0, most))


_RESULTS: Mapping[str, _Result] = {
    **dict.fromkeys(("value", "optional.of", "optional.ofNonZeroValue"), _same),
    **dict.fromkeys(("first", "last"), _element),
    **dict.fromkeys(("or", "orValue"), _either),
    "optional.none": lambda _, part: replace(part, size=Range(0, 1)),
    "string": _text,
    "format": _formatted,
    "charAt": _at_most(1),
    **dict.fromkeys(("getScheme", "getPort"), _at_most(_NUMBER)),
}
