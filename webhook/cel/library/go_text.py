"""Formats texts and numbers as Go does: strconv.Quote, and %f and %e of golang.org/x/text/message.

Kubernetes' CEL formats numbers with x/text in the en-US locale. This package separates thousands, writes `×10⁰⁴`, uses
the precision of %e as the width, and stores a precision in too few bits. All of this is copied exactly, because an
expression may compare the text. Observed in k8s.io/apiserver v0.36.1 (cel-go v0.26.0, x/text v0.33).
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
"""Characters with a backslash escape in quoted text of Go and CEL."""

_SPECIAL = re.compile(r'["\\\x00-\x1f\x7f]|[^\x00-\x7f]+')
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_NO_VERB = "%!(NOVERB)"
_LARGEST_PARSED = 10_000_009
"""The largest precision that x/text reads: parsenum refuses another digit after a number above a million."""

_MOST_DIGITS = 1100
"""A double has at most 1074 digits after the point."""


def quote_as_go(text: str, deadline: Deadline | None = None) -> str:
    """Return a text as Go's %q."""
    pieces = [text] if deadline is None else deadline.pieces(text)
    return f'"{"".join([_SPECIAL.sub(_quote_special_characters, piece) for piece in pieces])}"'


def _quote_special_characters(match: re.Match[str]) -> str:
    # escapes characters of ESCAPES and characters that are not printable
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
    """Return a number as %.<precision>f, with thousands separated."""
    if precision > _LARGEST_PARSED:
        return _NO_VERB
    if (special := _text_of_nan_or_infinity(value)) is not None:
        return special
    stored_precision = precision & 0xFFFF  # x/text stores the precision as int16 for rounding
    text = (
        f"{value:,.{min(stored_precision, _MOST_DIGITS)}f}"
        if stored_precision < 0x8000
        else f"{_shortest_decimal(value):,}"
    )
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
    """Return a number as %<width>e: six digits after the point, a superscript exponent, spaces on the left."""
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
