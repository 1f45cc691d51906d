"""Quantities: the exact arithmetic and spelling of resource.Quantity.

Source: k8s.io/apimachinery v0.36.1 pkg/api/resource/{quantity,amount,suffix,math}.go. Go stores a small number as an
int64 with a decimal scale, and every other number as a big decimal. CEL shows users how Go stores a number: `isInteger`
is false for `1000m` and for every big decimal.

Claimgate differs from Go in two points, for values that do not occur in practice. value() and milli_value() are right
for numbers for which Go overflows or rounds a negative big decimal wrongly. Texts over 1024 characters and exponents
over 1024 are refused, because Go calculates with such numbers for minutes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import total_ordering
from typing import Final, Literal, TypeAlias

from webhook.apimachinery.attributes import JSON
from webhook.text.caches import cache_for_short_texts

Format: TypeAlias = Literal["DecimalSI", "BinarySI", "DecimalExponent"]

MAX_INT64: Final = 2**63 - 1
_MIN_INT64: Final = -(2**63)
_FAST_DIGITS: Final = 18  # maxInt64Factors of Go: any number of 18 digits fits an int64
_NANO: Final = -9  # the finest scale; a number with more decimal places is rounded away from zero
_LIMIT: Final = 1024  # the limit of claimgate for characters and for the exponent

_COUNT: Final = re.compile(r"[0-9]{1,18}", re.ASCII)
_FORM = re.compile(r"([+-]?)0*+([0-9]*+)(?:\.([0-9]*+))?([eEinumkKMGTP]*+(?:[+-]?[0-9]*+))", re.ASCII)
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX: Final = {exponent: suffix for suffix, exponent in _BINARY.items()}

_WRITTEN: Final = re.compile(r"([0-9]++(?:\.[0-9]++)?) *+([A-Za-z]*+)", re.ASCII)
_OF_BYTES: Final = ("memory", "storage", "hugepages", "sizelimit")
"""Words in the names of fields and resources whose amounts are bytes, in lower case."""
_UNITS: Final = {
    f"{unit}{end}".lower(): unit for unit in (*"kMGTP", "Ki", "Mi", "Gi", "Ti", "Pi") for end in ("", "b", "bytes")
}
"""The unit of Kubernetes for each spelling in lower case, such as `gb` or `gibytes`."""

_WRONG_FORMAT: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_WRONG_NUMBER: Final = "unable to parse numeric part of quantity"
_WRONG_SUFFIX: Final = "unable to parse quantity's suffix"


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """The number `unscaled` times ten to the power of `scale`. Quantities with the same number are equal: `1000m`, `1`.

    Attributes:
        is_big: whether Go stores the number as a big decimal.
        text: the parsed text if Go keeps the text; "" if Go writes the number anew.
    """

    unscaled: int
    scale: int = 0
    format: Format = "DecimalSI"
    is_big: bool = False
    text: str = ""

    def __str__(self) -> str:
        return self.text or _canonical_text(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.compare(other) == 0

    def __lt__(self, other: Quantity) -> bool:
        return self.compare(other) < 0

    def __hash__(self) -> int:
        amount, exponent = _divide_out_factor(self.unscaled, 10)
        return hash((amount, exponent + self.scale if amount else 0))

    def __bool__(self) -> bool:
        return self.unscaled != 0

    def sign(self) -> int:
        """Return -1, 0 or 1."""
        return (self.unscaled > 0) - (self.unscaled < 0)

    def compare(self, other: Quantity) -> int:
        """Return -1 if this quantity is less than the other, 0 if they are equal, 1 if this quantity is greater."""
        scale = min(self.scale, other.scale)
        left, right = self._unscaled_at_scale(scale), other._unscaled_at_scale(scale)
        return (left > right) - (left < right)

    def add(self, other: Quantity) -> Quantity:
        """Return the sum. Its format is that of `self`, or that of `other` if `self` is zero."""
        form = self.format if self.unscaled else other.format
        if not (self.is_big or other.is_big):
            if not other.unscaled:
                return replace(self, format=form, text="")
            if not self.unscaled:
                return replace(other, format=form, text="")
        scale = min(self.scale, other.scale)
        left, right = self._unscaled_at_scale(scale), other._unscaled_at_scale(scale)
        is_big = self.is_big or other.is_big or not all(map(_fits_in_int64, (left, right, left + right)))
        return Quantity(left + right, scale, form, is_big)

    def sub(self, other: Quantity) -> Quantity:
        """Return the difference. Its format is that of `self`, or that of `other` if `self` is zero."""
        return self.add(other.neg())

    def neg(self) -> Quantity:
        """Return the quantity with the opposite sign."""
        return replace(self, unscaled=-self.unscaled, text="")

    def value(self) -> int:
        """Return the quantity as a whole number, rounded away from zero: `1500m` is 2, `-1500m` is -2."""
        return _scale_away_from_zero(self.unscaled, self.scale)

    def milli_value(self) -> int:
        """Return the quantity in thousandths, rounded away from zero."""
        return _scale_away_from_zero(self.unscaled, self.scale + 3)

    def is_whole(self) -> bool:
        """Return whether the number has no fraction: true for `1000m` and `2.0`, false for `1500m`."""
        return self.scale >= 0 or self.unscaled % 10**-self.scale == 0

    def is_integer(self) -> bool:
        """Return the result of CEL's isInteger: whether Go stores an int64 and no negative scale. False for `1000m`."""
        return not self.is_big and self.scale >= 0 and _fits_in_int64(self._unscaled_at_scale(0))

    def as_integer(self) -> int:
        """Return the result of CEL's asInteger.

        Raises:
            ValueError: is_integer() is false.
        """
        if not self.is_integer():
            raise ValueError("cannot convert value to integer")
        return self._unscaled_at_scale(0)

    def as_approximate_float(self) -> float:
        """Return the result of CEL's asApproximateFloat, equal to Go's in every bit."""
        try:
            number = float(self.unscaled)
        except OverflowError:
            number = float("inf") * self.sign()
        return number if self.scale == 0 else number * _power_of_ten(self.scale)

    def _unscaled_at_scale(self, scale: int) -> int:
        # `scale` is at most `self.scale`
        return self.unscaled * _ten_to(self.scale - scale)


def parse_quantity(text: str) -> Quantity:
    """Read a quantity as ParseQuantity does.

    Raises:
        ValueError: the text is not a quantity; the message is the same as in Kubernetes.
    """
    if text == "0":
        return Quantity(0, text="0")
    match = _FORM.fullmatch(text)
    if match is None or not text or len(text) > _LIMIT:
        raise ValueError(_WRONG_FORMAT)
    sign, whole, fraction, suffix = match.groups()
    base, exponent, form = _format_of_suffix(suffix)
    digits = whole or "0"
    quantity = _parse_as_int64((digits, fraction or ""), base, exponent, form, text)
    if quantity is None:
        if not any(character.isdigit() for character in text[: match.start(4)]):
            raise ValueError(_WRONG_NUMBER)
        quantity = _parse_as_big_decimal((digits, fraction or ""), base, exponent, form)
    return replace(quantity, unscaled=-quantity.unscaled) if sign == "-" else quantity


def read_quantity_or_none(value: JSON) -> Quantity | None:
    """Return the quantity of a text or a number; None for other values. Spaces around a text are ignored.

    Results for short texts are cached, because most Pods have the same few texts.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return _parse_or_none(str(value).strip())


def read_whole_number_or_none(value: JSON) -> int | None:
    """Return a quantity without a fraction, such as a number of devices, as an int; None for other values."""
    read = read_quantity_or_none(value)
    if read is None or not read.scale:
        return None if read is None else read.unscaled
    return read.value() if read.is_whole() else None


@cache_for_short_texts(1 << 20)
def _parse_or_none(text: str) -> Quantity | None:
    try:
        return parse_quantity(text)
    except ValueError:
        return None


def nearest_quantity(text: str) -> str:
    """Return the quantity that a text probably means: `16G` for `16gb`, `100m` for `100 m`; "" if unclear.

    Go accepts neither blanks nor other spellings of units. A valid quantity is returned unchanged, even if the quantity
    is probably a mistake, such as `4m` of memory.
    """
    parts = _WRITTEN.fullmatch(text.strip()) if len(text) <= _LIMIT else None
    if parts is None:
        return ""
    unit = parts[2] if parts[2] in _DECIMAL or parts[2] in _BINARY else _UNITS.get(parts[2].lower(), "")
    is_known = parts[2] == "" or unit != ""
    return f"{parts[1]}{unit}" if is_known else ""


def example_quantities(at: Iterable[object]) -> str:
    """Return examples of quantities for the field at a path: numbers of bytes for memory and storage."""
    text = " ".join(map(str, at)).lower()
    return "500Mi or 4Gi" if any(word in text for word in _OF_BYTES) else "1, 500m or 4Gi"


def read_count(value: object) -> int | None:
    """Return the integer of a text or a number with at most 18 ASCII digits; None for other values.

    A test with `str.isdigit` would also accept `²`, and thousands of digits.
    """
    text = str(value)
    return int(text) if _COUNT.fullmatch(text) else None


def from_int(value: int) -> Quantity:
    """Return the quantity of an int, in the format that CEL's add and sub use for an int."""
    return Quantity(value, 0, "DecimalExponent")


def _format_of_suffix(suffix: str) -> tuple[int, int, Format]:
    if suffix in _DECIMAL:
        return 10, _DECIMAL[suffix], "DecimalSI"
    if suffix in _BINARY:
        return 2, _BINARY[suffix], "BinarySI"
    try:
        exponent = int(suffix[1:]) if suffix[0] in "eE" else None
    except ValueError:
        exponent = None
    if exponent is None or exponent > _LIMIT:
        raise ValueError(_WRONG_SUFFIX)
    return 10, exponent, "DecimalExponent"


def _parse_as_int64(number: tuple[str, str], base: int, exponent: int, form: Format, text: str) -> Quantity | None:
    # return the quantity that Go stores as an int64; None if Go stores a big decimal
    whole, fraction = number
    digits = whole + fraction
    if base == 10:
        scale, factor, digits_left = exponent - len(fraction), 1, _FAST_DIGITS - len(digits)
    else:
        # one binary digit counts as 0.3 decimal digits
        scale, factor, digits_left = 0, 1 << exponent, -1 if fraction else 15 - len(whole) - exponent * 3 // 10 - 1
    if digits_left < 0 or scale < _NANO:
        return None
    if base == 2:
        is_canonical = int(digits) & 0x07 != 0
    else:
        is_canonical = scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
    return Quantity(int(digits) * factor, scale, form, text=text if is_canonical else "")


def _parse_as_big_decimal(text: tuple[str, str], base: int, exponent: int, form: Format) -> Quantity:
    # as Go does: the number is rounded away from zero to nano, and is at most 2^63-1 with a binary suffix
    number, scale = int("".join(text)), -len(text[1])
    if base == 10:
        scale += exponent
    else:
        number <<= exponent
    if number:
        number, scale = _scale_away_from_zero(number, scale - _NANO), _NANO
    one = _ten_to(-_NANO)
    if form == "BinarySI" and number > MAX_INT64 * one:
        number = MAX_INT64 * one
    if form == "BinarySI" and 0 < number < one:
        form = "DecimalSI"
    return Quantity(number, scale, form, is_big=True)


def _canonical_text(quantity: Quantity) -> str:
    # as CanonicalizeBytes does: with the largest suffix that leaves no fraction
    if not quantity.unscaled:
        return "0"
    if quantity.format == "BinarySI" and quantity.is_whole() and abs(quantity.value()) >= 1024:
        amount, times = _divide_out_factor(quantity.value(), 1024)
        return f"{amount}{_BINARY_SUFFIX.get(times * 10, '')}"
    amount, times = _divide_out_factor(quantity.unscaled, 10)
    exponent = quantity.scale + times
    amount, exponent = amount * 10 ** (exponent % 3), exponent - exponent % 3
    if quantity.format == "DecimalExponent":
        return f"{amount}e{exponent}" if exponent else str(amount)
    return f"{amount}{_DECIMAL_SUFFIX.get(exponent, '')}"


def _divide_out_factor(number: int, factor: int) -> tuple[int, int]:
    # divide the number as often as the factor divides it; zero is returned unchanged
    times = 0
    while number and number % factor == 0:
        number //= factor
        times += 1
    return number, times


def _scale_away_from_zero(number: int, exponent: int) -> int:
    if exponent >= 0:
        return number * _ten_to(exponent)
    if -exponent > 2 * _LIMIT:  # smaller than any digit of a quantity
        return (number > 0) - (number < 0)
    divisor = _ten_to(-exponent)
    return -(-number // divisor) if number > 0 else number // divisor


def _ten_to(exponent: int) -> int:
    return int(10**exponent)


def _fits_in_int64(number: int) -> bool:
    return _MIN_INT64 <= number <= MAX_INT64


def _power_of_ten(exponent: int) -> float:
    # Go's math.Pow10: the product or quotient of two table entries, not always the nearest double
    if exponent > 308:
        return float("inf")
    if exponent < -323:
        return 0.0
    coarse, fine = divmod(abs(exponent), 32)
    if exponent < 0:
        return float(f"1e-{coarse * 32}") / float(f"1e{fine}")
    return float(f"1e{coarse * 32}") * float(f"1e{fine}")
