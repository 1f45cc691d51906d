"""Reads JSON as an API server reads it, with the places of values.

Go and Kubernetes differ from the standard library of Python:

- NaN and Infinity are refused.
- Numbers outside int64 become doubles (k8s.io/apimachinery v0.36.1 pkg/util/json).
- Each byte that is not UTF-8, or half of a surrogate pair, becomes U+FFFD (encoding/json unquote).
- The last of repeated keys counts. `values_with_offsets` also reports the repeated key.

A part that is nested too deeply becomes an `Unread`, and so does a number that is too large for a double. In fields
that Go does not decode, Go accepts such parts with up to 10,000 levels. Brackets are counted before any recursion, in
about a nanosecond for each byte.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Iterator
from functools import partial
from itertools import accumulate
from typing import Final

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import MAX_DEPTH, FieldPath
from webhook.deadline import Deadline
from webhook.yamltext.unread import Unread, cut_deep_parts

_BLOCK: Final = 1 << 16
_STEPS: Final = bytes.maketrans(b"{[}]", b"\x01\x01\xff\xff")
"""Translates an opening bracket to 1, and a closing bracket to -1 as a signed byte."""
_NO_OPENING_BRACKET: Final = bytes(byte for byte in range(256) if byte not in b"{[")
_NO_BRACKET: Final = bytes(byte for byte in range(256) if byte not in b'{}[]"')
_STRETCH: Final = 32
_ROUNDS: Final = 8
_SPACE = re.compile(r"[ \t\r\n]*")
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}:,]|[^\s\[\]{}:,"]+', re.DOTALL)
_HALF_PAIR: Final = re.compile(r"\\u[dD][89a-fA-F]")
_HIGH, _LOW = "u[dD][89abAB][0-9a-fA-F]{2}", "u[dD][c-fC-F][0-9a-fA-F]{2}"
_ESCAPE: Final = re.compile(rf"\\(?:{_HIGH}\\{_LOW}|(?P<half>{_HIGH}|{_LOW})|.)", re.DOTALL)
_TOO_DEEP: Final = f"it is nested deeper than {MAX_DEPTH} levels"
_NO_DOUBLE: Final = "the number is too large for a double"
_INVALID_BYTES: Final = "claimgate: U+FFFD for each invalid byte"
_LONGEST_INT: Final = 30
_INT64 = range(-(2**63), 2**63)
_KEYS = json.JSONDecoder(strict=False)


class JsonError(ValueError):
    """Kubernetes does not accept the JSON, or an object has a key twice.

    Attributes:
        offset: the place in the text.
        is_harmless: whether the error is about a repeated key, and the last value of the key contains all earlier
            values.
    """

    def __init__(self, message: str, offset: int = 0, *, is_harmless: bool = False) -> None:
        super().__init__(message)
        self.offset, self.is_harmless = offset, is_harmless


def values_with_offsets(text: str, repeated: list[JsonError]) -> Iterator[tuple[JSON, int]]:
    """Yield every value of the text with its offset.

    Args:
        text: one value, or several in a row. Lines of comments with `#` may follow a value, as kubectl allows.
        repeated: gets one error for each value in which an object has a key twice with different values.

    Raises:
        json.JSONDecodeError: the text is not JSON.
        JsonError: the text has NaN or Infinity.
    """
    objects = _ObjectBuilder()
    readable, parts = _readable_text(text, Deadline())
    decoder = _Decoder(parts, objects)
    offset = _skip_white_space(text, 0)
    while offset < len(text):
        try:
            value, end = decoder.raw_decode(readable, offset)
        except JsonError as error:
            raise JsonError(str(error), offset) from None
        if objects.repeated:
            repeated.append(_error_of_repeated_key(text, offset, objects))
            objects.repeated, objects.lost = set(), set()
        yield value, offset
        offset = _skip_comments(text, _skip_white_space(text, end))


def decode_any_json(body: bytes, deadline: Deadline) -> JSON:
    """Return the value of any JSON that an API server reads or stores. msgspec is about ten times faster, but refuses
    some of such JSON.

    Raises:
        ValueError: the body is not JSON.
    """
    text, parts = _readable_text(text_of_bytes(body), deadline)
    deadline.check_clock()  # the decoder cannot be interrupted
    return _Decoder(parts).decode(text)


def text_of_bytes(data: bytes) -> str:
    """Decode UTF-8. Each byte that is not UTF-8 becomes U+FFFD, as in Go's decoder."""
    return data.decode(errors=_INVALID_BYTES)


def _replace_invalid_bytes(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "\ufffd" * (error.end - error.start), error.end


codecs.register_error(_INVALID_BYTES, _replace_invalid_bytes)


def _readable_text(text: str, deadline: Deadline) -> tuple[str, Iterator[Unread]]:
    """Return the text with NaN in place of each part that is too deep, and these parts. Other values stay at their
    offsets.

    Raises:
        json.JSONDecodeError: a text with such parts has NaN or Infinity.
    """
    if _HALF_PAIR.search(text):
        deadline.spend(len(text))
        text = _ESCAPE.sub(_whole_escape, text)
    if not is_deeper_than(MAX_DEPTH, text.encode(errors="replace")):
        return text, iter(())
    return cut_deep_parts(text, MAX_DEPTH, _TOO_DEEP, deadline)


def _whole_escape(match: re.Match[str]) -> str:
    return r"\ufffd" if match["half"] else match[0]


class _Decoder(json.JSONDecoder):
    """Decodes a text of `_readable_text`. Each NaN in the text becomes the next of the parts that are not read."""

    def __init__(self, parts: Iterator[Unread], objects: _ObjectBuilder | None = None) -> None:
        super().__init__(
            object_pairs_hook=None if objects is None else objects.build_object,
            parse_int=_int_or_float,
            parse_float=_float_or_unread,
            parse_constant=partial(_next_unread_part, parts),
        )


def _next_unread_part(parts: Iterator[Unread], constant: str) -> Unread:
    for part in parts:
        return part
    raise JsonError(f"JSON has no number `{constant}`")


class _ObjectBuilder:
    """Builds the objects of a text.

    Attributes:
        repeated: the keys that an object has twice with different values.
        lost: the keys with a last value that lacks a part of an earlier value.
    """

    def __init__(self) -> None:
        self.repeated: set[str] = set()
        self.lost: set[str] = set()

    def build_object(self, pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
        result = dict(pairs)
        if len(result) < len(pairs):
            self.repeated |= {key for key, value in pairs if not equal_as_json(value, result[key])}
            self.lost |= {key for key, value in pairs if not keeps_value(result[key], value, key)}
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


def keeps_value(last: JSON, earlier: JSON, key: str = "") -> bool:
    """Return whether the last value of a repeated key contains all of an earlier value. The last value may lack an
    earlier null, and may have another `description`, because no program reads these. A list or map also contains an
    empty list or map.
    """
    if earlier is None or earlier is last:
        return True
    if earlier in ({}, []):
        return isinstance(last, dict | list)
    if isinstance(earlier, dict):
        return isinstance(last, dict) and all(
            keeps_value(last.get(name), value, name) for name, value in earlier.items()
        )
    if isinstance(earlier, list):
        return isinstance(last, list) and len(earlier) <= len(last) and all(map(keeps_value, last, earlier))
    return equal_as_json(earlier, last) or (key == "description" and isinstance(last, str))


def _skip_white_space(text: str, offset: int) -> int:
    match = _SPACE.match(text, offset)
    assert match is not None
    return match.end()


def _skip_comments(text: str, offset: int) -> int:
    while text.startswith("#", offset):
        line_end = text.find("\n", offset)
        offset = _skip_white_space(text, line_end) if line_end >= 0 else len(text)
    return offset


def _int_or_float(text: str) -> int | float | Unread:
    value = int(text) if len(text) < _LONGEST_INT else None
    return value if value is not None and value in _INT64 else _float_or_unread(text)


def _float_or_unread(text: str) -> float | Unread:
    value = float(text)
    return Unread(text, _NO_DOUBLE) if math.isinf(value) else value


def offset_at_path(text: str, offset: int, path: FieldPath, *, has_repeated: bool = False) -> int:
    """Return the offset of the key or item at a path inside the value at `offset`, or of its nearest ancestor.

    With `has_repeated`, the text is read to its end, because the last of repeated keys counts.
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
    """Return the offset after the valid value at `offset`; 0 if the value is longer than `longest` or too deep."""
    shown = text[offset : offset + longest]
    if is_deeper_than(MAX_DEPTH, shown.encode(errors="replace")):
        return 0
    try:
        return offset + _KEYS.raw_decode(shown)[1]
    except json.JSONDecodeError:
        return 0


def item_offsets(text: str, offset: int, path: FieldPath) -> list[int]:
    """Return the offsets of the items of the list at a path inside the value at `offset`; [] without a list."""
    offsets: list[int] = []
    for steps, place in _keys_with_offsets(text, offset):
        if len(steps) == len(path) + 1 and isinstance(steps[-1], int) and tuple(steps[:-1]) == path:
            offsets.append(place)
        elif offsets and len(steps) <= len(path):
            break
    return offsets


def _error_of_repeated_key(text: str, offset: int, objects: _ObjectBuilder) -> JsonError:
    """Return the error for the first repeated key that loses a part of a value, or else for the first repeated key."""
    keys = objects.lost or objects.repeated
    seen: set[tuple[str | int, ...]] = set()
    for steps, place in _keys_with_offsets(text, offset):
        if len(steps) > MAX_DEPTH:  # inside an `Unread`
            continue
        path = tuple(steps)
        if path in seen and path[-1] in keys:
            message = f"key `{path[-1]}` appears twice in one object, and kubectl uses the last value; expected it once"
            return JsonError(message, place, is_harmless=not objects.lost)
        seen.add(path)
    raise AssertionError("no object has a key twice")  # pragma: no cover - the decoder saw a repeated key


def _keys_with_offsets(text: str, offset: int) -> Iterator[tuple[list[str | int], int]]:
    """Yield path and offset of each key and item of the value at `offset`, in order."""
    steps: list[str | int] = []  # the current step inside each open bracket
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


def is_deeper_than(bound: int, body: bytes) -> bool:
    """Return whether JSON is nested deeper than `bound` levels. The result is also true if the text has more than
    `bound` opening brackets, and brackets do not match.

    Nearly all bodies have too few opening brackets to be deep, if a bracket in `},{` does not count. In other bodies,
    each opening bracket is a step down and each closing bracket a step up. The steps are added up part by part, and one
    by one only in a part that may exceed the bound.
    """
    opening = len(body.translate(None, _NO_OPENING_BRACKET))
    if opening <= bound or opening - body.count(b"},{") <= bound:
        return False
    unescaped = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    # two quotes in a row are removed, because they would make many pieces below and hide no bracket
    steps = unescaped.translate(_STEPS, _NO_BRACKET).replace(b'""', b"")
    depth, in_string = 0, 0
    for start in range(0, len(steps), _BLOCK):
        pieces = steps[start : start + _BLOCK].split(b'"')
        after = _depth_after_brackets(b"".join(pieces[in_string::2]), depth, bound)
        if after is None:
            return True
        depth = after
        in_string = (in_string + len(pieces) - 1) % 2
    return depth != 0


def _depth_after_brackets(steps: bytes, depth: int, bound: int) -> int | None:
    """Return the depth after some brackets; None if the depth exceeds `bound` among these brackets."""
    rest, rounds = _remove_innermost_bracket_pairs(steps)
    down = rest.count(b"\x01")
    if depth + down + rounds <= bound:
        return depth + 2 * down - len(rest)
    signed = memoryview(steps).cast("b")
    for start in range(0, len(steps), _STRETCH):
        down = steps.count(b"\x01", start, start + _STRETCH)
        if depth + down > bound and max(accumulate(signed[start : start + _STRETCH], initial=depth)) > bound:
            return None
        depth += 2 * down - min(_STRETCH, len(steps) - start)
    return depth


def _remove_innermost_bracket_pairs(steps: bytes) -> tuple[bytes, int]:
    """Return the brackets without innermost pairs, and the number of rounds. A round removes at most one level."""
    for rounds in range(_ROUNDS):
        shorter = steps.replace(b"\x01\xff", b"")
        if len(shorter) * 4 > len(steps) * 3:
            return steps, rounds
        steps = shorter
    return steps, _ROUNDS
