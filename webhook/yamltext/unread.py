"""Represents parts of JSON that are not decoded, because API servers store JSON that is too deep for recursive code.

An `Unread` contains the text of the part, so the part can be written unchanged. A program that reads a field inside the
part gets an error, and not an empty value. Two `Unread` can be compared.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, ClassVar, Final, NoReturn

from webhook.errors import UnreadPartError

if TYPE_CHECKING:
    from webhook.deadline import Deadline

_TOKEN: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[{}\[\]]|NaN|Infinity', re.DOTALL)
"""Texts, brackets, and NaN and Infinity. JSON has no NaN, so NaN replaces each part that is cut out."""
_VALUE: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[{}\[\]]|[^\s"{}\[\]:,]+', re.DOTALL)
_CUT: Final = "NaN"
_TEXT: Final = json.JSONDecoder(strict=False)
_CONTAINERS: Final = {"{": "}", "[": "]"}
NO_FIELD: Final = "claimgate: not read"
"""The name of a field that only an `Unread` has. A caller of msgspec recognizes an `Unread` by this field, because
msgspec takes an error of `__getitem__` for a missing field."""


class _UnreadType(type):
    @property
    def cel_type(cls) -> NoReturn:
        raise UnreadPartError


class Unread(metaclass=_UnreadType):  # noqa: PLW1641 - `__hash__` is assigned below, and raises
    """A part of an object that was not decoded.

    Attributes:
        text: the JSON of the part.
        reason: why the part was not decoded, such as `it is nested deeper than 200 levels`.
    """

    __slots__ = ("_digest", "reason", "text")
    cel_size: ClassVar[int] = 1
    """The size of a part for the costs of CEL: 1, as for a number."""

    def __init__(self, text: str, reason: str) -> None:
        self.text = text
        self.reason = reason
        self._digest = b""

    def __eq__(self, other: object) -> bool:
        """Return whether two parts are equal. A text, a number or null is never equal to a part.

        Raises:
            UnreadPartError: the other value is an object or a list, which may be equal.
        """
        if isinstance(other, Unread):
            return self.text == other.text or self._value_digest() == other._value_digest()
        return self._refuse() if isinstance(other, dict | list) else False

    def _value_digest(self) -> bytes:
        """Return a digest that is the same for parts with equal values. The first call computes the digest."""
        if not self._digest:
            self._digest = _digest_of_json(self.text)
        return self._digest

    def __repr__(self) -> str:
        return f"Unread({self})"

    def __str__(self) -> str:
        return f"(not read: {self.reason})"

    def _refuse(self, *_: object) -> NoReturn:
        raise UnreadPartError(self.reason)

    def __reduce__(self) -> tuple[type[Unread], tuple[str, str]]:
        return Unread, (self.text, self.reason)

    def __bool__(self) -> bool:
        """Return true, because empty objects and lists, and 0, are always decoded."""
        return True

    def __getitem__(self, key: object) -> None:
        """Return None for NO_FIELD.

        Raises:
            UnreadPartError: the key is another name.
        """
        if key != NO_FIELD:
            self._refuse()

    get = items = keys = values = _refuse
    __hash__ = __len__ = __iter__ = __contains__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __add__ = __radd__ = __int__ = __float__ = _refuse


def refuse_unread_part(value: object) -> None:
    """Raise an error for a part that was not read, because other code would take the part for an absent field.

    Raises:
        UnreadPartError: the value is an `Unread`.
    """
    if type(value) is Unread:
        raise UnreadPartError(value.reason)


def cut_deep_parts(text: str, deepest: int, reason: str, deadline: Deadline) -> tuple[str, Iterator[Unread]]:
    """Return JSON text with NaN in place of every part below `deepest` levels, and these parts in order.

    Other values stay at their offsets.

    Raises:
        json.JSONDecodeError: the text itself has NaN or Infinity.
    """
    pieces: list[str] = []
    parts: list[Unread] = []
    depth, copied_until, part_start = 0, 0, 0
    for token in deadline.items_with_clock_checks(_TOKEN.finditer(text)):
        mark = token[0]
        if mark in _CONTAINERS:
            depth += 1
            if depth == deepest + 1:
                part_start = token.start()
        elif mark in ("}", "]"):
            end = token.end()
            if depth == deepest + 1 and text[part_start + 1 : end - 1].strip():
                parts.append(Unread(text[part_start:end], reason))
                pieces += (text[copied_until:part_start], _CUT.ljust(end - part_start))
                copied_until = end
            depth -= 1
        elif mark[0] != '"':
            raise json.JSONDecodeError("Expecting value", text, token.start())
    pieces.append(text[copied_until : part_start if depth > deepest else len(text)])
    return "".join(pieces), iter(parts)


def _digest_of_json(text: str) -> bytes:
    """Return a digest that does not depend on the order of keys, the form of numbers, or escapes in texts."""
    opened: list[tuple[str, list[bytes]]] = [("[", [])]
    for token in _VALUE.finditer(text):
        mark = token[0]
        if mark in _CONTAINERS:
            opened.append((mark, []))
            continue
        if mark in ("}", "]"):
            bracket, parts = opened.pop()
            digest = _digest_of_parts(bracket, _entries_by_key(parts) if bracket == "{" else parts)
        else:
            digest = _digest_of_parts("", [_plain_value(mark).encode()])
        opened[-1][1].append(digest)
    return opened[0][1][0]


def _plain_value(mark: str) -> str:
    """Return a text that is the same for equal values. Integers of any size keep all digits."""
    if mark[0] == '"':
        return f'"{_TEXT.decode(mark)}'
    if mark in ("true", "false", "null"):
        return mark
    number = float(mark)
    return mark if number in (float("inf"), float("-inf")) or mark.lstrip("-").isdigit() else _as_integer(number)


def _as_integer(number: float) -> str:
    return str(int(number)) if number.is_integer() else repr(number)


def _entries_by_key(parts: list[bytes]) -> Iterable[bytes]:
    """Return the entries of an object in the order of the keys. `parts` has keys and values alternately. The last value
    of a key counts.
    """
    entries = dict(zip(parts[::2], parts[1::2], strict=True))
    return (key + entries[key] for key in sorted(entries))


def _digest_of_parts(bracket: str, parts: Iterable[bytes]) -> bytes:
    digest = hashlib.sha256(bracket.encode())
    for part in parts:
        digest.update(part)
    return digest.digest()
