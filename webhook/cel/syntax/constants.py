"""Converts literal tokens to values: numbers within 64 bits, strings and bytes with their escapes.

Rules and wording: cel-go v0.26 parser/unescape.go and the literals of parser/parser.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from webhook.cel.values import UInt

_SIMPLE = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "?": "?", '"': '"', "'": "'", "`": "`",
}  # fmt: skip
_ESCAPED = re.compile(
    r"\\(?:[xX](?P<byte>..)|[uU](?P<rune>(?<=u)....|(?<=U)........)|(?P<octal>[0-3]..)|(?P<simple>.))"
)


def string_value(text: str) -> str:
    """Return the value of a string token: without quotes and prefix, escapes decoded, line ends changed to a line feed.

    Raises:
        ValueError: an escape names no Unicode character.
    """
    raw, body = _unquoted(text)
    return body if raw or "\\" not in body else _ESCAPED.sub(_decoded_escape, body)


def bytes_value(text: str) -> bytes:
    """Return the value of a bytes token, where hexadecimal and octal escapes are bytes and Unicode escapes are
    errors.
    """
    raw, body = _unquoted(text[1:])
    if raw or "\\" not in body:
        return body.encode()
    value, end = bytearray(), 0
    for match in _ESCAPED.finditer(body):
        if match["rune"]:
            raise ValueError("unable to unescape string")
        value += body[end : match.start()].encode()
        value.append(ord(_decoded_escape(match)))
        end = match.end()
    return bytes(value + body[end:].encode())


def _unquoted(text: str) -> tuple[bool, str]:
    raw = text[0] in "rR"
    if raw:
        text = text[1:]
    width = 3 if text[:3] in ('"""', "'''") and len(text) >= 6 else 1
    body = text[width:-width]
    return raw, body.replace("\r\n", "\n").replace("\r", "\n") if "\r" in body else body


def _decoded_escape(match: re.Match[str]) -> str:
    if match["simple"]:
        return _SIMPLE[match["simple"]]
    code = int(match["octal"], 8) if match["octal"] else int(match["byte"] or match["rune"], 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise ValueError("invalid unicode code point")
    return chr(code)


def _int_value(text: str) -> int:
    sign, digits = (text[0], text[1:]) if text[0] == "-" else ("", text)
    value = _whole_number(digits, "int")
    value = -value if sign else value
    if not -(2**63) <= value < 2**63:
        raise ValueError("invalid int literal")
    return value


def _uint_value(text: str) -> UInt:
    value = _whole_number(text[:-1], "uint")
    if value >= 2**64:
        raise ValueError("invalid uint literal")
    return UInt(value)


def _whole_number(digits: str, kind: str) -> int:
    if len(digits) > 40:  # too large for 64 bits unless led by zeros, and int() refuses thousands of digits
        digits = digits.lstrip("0") if digits[:2] != "0x" else "0x0" + digits[2:].lstrip("0")
        if len(digits) > 40:
            raise ValueError(f"invalid {kind} literal")
    return int(digits or "0", 16) if digits[:2] == "0x" else int(digits or "0")


def _double_value(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError("invalid double literal")
    return value


LITERALS: dict[str, Callable[[str], object]] = {
    "int": _int_value,
    "uint": _uint_value,
    "double": _double_value,
    "string": string_value,
    "bytes": bytes_value,
    "true": lambda _: True,
    "false": lambda _: False,
    "null": lambda _: None,
}
"""The function that reads each kind of token; it raises ValueError with the complaint. A minus sign may lead a
number.
"""
