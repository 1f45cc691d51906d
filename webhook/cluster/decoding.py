"""Decodes JSON of an API server object by object, so that a list needs only the memory of its largest object.

The fields of a list come in the order kind, apiVersion, metadata, items; for a custom kind, in alphabetical order.

API servers accept 10,000 levels, for example in `opaque.parameters` of a claim. Python decodes fewer levels, so
TOO_DEEP replaces everything below DEEPEST levels. Code that keeps an object must search it for TOO_DEEP and for deeper
values (`is_too_deep`).
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from msgspec import Struct, field

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import MAX_DEPTH

LARGEST: Final = 16 << 20
"""The maximum size of one object in bytes. By default, etcd accepts 1.5 MiB (--max-request-bytes); few sites raise this
limit.
"""
DEEPEST: Final = MAX_DEPTH
"""The maximum depth of a decoded object. A review has the same limit, so code that walks objects may recurse."""
_DIGITS: Final = 18
"""Numbers with at most this many digits are an int64. Python refuses to parse an integer of 4,301 digits."""
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_CLOSING: Final = '}]"'
"""The last characters of complete values. Only a number may continue in the next chunk."""
_TOKEN: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\]"]', re.DOTALL)


def _int_or_float(digits: str) -> int | float:
    return int(digits) if len(digits) <= _DIGITS else float(digits)


class _TooDeep:
    __slots__ = ()


TOO_DEEP: Final = _TooDeep()
"""Replaces a value that is nested too deeply to be decoded."""
_PLACEHOLDER: Final = "NaN"
"""The text of TOO_DEEP. JSON does not have this constant, so Python's decoder calls a function for this constant."""


def _float(text: str) -> float:
    return float(text)


def _unchanged(obj: JSON) -> JSON:
    return obj


_READ: Final = json.JSONDecoder(
    parse_int=_int_or_float, parse_float=_float, object_hook=_unchanged, parse_constant=lambda _: TOO_DEEP
).raw_decode
"""Decodes with a Python function for each number and each object, so that other threads can run meanwhile. A decoder in
C would block the event loop: 35 ms for the numbers of one claim, 55 ms for the objects in 1.4 MB."""

ReadValue: TypeAlias = "Callable[[str, int], tuple[JSON, int] | None]"
"""Decodes the value at an index of a text. Returns the kept part and the index of the end, or None if the value is cut
off or not JSON.
"""


class ListDecoder(Struct):
    """Decodes the items of a list while the list arrives. Raises ValueError if the text is not a list of the API.

    Attributes:
        fields: the other fields of the list, complete after the last item.
        read_item: decodes one item and returns the kept part.
    """

    chunks: Iterator[bytes]
    read_item: ReadValue | None = None
    fields: dict[str, JSON] = field(default_factory=dict)
    _text: str = ""
    _at: int = 0
    _decoder: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace")
    )

    def __iter__(self) -> Iterator[JSON]:
        self._require_character("{")
        while self._next_character() != "}":
            key = self._decode_value()
            self._require_character(":")
            if key == "items" and self._next_character() == "[":
                yield from self._decode_items()
            else:
                self.fields[key] = self._decode_value()
            if self._next_character() == ",":
                self._require_character(",")

    def _decode_items(self) -> Iterator[JSON]:
        self._require_character("[")
        while self._next_character() != "]":
            yield self._decode_value(self.read_item or decode_value_at)
            if self._next_character() == ",":
                self._require_character(",")
        self._require_character("]")

    def _next_character(self) -> str:
        while True:
            blank = _SPACE.match(self._text, self._at)
            self._at = blank.end() if blank else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            self._read_more()

    def _require_character(self, expected: str) -> None:
        if self._next_character() != expected:
            raise ValueError(f"expected {expected}, found {self._text[self._at]}")
        self._at += 1

    def _decode_value(self, read_value: ReadValue | None = None) -> JSON:
        self._next_character()
        while True:
            value_and_end = (read_value or decode_value_at)(self._text, self._at)
            if value_and_end is not None and (value_and_end[1] < len(self._text) or self._text[-1] in _CLOSING):
                value, self._at = value_and_end
                return value
            self._read_more()

    def _read_more(self) -> None:
        # each read at least doubles the text, so that an object in many small chunks is decoded only a few times
        rest = self._text[self._at :]
        if len(rest) > LARGEST:
            raise ValueError(f"an object is larger than {LARGEST} bytes, or not JSON")
        parts, length = [rest], 0
        while length <= len(rest):
            chunk = next(self.chunks, None)
            if chunk is None:
                if length:
                    break
                raise ValueError("the list is cut off")
            parts.append(self._decoder.decode(chunk))
            length += len(parts[-1])
        self._text, self._at = "".join(parts), 0


def decode_json(text: bytes, read_value: ReadValue | None = None) -> JSON:
    """Decode a text as one JSON value; raises ValueError."""
    value_and_end = (read_value or decode_value_at)(text.decode(errors="replace"), 0)
    if value_and_end is None:
        raise ValueError("not JSON")
    return value_and_end[0]


def decode_value_at(text: str, at: int) -> tuple[JSON, int] | None:
    """Return a value and its end; None if the value is cut off or not JSON."""
    try:
        return _READ(text, at)
    except RecursionError:
        shallow, end = _cut_deep_nesting(text, at)
        return (_READ(shallow)[0], end) if end else None
    except ValueError:
        return None


def _cut_deep_nesting(text: str, at: int) -> tuple[str, int]:
    """Return the text of a value with placeholders for deep parts, and its end; ("", 0) if the value is cut off."""
    parts: list[str] = []
    depth, since = 0, at
    for token in _TOKEN.finditer(text, at):
        if token[0] == '"':  # a text that is cut off
            break
        if token[0] in ("{", "["):
            depth += 1
            if depth == DEEPEST + 1:
                parts += [text[since : token.start()], _PLACEHOLDER]
        elif token[0] in ("}", "]"):
            if depth == DEEPEST + 1:
                since = token.end()
            depth -= 1
            if not depth:
                return "".join([*parts, text[since : token.end()]]), token.end()
    return "", 0


def is_too_deep(value: JSON) -> bool:
    """Return whether a value is nested deeper than DEEPEST."""
    level = [value]
    for _ in range(DEEPEST):
        next_level: list[JSON] = []
        for each in level:
            if isinstance(each, dict):
                next_level += each.values()
            elif isinstance(each, list):
                next_level += each
        if not next_level:
            return False
        level = next_level
    return any(each is TOO_DEEP or isinstance(each, dict | list) for each in level)
