"""Conversions between the language's types: int() uint() double() bool() string() bytes() timestamp() duration() type()
dyn(). Source: cel-go v0.26.0 common/types ConvertToType, common/stdlib/standard.go.

int('42')                               // 42
int(1.9)                                // 1
int('x')                                // error: type conversion error from 'string' to 'int'
int(timestamp('1970-01-01T00:01:00Z'))  // 60
uint(1)                                 // 1u
uint(-1)                                // error: unsigned integer overflow
double('1.5')                           // 1.5
bool('true')                            // true
bool('yes')                             // error: type conversion error from 'string' to 'bool'
string(1.5)                             // '1.5'
string(true)                            // 'true'
string(duration('90s'))                 // '90s'
bytes('a')                              // b'a'
type(1) == int                          // true
dyn(1) == 1                             // true
int(dyn(null))                          // error: no such overload
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from webhook.cel.library import costs
from webhook.cel.library.arithmetic import to_uint64
from webhook.cel.library.declaration import Overload
from webhook.cel.library.moments import duration, parse_timestamp
from webhook.cel.types import BOOL, BYTES, DOUBLE, DURATION, DYN, INT, STRING, TIMESTAMP, UINT, A, Type, type_of_type
from webhook.cel.values import (
    INT_MAX,
    INT_MIN,
    NANOSECONDS,
    UINT_MAX,
    Duration,
    Timestamp,
    TypeValue,
    UInt,
    plain_double_text,
    type_name,
)
from webhook.errors import EvaluationError

_TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_FALSE = frozenset(("0", "f", "F", "FALSE", "false", "False"))
_DIGITS = re.compile(r"[0-9]{1,40}")
_DECIMAL = re.compile(
    r"[+-]?(?:[0-9]+(?:_[0-9]+)*(?:\.(?:[0-9]+(?:_[0-9]+)*)?)?|\.[0-9]+(?:_[0-9]+)*)(?:[eE][+-]?[0-9]+)?"
)
_HEXADECIMAL = re.compile(r"[+-]?0[xX]_?(?:[0-9a-fA-F_]+(?:\.[0-9a-fA-F_]*)?|\.[0-9a-fA-F_]+)[pP][+-]?[0-9]+")
_INFINITY_OR_NAN = re.compile(r"[+-]?inf(?:inity)?|nan", re.IGNORECASE)


def conversion_error(source: str, target: str) -> EvaluationError:
    """Return cel-go's error for a value that cannot be converted to the target type."""
    return EvaluationError(f"type conversion error from '{source}' to '{target}'")


def identity(value: Any) -> Any:
    return value


def uint_to_int(value: int) -> int:
    if value > INT_MAX:
        raise EvaluationError("integer overflow")
    return int(value)


def double_to_int(value: float) -> int:
    """Return a double as an int, rounded toward zero; both ends of int64 are out of range (doubleToInt64Checked)."""
    if math.isnan(value) or not -(2.0**63) < value < 2.0**63:
        raise EvaluationError("integer overflow")
    return int(value)


def double_to_uint(value: float) -> UInt:
    """Return a double as a uint, rounded toward zero."""
    if math.isnan(value) or not 0 <= value < 2.0**64:
        raise EvaluationError("unsigned integer overflow")
    return UInt(int(value))


def string_to_int(text: str) -> int:
    """Return the int in decimal digits with an optional sign, as Go's ParseInt."""
    if _DIGITS.fullmatch(text[1:] if text[:1] in ("+", "-") and len(text) > 1 else text):
        value = int(text)
        if INT_MIN <= value <= INT_MAX:
            return value
    raise conversion_error("string", "int")


def string_to_uint(text: str) -> UInt:
    """Return the uint in decimal digits, as Go's ParseUint."""
    if _DIGITS.fullmatch(text) and int(text) <= UINT_MAX:
        return UInt(int(text))
    raise conversion_error("string", "uint")


def string_to_double(text: str) -> float:
    """Return the double in a text, as Go's ParseFloat: decimal, hexadecimal, `Inf`, `NaN`; fail out of range."""
    if _DECIMAL.fullmatch(text):
        value = float(text)
    elif _HEXADECIMAL.fullmatch(text) and "__" not in text:
        value = _parse_hexadecimal_double(text)
    elif _INFINITY_OR_NAN.fullmatch(text):
        return float(text)
    else:
        raise conversion_error("string", "double")
    if math.isinf(value):
        raise conversion_error("string", "double")
    return value


def _parse_hexadecimal_double(text: str) -> float:
    try:
        return float.fromhex(text.replace("_", ""))
    except (ValueError, OverflowError) as error:
        raise conversion_error("string", "double") from error


def string_to_bool(text: str) -> bool:
    """Return the bool in a text, as Go's ParseBool."""
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise conversion_error("string", "bool")


def timestamp_to_int(value: Timestamp) -> int:
    """Return the seconds since 1970 of a timestamp."""
    return value.nanoseconds // NANOSECONDS


def duration_to_int(value: Duration) -> int:
    """Return the nanoseconds of a duration."""
    return value.nanoseconds


def int_to_timestamp(seconds: int) -> Timestamp:
    """Return the timestamp of seconds since 1970."""
    return Timestamp(seconds * NANOSECONDS)


def refuse_int_to_duration(_: int) -> Duration:
    """Fail: cel-go declares duration(int), but Int.ConvertToType cannot return a duration."""
    raise conversion_error("int", DURATION.name)


def bool_to_string(value: bool) -> str:
    return "true" if value else "false"


def double_to_string(value: float) -> str:
    """Return a double with the fewest digits, as Go's %g. A number below 1e-4 or from 1e6 on has an exponent."""
    if math.isinf(value) or math.isnan(value):
        return plain_double_text(value)
    if value == 0 or 1e-4 <= abs(value) < 1e6:
        return plain_double_text(value)
    digits = len(repr(value).partition("e")[0].strip("-").replace(".", "").strip("0"))
    mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
    return f"{mantissa}e{exponent}"


def bytes_to_string(value: bytes) -> str:
    """Return UTF-8 bytes as a string."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None


def string_to_bytes(text: str) -> bytes:
    """Return a string as UTF-8; a lone surrogate of JSON becomes U+FFFD as in Go."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def type_of_value(value: Any) -> TypeValue:
    return TypeValue(type_name(value))


def format_key_for_message(value: Any) -> str:
    """Return a key or an index for an error message, in the form of Go's %v."""
    kind = type(value)
    if kind is bool:
        return bool_to_string(value)
    if kind is float:
        return double_to_string(value)
    return "null" if value is None else str(_cut_after_elements(value, [_MOST_SHOWN]))


_MOST_SHOWN: Final = 100
"""The most elements of a value in an error. To format all elements could take 0.1 s in each iteration of a macro."""


def _cut_after_elements(value: Any, left: list[int]) -> Any:
    # `left` counts elements at all depths together
    if isinstance(value, list):
        return [_cut_after_elements(each, left) for each in _elements_within_limit(value, left)]
    if isinstance(value, dict):
        return {key: _cut_after_elements(each, left) for key, each in _elements_within_limit(value.items(), left)}
    return value


def _elements_within_limit(elements: Iterable[Any], left: list[int]) -> Iterator[Any]:
    for each in elements:
        if left[0] <= 0:
            return
        left[0] -= 1
        yield each


def _conversion_overload(
    name: str, overload: str, source: Type, result: Type, implementation: Callable[..., Any], *, walks: bool = False
) -> Overload:
    return Overload(
        name, overload, (source,), result, implementation, resolved_cost=costs.walk_target_cost if walks else None
    )


FUNCTIONS = (
    _conversion_overload("type", "type", A, type_of_type(A), type_of_value),
    _conversion_overload("dyn", "to_dyn", A, DYN, identity),
    _conversion_overload("bool", "bool_to_bool", BOOL, BOOL, identity),
    _conversion_overload("bool", "string_to_bool", STRING, BOOL, string_to_bool),
    _conversion_overload("bytes", "bytes_to_bytes", BYTES, BYTES, identity),
    _conversion_overload("bytes", "string_to_bytes", STRING, BYTES, string_to_bytes, walks=True),
    _conversion_overload("double", "double_to_double", DOUBLE, DOUBLE, identity),
    _conversion_overload("double", "int64_to_double", INT, DOUBLE, float),
    _conversion_overload("double", "string_to_double", STRING, DOUBLE, string_to_double),
    _conversion_overload("double", "uint64_to_double", UINT, DOUBLE, float),
    _conversion_overload("duration", "duration_to_duration", DURATION, DURATION, identity),
    _conversion_overload("duration", "int64_to_duration", INT, DURATION, refuse_int_to_duration),
    Overload("duration", "string_to_duration", (STRING,), DURATION, duration, metered=True),
    _conversion_overload("int", "int64_to_int64", INT, INT, identity),
    _conversion_overload("int", "double_to_int64", DOUBLE, INT, double_to_int),
    _conversion_overload("int", "duration_to_int64", DURATION, INT, duration_to_int),
    _conversion_overload("int", "string_to_int64", STRING, INT, string_to_int),
    _conversion_overload("int", "timestamp_to_int64", TIMESTAMP, INT, timestamp_to_int),
    _conversion_overload("int", "uint64_to_int64", UINT, INT, uint_to_int),
    _conversion_overload("string", "string_to_string", STRING, STRING, identity),
    _conversion_overload("string", "bool_to_string", BOOL, STRING, bool_to_string),
    _conversion_overload("string", "bytes_to_string", BYTES, STRING, bytes_to_string, walks=True),
    _conversion_overload("string", "double_to_string", DOUBLE, STRING, double_to_string),
    _conversion_overload("string", "duration_to_string", DURATION, STRING, str),
    _conversion_overload("string", "int64_to_string", INT, STRING, int.__repr__),
    _conversion_overload("string", "timestamp_to_string", TIMESTAMP, STRING, str),
    _conversion_overload("string", "uint64_to_string", UINT, STRING, int.__repr__),
    _conversion_overload("timestamp", "timestamp_to_timestamp", TIMESTAMP, TIMESTAMP, identity),
    _conversion_overload("timestamp", "int64_to_timestamp", INT, TIMESTAMP, int_to_timestamp),
    _conversion_overload("timestamp", "string_to_timestamp", STRING, TIMESTAMP, parse_timestamp),
    _conversion_overload("uint", "uint64_to_uint64", UINT, UINT, identity),
    _conversion_overload("uint", "double_to_uint64", DOUBLE, UINT, double_to_uint),
    _conversion_overload("uint", "int64_to_uint64", INT, UINT, to_uint64),
    _conversion_overload("uint", "string_to_uint64", STRING, UINT, string_to_uint),
)
