"""Formats texts and numbers as Go does for the results of CEL: strconv.Quote and golang.org/x/text/message's %f and %e.

Kubernetes' CEL formats numbers with x/text in the en-US locale, including its oddities: thousands separators,
`×10⁰⁴`, a precision that is a width in %e, and numbers stored in too few bits. Observed in k8s.io/apiserver v0.36.1
(cel-go v0.26.0, x/text v0.33). The text must be exact, because an expression may compare it.
"""  # noqa: RUF002

from __future__ import annotations

import math
import re

from webhook.deadline import Deadline

ESCAPES = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}
"""The characters that Go and CEL write with a backslash escape in quoted text."""

_SPECIAL = re.compile(r'["\\\x00-\x1f\x7f]|[^\x00-\x7f]+')
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_NO_VERB = "%!(NOVERB)"
_LARGEST_PARSED = 10_000_009
"""The largest number that x/text's parsenum reads; it stops when the number so far is over a million."""

_MOST_DIGITS = 1100
"""More than the 1074 digits that a double can have after the point."""


def quote_as_go(text: str, deadline: Deadline | None = None) -> str:
    """Return a text as Go's %q writes it."""
    pieces = [text] if deadline is None else deadline.pieces(text)
    return f'"{"".join([_SPECIAL.sub(_quote_special_characters, piece) for piece in pieces])}"'


def _quote_special_characters(match: re.Match[str]) -> str:
    """Return characters that are special or outside printable ASCII as %q writes them."""
    text = match[0]
    return text if text.isprintable() and text not in ESCAPES else "".join(map(_quote_character, text))


def _quote_character(character: str) -> str:
    if (escaped := ESCAPES.get(character)) is not None:
        return escaped
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def fixed_notation(value: float, precision: int) -> str:
    """Return a number as %.<precision>f writes it, with thousands separated."""
    if precision > _LARGEST_PARSED:
        return _NO_VERB
    if (special := _text_of_nan_or_infinity(value)) is not None:
        return special
    kept = precision & 0xFFFF  # x/text stores the precision as int16 for rounding
    text = f"{value:,.{min(kept, _MOST_DIGITS)}f}" if kept < 0x8000 else f"{_shortest_decimal(value):,}"
    whole, _, fraction = text.partition(".")
    fraction = fraction.rstrip("0").ljust(precision & 0xFF, "0")  # x/text stores the precision as uint8 for padding
    if value == 0:
        whole = "0"
    return f"{whole}.{fraction}" if fraction else whole


def _shortest_decimal(value: float) -> object:
    from decimal import Decimal

    number = Decimal(repr(value))
    return number if number.as_tuple().exponent else int(number)


def scientific_notation(value: float, width: int) -> str:
    """Return a number as %<width>e writes it: six digits, the exponent in superscript, padded with spaces on
    the left.
    """
    if width > _LARGEST_PARSED:
        return _NO_VERB
    text = _text_of_nan_or_infinity(value)
    if text is None:
        mantissa, _, exponent = f"{value or 0.0:.6e}".partition("e")
        text = f"{mantissa}×10{exponent.removeprefix('+').translate(_SUPERSCRIPT)}"  # noqa: RUF001
    return text.rjust(width & 0xFFFF)


def _text_of_nan_or_infinity(value: float) -> str | None:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return None
