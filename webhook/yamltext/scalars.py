"""Reads a plain YAML scalar as kubectl does. The result is null, a boolean, a number or a text.

Source: sigs.k8s.io/yaml v1.6.0 with go.yaml.in/yaml/v2 v2.4.3 resolve.go, and its conversion to JSON. `yes`, `on` and
`y` are true, `017` is octal, `1_000` is a number, `1.0` is the integer 1. Dates and `12:30` stay texts. A hexadecimal,
binary or `0o` number with more than 64 bits also stays a text, for example the address of a wallet.
"""

from __future__ import annotations

import re
from typing import Final

from webhook.apimachinery.attributes import JSON

_WORDS: dict[str, JSON] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}
_NO_JSON = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_INT = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_DIGITS = 400  # a longer number is infinite as a double
_INT64 = range(-(2**63), 2**63)
_UINT64 = range(2**64)


WORD_OF_YAML_1_1: Final = re.compile(r"\b(?:y|Y|yes|Yes|YES|on|On|ON|n|N|no|No|NO|off|Off|OFF)\b")
"""Matches a word that is a boolean in YAML 1.1 and a text in 1.2."""


def is_word_of_yaml_1_1(text: str) -> bool:
    """Return whether a plain scalar is a boolean only in YAML 1.1: `on`, not `true`."""
    return WORD_OF_YAML_1_1.fullmatch(text) is not None


def resolve(text: str) -> JSON:
    """Return the value of a plain scalar.

    Raises:
        ValueError: the text is `.inf` or `.nan`, which JSON does not have.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    if _NO_JSON.fullmatch(text):
        raise ValueError(f"JSON has no number `{text}`")
    return _number(text, text.replace("_", "") if text[0] != "." else text)


def _number(text: str, plain: str) -> JSON:
    if len(plain) <= _DIGITS and _INT.fullmatch(plain):
        value = _whole(plain)
        if value in _INT64:
            return value
        if value in _UINT64 and plain[0] != "+":
            return float(value)
    if not _FLOAT.fullmatch(plain):
        return text
    number = float(plain)
    if number in {float("inf"), float("-inf")}:
        return text
    return int(number) if number.is_integer() and int(number) in _INT64 else number


def _whole(plain: str) -> int:
    sign, digits = (-1, plain[1:]) if plain[0] == "-" else (1, plain.removeprefix("+"))
    if digits[0] == "0" and digits[1:].isdigit():  # octal without the `o` that int() needs
        return sign * int(digits, 8)
    return sign * int(digits, 0)


def key(value: JSON) -> str:
    """Return a mapping key as a text, because keys are always texts in JSON.

    Raises:
        ValueError: null is not a key.
    """
    if isinstance(value, str):
        return value
    if value is None:
        raise ValueError("null cannot be a key; expected text")
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)
