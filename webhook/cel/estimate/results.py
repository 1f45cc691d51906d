"""What the results of calls are made of, for the worst case: cel-go's estimate takes optionals and texts for unknown.

An optional counts as the value that it has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

from webhook.cel.estimate.calls import Asked
from webhook.cel.estimate.sizes import Part, Range, shared

_NUMBER = 40
"""No number, time or address is longer as a text."""
_Result: TypeAlias = Callable[[Asked, Part], Part]


def result(asked: Asked, part: Part) -> Part:
    """The result of a call, with what its arguments tell of it."""
    known = _RESULTS.get(asked.function)
    return part if known is None else known(asked, part)


def _same(asked: Asked, part: Part) -> Part:
    """The value that the first argument has or is; an optional without one counts 1."""
    size = None if asked.first.size is None else asked.first.size | Range(0, 1)
    return replace(part, size=size, entries=asked.first.entries, path=asked.first.path)


def _element(asked: Asked, part: Part) -> Part:
    path = (*asked.first.path, "@items")
    entries = asked.first.entries
    size = entries.value if entries else asked.sizes(path, part.type) if asked.sizes else None
    return replace(part, size=size, path=path)


def _either(asked: Asked, part: Part) -> Part:
    one, other = asked.first, asked.arguments[0]
    size = None if one.size is None or other.size is None else one.size | other.size
    return replace(part, size=size, entries=shared(one.entries, other.entries), path=one.path)


def _text(asked: Asked, part: Part) -> Part:
    if asked.first.type.name in ("string", "bytes", "dyn", "any") or asked.first.size is None:
        return replace(part, size=asked.first.extent | Range(0, _NUMBER))
    return replace(part, size=Range(0, _NUMBER))


def _formatted(asked: Asked, part: Part) -> Part:
    values = asked.arguments[0]
    if values.entries is None:
        return part
    each = Range(0, max(values.entries.value.most, _NUMBER))
    return replace(part, size=asked.first.extent + values.extent * each)


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
