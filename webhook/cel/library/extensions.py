"""Functions of cel-go that no version of Kubernetes has, for cel-spec's conformance tests.

Sources: cel-go v0.26.0 ext/math.go, ext/encoders.go, ext/strings.go version 3, ext/formatting_v2.go (ext.Strings 4).

math

    math.greatest(number, …) -> number, math.least(number, …) -> number
        The arguments are numbers of any kinds, or one list of numbers. The parser makes a list of three or more
        numbers.
    math.ceil(double) -> double, math.floor, math.round (half away from zero), math.trunc
    math.isInf(double) -> bool, math.isNaN, math.isFinite
    math.abs(number) -> number, math.sign(number) -> number, math.sqrt(number) -> double
    math.bitAnd(int, int) -> int, math.bitOr, math.bitXor, math.bitNot(int), all for uint too
    math.bitShiftLeft(int, int) -> int, math.bitShiftRight (fills with zeros), for uint too

encoders

    base64.encode(bytes) -> string
    base64.decode(string) -> bytes, padded or not
    string.reverse() -> string

format

    string.format(list(dyn)) -> string
        As in newer versions of cel-go, nothing is quoted, and thousands are not separated. Every clause for numbers
        accepts every kind of number. Kubernetes keeps the older function.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable, Mapping
from typing import Any

from webhook.cel.equality import compare
from webhook.cel.library.declaration import Overload
from webhook.cel.library.format_string import (
    DEFAULT_PRECISION,
    REFUSALS,
    FormatClause,
    FormatProblem,
    split_into_clauses,
)
from webhook.cel.library.format_string import format_string as kubernetes_format
from webhook.cel.types import BOOL, BYTES, DOUBLE, DYN, INT, LIST_DYN, STRING, UINT, Type, list_of
from webhook.cel.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    Duration,
    Map,
    Timestamp,
    TypeValue,
    UInt,
    map_items,
    plain_double_text,
    type_name,
)
from webhook.deadline import Deadline
from webhook.errors import EvaluationError, NoSuchOverload

# ---- math


_NUMBERS = {"int": INT, "uint": UINT, "double": DOUBLE}
_CLASSES = frozenset((int, UInt, float))


def _create_min_or_max_of_two(direction: int) -> Callable[[Any, Any], Any]:
    def pick_of_two(first: Any, second: Any) -> Any:
        return second if compare(first, second) == direction else first

    return pick_of_two


greatest, least = _create_min_or_max_of_two(-1), _create_min_or_max_of_two(1)


def _create_min_or_max_of_list(name: str, pick: Callable[[Any, Any], Any]) -> Callable[[list[Any]], Any]:
    def pick_of_list(numbers: list[Any]) -> Any:
        if not numbers:
            raise EvaluationError(f"math.@{name}(list) argument must not be empty")
        extreme = numbers[0]
        for number in numbers[1:]:
            extreme = pick(extreme, number)
        if type(extreme) not in _CLASSES:
            raise NoSuchOverload
        return extreme

    return pick_of_list


def round_half_away(value: float) -> float:
    """Return the nearest whole number, halves away from zero."""
    if not math.isfinite(value):
        return value
    whole = math.trunc(value)
    return math.copysign(abs(whole) + (abs(value - whole) >= 0.5), value)


def rounding_function(function: Callable[[float], int]) -> Callable[[float], float]:
    """Return a rounding function that keeps infinities, NaN and the sign of zero."""
    return lambda value: math.copysign(function(value), value) if math.isfinite(value) else value


def absolute_int(value: int) -> int:
    """Return |int|; fail for the smallest int."""
    if value == INT_MIN:
        raise EvaluationError("integer overflow")
    return abs(value)


def sign(value: float) -> float:
    """Return -1, 0 or 1 in the same type."""
    if type(value) is float:
        return value if math.isnan(value) else float((value > 0) - (value < 0))
    result = (value > 0) - (value < 0)
    return UInt(result) if type(value) is UInt else result


def square_root(value: float) -> float:
    """Return the square root; NaN for a negative number."""
    number = float(value)
    return math.sqrt(number) if number >= 0 else math.nan


def shift_left(value: int, bits: int) -> int:
    """Return the lowest 64 bits after a shift to the left."""
    _check_shift_offset("Left", bits)
    result = (int(value) << bits) & UINT_MAX if bits < 64 else 0
    return UInt(result) if type(value) is UInt else _as_signed_int64(result)


def shift_right(value: int, bits: int) -> int:
    """Return the bits after a shift to the right, filled with zeros."""
    _check_shift_offset("Right", bits)
    result = (int(value) & UINT_MAX) >> bits if bits < 64 else 0
    return UInt(result) if type(value) is UInt else _as_signed_int64(result)


def _check_shift_offset(way: str, bits: int) -> None:
    if bits < 0:
        raise EvaluationError(f"math.bitShift{way}() negative offset: {bits}")


def _as_signed_int64(value: int) -> int:
    return value - UINT_MAX - 1 if value > INT_MAX else value


def _min_or_max_overloads(name: str, short: str, pick: Callable[[Any, Any], Any]) -> tuple[Overload, ...]:
    overloads = []
    for kind, number in _NUMBERS.items():
        overloads.append(Overload(name, f"math_@{short}_{kind}", (number,), number, lambda value: value))
        number_list = list_of(number)
        overloads.append(
            Overload(
                name, f"math_@{short}_list_{kind}", (number_list,), number, _create_min_or_max_of_list(short, pick)
            )
        )
        for other, second in _NUMBERS.items():
            result = number if kind == other else DYN
            overloads.append(Overload(name, f"math_@{short}_{kind}_{other}", (number, second), result, pick))
    return tuple(overloads)


def _double_overload(name: str, result: Type, function: Callable[[float], Any]) -> Overload:
    return Overload(f"math.{name}", f"math_{name}_double", (DOUBLE,), result, function)


def _bit_overloads(name: str, function: Callable[[int, int], int]) -> tuple[Overload, ...]:
    unsigned = lambda first, second: UInt(function(first, second))  # noqa: E731
    return (
        Overload(f"math.{name}", f"math_{name}_int_int", (INT, INT), INT, function),
        Overload(f"math.{name}", f"math_{name}_uint_uint", (UINT, UINT), UINT, unsigned),
    )


_MATH = (
    *_min_or_max_overloads("math.greatest", "max", greatest),
    *_min_or_max_overloads("math.least", "min", least),
    _double_overload("ceil", DOUBLE, rounding_function(math.ceil)),
    _double_overload("floor", DOUBLE, rounding_function(math.floor)),
    _double_overload("trunc", DOUBLE, rounding_function(math.trunc)),
    _double_overload("round", DOUBLE, round_half_away),
    _double_overload("isInf", BOOL, math.isinf),
    _double_overload("isNaN", BOOL, math.isnan),
    _double_overload("isFinite", BOOL, math.isfinite),
    _double_overload("abs", DOUBLE, abs),
    Overload("math.abs", "math_abs_int", (INT,), INT, absolute_int),
    Overload("math.abs", "math_abs_uint", (UINT,), UINT, lambda value: value),
    *(Overload("math.sign", f"math_sign_{kind}", (number,), number, sign) for kind, number in _NUMBERS.items()),
    *(Overload("math.sqrt", f"math_sqrt_{kind}", (number,), DOUBLE, square_root) for kind, number in _NUMBERS.items()),
    *_bit_overloads("bitAnd", int.__and__),
    *_bit_overloads("bitOr", int.__or__),
    *_bit_overloads("bitXor", int.__xor__),
    Overload("math.bitNot", "math_bitNot_int_int", (INT,), INT, int.__invert__),
    Overload("math.bitNot", "math_bitNot_uint_uint", (UINT,), UINT, lambda value: UInt(int(value) ^ UINT_MAX)),
    Overload("math.bitShiftLeft", "math_bitShiftLeft_int_int", (INT, INT), INT, shift_left),
    Overload("math.bitShiftLeft", "math_bitShiftLeft_uint_int", (UINT, INT), UINT, shift_left),
    Overload("math.bitShiftRight", "math_bitShiftRight_int_int", (INT, INT), INT, shift_right),
    Overload("math.bitShiftRight", "math_bitShiftRight_uint_int", (UINT, INT), UINT, shift_right),
)


# ---- encoders


def decode_base64(text: str) -> bytes:
    """Return the bytes of standard base64, padded or not."""
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise EvaluationError("illegal base64 data") from None


_ENCODERS = (
    Overload("base64.decode", "base64_decode_string", (STRING,), BYTES, decode_base64),
    Overload("base64.encode", "base64_encode_bytes", (BYTES,), STRING, lambda value: base64.b64encode(value).decode()),
    Overload("reverse", "string_reverse", (STRING,), STRING, lambda text: text[::-1], member=True),
)


# ---- format


def format_plainly(text: str, arguments: list[Any]) -> str:
    """Return the text with its clauses replaced by the arguments."""
    values, pieces = iter(arguments), []
    try:
        for part in split_into_clauses(text, len(arguments)):
            pieces.append(part if isinstance(part, str) else _format_clause(next(values), part))  # noqa: PERF401
    except FormatProblem as problem:
        raise EvaluationError(str(problem)) from None
    return "".join(pieces)


def _format_clause(value: Any, clause: FormatClause) -> str:
    letter = clause.letter
    if letter == "s":
        return plain_text(value)
    if letter not in "def":
        return kubernetes_format(Deadline(), f"%{letter.upper() if clause.upper else letter}", [value])
    if type(value) not in _CLASSES:
        raise EvaluationError(f"error during formatting: {REFUSALS[letter].format(type_name(value))}")
    if letter == "d" or not math.isfinite(value):
        return plain_text(value)
    precision = DEFAULT_PRECISION if clause.precision is None else clause.precision
    return f"{float(value):.{precision}{letter}}"


def plain_text(value: Any) -> str:
    """Return a value for people, without quotes."""
    writer = _WRITERS.get(type(value))
    if writer is None:
        raise EvaluationError(f"error during formatting: {REFUSALS['s'].format(type_name(value))}")
    return writer(value)


def _plain_double_text(value: float) -> str:
    if math.isfinite(value):
        return plain_double_text(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _plain_map_text(value: dict[Any, Any]) -> str:
    entries = sorted((plain_text(key), plain_text(item)) for key, item in map_items(value))
    return "{" + ", ".join(f"{key}: {item}" for key, item in entries) + "}"


_WRITERS: Mapping[type, Callable[[Any], str]] = {
    bool: lambda value: "true" if value else "false",
    int: str,
    UInt: lambda value: str(int(value)),
    float: _plain_double_text,
    bytes: lambda value: value.decode("utf-8", "replace"),
    str: str,
    Duration: str,
    Timestamp: str,
    type(None): lambda _: "null",
    TypeValue: str,
    list: lambda value: "[" + ", ".join(map(plain_text, value)) + "]",
    dict: _plain_map_text,
    Map: _plain_map_text,
}

_FORMAT = (Overload("format", "string_format", (STRING, LIST_DYN), STRING, format_plainly, member=True),)

FUNCTIONS_OF_EXTENSION: Mapping[str, tuple[Overload, ...]] = {
    "math": _MATH,
    "encoders": _ENCODERS,
    "format": _FORMAT,
}
