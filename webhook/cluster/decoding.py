"""Decodes JSON of an API server object by object, so that a list needs only the memory of its largest object.

Lists come as one text, `{"kind", "apiVersion", "metadata", "items"}` of built-in kinds and, sorted, `{"apiVersion",
"items", "kind", "metadata"}` of custom ones. An object may be nested deeper than Python decodes, for the API server
allows 10,000 levels and `opaque.parameters` of a claim may have any: what is below DEEPEST is then null.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from webhook.attributes import JSON

LARGEST: Final = 16 << 20
"""The most bytes of one object: etcd takes 1.5 MiB by default (--max-request-bytes), and few sites ask for more."""
DEEPEST: Final = 100
_DIGITS: Final = 18
"""The most digits of a number that is certainly an int64; Python refuses to read one of 4,301."""
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_TOKEN: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\]"]', re.DOTALL)


def _int_or_float(digits: str) -> int | float:
    return int(digits) if len(digits) <= _DIGITS else float(digits)


_READ: Final = json.JSONDecoder(parse_int=_int_or_float).raw_decode


@dataclass(slots=True)
class ListDecoder:
    """Decodes the items of a list while it arrives; `fields` has its other fields, complete after the last item.

    Raises ValueError where the text is no such list.
    """

    chunks: Iterator[bytes]
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
            yield self._decode_value()
            if self._next_character() == ",":
                self._require_character(",")
        self._require_character("]")

    def _next_character(self) -> str:
        """Return the next character that is not white space."""
        while True:
            blank = _SPACE.match(self._text, self._at)
            self._at = blank.end() if blank else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            self._read_more()

    def _require_character(self, wanted: str) -> None:
        if self._next_character() != wanted:
            raise ValueError(f"expected {wanted}, found {self._text[self._at]}")
        self._at += 1

    def _decode_value(self) -> JSON:
        self._next_character()
        while True:
            read = _decode_value_at(self._text, self._at)
            if read is not None and read[1] < len(self._text):  # or a number may go on
                value, self._at = read
                return value
            self._read_more()

    def _read_more(self) -> None:
        """Read at least as much again as there is, so that an object is tried only a few times, however small the
        chunks.
        """
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


def decode_json(text: bytes) -> JSON:
    """Decode a text as one JSON value. Raises ValueError if it is not JSON."""
    whole = text.decode(errors="replace")
    read = _decode_value_at(whole, 0)
    if read is None:
        raise ValueError("not JSON")
    return read[0]


def _decode_value_at(text: str, at: int) -> tuple[JSON, int] | None:
    """Return a value and its end; None if it is cut off or not JSON."""
    try:
        return _READ(text, at)
    except RecursionError:
        shallow, end = _cut_deep_nesting(text, at)
        return (_READ(shallow)[0], end) if end else None
    except ValueError:
        return None


def _cut_deep_nesting(text: str, at: int) -> tuple[str, int]:
    """Return the text of a value with null for what is too deep, and its end, 0 if it is cut off."""
    parts: list[str] = []
    depth, since = 0, at
    for token in _TOKEN.finditer(text, at):
        if token[0] == '"':  # a text that is cut off
            break
        if token[0] in ("{", "["):
            depth += 1
            if depth == DEEPEST + 1:
                parts += [text[since : token.start()], "null"]
        elif token[0] in ("}", "]"):
            if depth == DEEPEST + 1:
                since = token.end()
            depth -= 1
            if not depth:
                return "".join([*parts, text[since : token.end()]]), token.end()
    return "", 0
