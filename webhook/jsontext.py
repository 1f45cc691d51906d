"""JSON text with places: one value, several in a row, or one a line.

Knows no files. Stricter than the standard library's reader where Kubernetes is: NaN and Infinity are refused, numbers
outside int64 become doubles (k8s.io/apimachinery v0.36.1 pkg/util/json). Of a key that stands twice in an object the
last counts, and it is told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NoReturn

from webhook.attributes import JSON
from webhook.paths import FieldPath

_SPACE = re.compile(r"[ \t\r\n]*")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}:,]|[^\s\[\]{}:,"]+', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_INT64 = range(-(2**63), 2**63)
_KEYS = json.JSONDecoder(strict=False)


class JsonError(ValueError):
    """Text that JSON allows and Kubernetes does not, or that is too deep; `offset` is its place."""

    def __init__(self, message: str, offset: int = 0) -> None:
        super().__init__(message)
        self.offset = offset


def values_with_offsets(text: str, repeated: list[JsonError]) -> Iterator[tuple[JSON, int]]:
    """Yield every value of the text with its offset.

    Args:
        text: one value, or several in a row.
        repeated: gets what to say of the first key of a value that stands twice in one object with different values.

    Raises:
        json.JSONDecodeError: not JSON.
        JsonError: NaN or Infinity, or nesting beyond the decoder's limit.
    """
    objects = _ObjectBuilder()
    decoder = json.JSONDecoder(
        object_pairs_hook=objects.build_object, parse_int=_int_or_float, parse_constant=_refuse_nan_and_infinity
    )
    offset = _skip_white_space(text, 0)
    while offset < len(text):
        try:
            value, end = decoder.raw_decode(text, offset)
        except JsonError as error:
            raise JsonError(str(error), offset) from None
        except RecursionError:
            raise JsonError("nested too many levels deep", offset) from None
        if objects.repeated:
            repeated.append(_error_of_repeated_key(text, offset, objects.repeated))
            objects.repeated = set()
        yield (_without_surrogates(value) if "\\u" in text[offset:end] else value), offset
        offset = _skip_white_space(text, end)


class _ObjectBuilder:
    """Builds the objects of a text, and notes the keys that one of them has with different values."""

    def __init__(self) -> None:
        self.repeated: set[str] = set()

    def build_object(self, pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
        result = dict(pairs)
        if len(result) < len(pairs):
            self.repeated |= {key for key, value in pairs if not equal_as_json(value, result[key])}
        return result


def equal_as_json(one: JSON, other: JSON) -> bool:
    """Return whether values are equal as JSON text: true is not 1, and 1 is not 1.0."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return len(one) == len(other) and all(
            key in other and equal_as_json(value, other[key]) for key, value in one.items()
        )
    if isinstance(one, list):
        return len(one) == len(other) and all(map(equal_as_json, one, other))
    return bool(one == other)


def _skip_white_space(text: str, offset: int) -> int:
    match = _SPACE.match(text, offset)
    assert match is not None
    return match.end()


def _int_or_float(text: str) -> int | float:
    value = int(text) if len(text) < 30 else None
    return value if value is not None and value in _INT64 else float(text)


def _refuse_nan_and_infinity(text: str) -> NoReturn:
    raise JsonError(f"`{text}` is not a number that JSON can hold")


def _without_surrogates(value: JSON) -> JSON:
    """Return the value with each half of a surrogate pair replaced by U+FFFD, as in Go."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return value


def offset_at_path(text: str, offset: int, path: FieldPath, *, has_repeated: bool = False) -> int:
    """Return the offset of the key or item at a path inside the value at `offset`, or of its nearest existing ancestor.

    With `has_repeated` the text is read to its end, since of a key that stands twice the last one counts.
    """
    best, matched = offset, 0
    for steps, place in _keys_with_offsets(text, offset):
        if matched == len(path) and not has_repeated:
            break
        depth = len(steps)
        if depth <= matched + 1 and tuple(steps) == path[:depth]:
            best, matched = place, depth
    return best


def end_of_value(text: str, offset: int, longest: int) -> int:
    """Return where the value at `offset` ends, which was read already; 0 where it has more characters than
    `longest`.
    """
    try:
        return offset + _KEYS.raw_decode(text[offset : offset + longest])[1]
    except json.JSONDecodeError:
        return 0


def item_offsets(text: str, offset: int, path: FieldPath) -> list[int]:
    """Return the offsets of the items of the list at a path inside the value at `offset`; none where there is
    no list.
    """
    offsets: list[int] = []
    for steps, place in _keys_with_offsets(text, offset):
        if len(steps) == len(path) + 1 and isinstance(steps[-1], int) and tuple(steps[:-1]) == path:
            offsets.append(place)
        elif offsets and len(steps) <= len(path):
            break
    return offsets


def _error_of_repeated_key(text: str, offset: int, keys: set[str]) -> JsonError:
    """Return the error for the first one of some keys that comes twice in one object of the value."""
    seen: set[tuple[str | int, ...]] = set()
    for steps, place in _keys_with_offsets(text, offset):
        path = tuple(steps)
        if path in seen and path[-1] in keys:
            message = f"key `{path[-1]}` appears twice in one object, and kubectl takes the last; expected it once"
            return JsonError(message, place)
        seen.add(path)
    raise AssertionError("a value that was read has no key twice")  # pragma: no cover - it was read with one


def _keys_with_offsets(text: str, offset: int) -> Iterator[tuple[list[str | int], int]]:
    """Yield the path and the offset of every key and item of the value at `offset`, in order."""
    steps: list[str | int] = []  # one for each open bracket
    opened: list[str] = []
    expects_step = False
    for token in _TOKEN.finditer(text, offset):  # pragma: no branch - a value that was read closes its brackets
        mark = token[0]
        if expects_step and mark not in ("]", "}"):
            steps[-1] = _KEYS.decode(mark) if opened[-1] == "{" else int(steps[-1]) + 1
            yield steps, token.start()
        expects_step = mark in ("{", "[", ",")
        if mark in ("{", "["):
            opened.append(mark)
            steps.append(-1)
        elif mark in ("]", "}"):
            opened.pop()
            steps.pop()
        if not opened:
            return
