"""The arithmetic operators. int and uint are 64 bits wide and never wrap. Source: cel-go v0.26.0 common/types.

1 + 2                                   // 3
9223372036854775807 + 1                 // error: integer overflow
1u - 2u                                 // error: unsigned integer overflow
-7 / 2                                  // -3
-7 % 2                                  // -1
1 / 0                                   // error: division by zero
1 % 0                                   // error: modulus by zero
1.0 / 0.0 > 1.0                         // true
'a' + 'b'                               // 'ab'
[1] + [2]                               // [1, 2]
duration('1m') + duration('1s')         // duration('61s')
timestamp(60) - timestamp(0)            // duration('60s')
timestamp(0) - duration('1s')           // timestamp(-1)
-(1 - 2)                                // 1
dyn(1) + dyn(1.0)                       // error: no such overload
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from webhook.cel.library import costs, lists
from webhook.cel.library.declaration import Cost, Overload
from webhook.cel.types import BYTES, DOUBLE, DURATION, INT, STRING, TIMESTAMP, UINT, A, Type, list_of
from webhook.cel.values import INT_MAX, INT_MIN, NANOSECONDS, UINT_MAX, Duration, Timestamp, UInt
from webhook.deadline import CHARACTERS, Deadline
from webhook.errors import EvaluationError


def to_int64(value: int) -> int:
    """Return the number; fail outside int64."""
    if INT_MIN <= value <= INT_MAX:
        return value
    raise EvaluationError("integer overflow")


def to_uint64(value: int) -> UInt:
    """Return the number as a uint; fail outside uint64."""
    if 0 <= value <= UINT_MAX:
        return UInt(value)
    raise EvaluationError("unsigned integer overflow")


def add_int(left: int, right: int) -> int:
    return to_int64(left + right)


def add_uint(left: int, right: int) -> UInt:
    return to_uint64(int(left) + int(right))


def add_doubles(left: Any, right: Any) -> Any:
    return left + right


def add_strings_or_bytes(deadline: Deadline, left: Any, right: Any) -> Any:
    """Return string + string or bytes + bytes; refuse a result that is too long for any cost budget."""
    deadline.spend((len(left) + len(right)) // CHARACTERS)
    costs.refuse_above_bound(len(left) + len(right), costs.MAX_CHARACTERS)
    return left + right


def add_list(deadline: Deadline, left: list[Any], right: list[Any]) -> list[Any]:
    """Return list + list. In cel-go the cost is always 1, so the size is bounded here."""
    if not left or not right:
        return left or right
    deadline.spend((len(left) + len(right)) // 8)  # C copies the elements
    costs.refuse_above_bound(len(left) + len(right), costs.MAX_ELEMENTS)
    return lists.record_concatenation(left + right)


def add_duration(left: Duration, right: Duration) -> Duration:
    return Duration(left.nanoseconds + right.nanoseconds)


def add_timestamp_duration(left: Timestamp, right: Duration) -> Timestamp:
    """Return timestamp + duration in the timestamp's zone."""
    return Timestamp(left.nanoseconds + right.nanoseconds, left.offset)


def add_duration_timestamp(left: Duration, right: Timestamp) -> Timestamp:
    return add_timestamp_duration(right, left)


def subtract_int(left: int, right: int) -> int:
    return to_int64(left - right)


def subtract_uint(left: int, right: int) -> UInt:
    return to_uint64(int(left) - int(right))


def subtract_double(left: float, right: float) -> float:
    return left - right


def subtract_duration(left: Duration, right: Duration) -> Duration:
    return Duration(left.nanoseconds - right.nanoseconds)


def subtract_timestamp(left: Timestamp, right: Timestamp) -> Duration:
    """Return timestamp - timestamp; fail if Go's conversion of whole seconds to nanoseconds overflows."""
    to_int64((left.nanoseconds // NANOSECONDS - right.nanoseconds // NANOSECONDS) * NANOSECONDS)
    return Duration(left.nanoseconds - right.nanoseconds)


def subtract_timestamp_duration(left: Timestamp, right: Duration) -> Timestamp:
    """Return timestamp - duration in the timestamp's zone."""
    to_int64(-right.nanoseconds)
    return Timestamp(left.nanoseconds - right.nanoseconds, left.offset)


def multiply_int(left: int, right: int) -> int:
    return to_int64(left * right)


def multiply_uint(left: int, right: int) -> UInt:
    return to_uint64(int(left) * int(right))


def multiply_double(left: float, right: float) -> float:
    return left * right


def divide_int(left: int, right: int) -> int:
    """Return int / int, rounded toward zero."""
    if right == 0:
        raise EvaluationError("division by zero")
    quotient = abs(left) // abs(right)
    return to_int64(quotient if (left < 0) == (right < 0) else -quotient)


def divide_uint(left: int, right: int) -> UInt:
    if right == 0:
        raise EvaluationError("division by zero")
    return UInt(int(left) // int(right))


def divide_double(left: float, right: float) -> float:
    """Return double / double by IEEE 754."""
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def modulo_int(left: int, right: int) -> int:
    """Return int % int with the sign of the left operand."""
    if right == 0:
        raise EvaluationError("modulus by zero")
    if left == INT_MIN and right == -1:
        raise EvaluationError("integer overflow")
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def modulo_uint(left: int, right: int) -> UInt:
    if right == 0:
        raise EvaluationError("modulus by zero")
    return UInt(int(left) % int(right))


def negate_int(value: int) -> int:
    return to_int64(-value)


def negate_double(value: float) -> float:
    return -value


def negate_duration(value: Duration) -> Duration:
    return Duration(-value.nanoseconds)


def add_text_cost(_: Any, left: Any, right: Any) -> int:
    """Return the cost of copying both texts (cel-go runtimecost.go, AddString)."""
    return math.ceil((costs.counted_size(left) + costs.counted_size(right)) * costs.STRING)


def _binary_overload(
    sign: str, name: str, types: tuple[Type, Type], result: Type, implementation: Callable[..., Any]
) -> Overload:
    resolved: Cost | None = add_text_cost if name in ("add_string", "add_bytes") else None
    metered = implementation in (add_strings_or_bytes, add_list)
    return Overload(f"_{sign}_", name, types, result, implementation, resolved_cost=resolved, metered=metered)


FUNCTIONS = (
    _binary_overload("+", "add_bytes", (BYTES, BYTES), BYTES, add_strings_or_bytes),
    _binary_overload("+", "add_double", (DOUBLE, DOUBLE), DOUBLE, add_doubles),
    _binary_overload("+", "add_duration_duration", (DURATION, DURATION), DURATION, add_duration),
    _binary_overload("+", "add_duration_timestamp", (DURATION, TIMESTAMP), TIMESTAMP, add_duration_timestamp),
    _binary_overload("+", "add_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP, add_timestamp_duration),
    _binary_overload("+", "add_int64", (INT, INT), INT, add_int),
    _binary_overload("+", "add_list", (list_of(A), list_of(A)), list_of(A), add_list),
    _binary_overload("+", "add_string", (STRING, STRING), STRING, add_strings_or_bytes),
    _binary_overload("+", "add_uint64", (UINT, UINT), UINT, add_uint),
    _binary_overload("-", "subtract_double", (DOUBLE, DOUBLE), DOUBLE, subtract_double),
    _binary_overload("-", "subtract_duration_duration", (DURATION, DURATION), DURATION, subtract_duration),
    _binary_overload("-", "subtract_int64", (INT, INT), INT, subtract_int),
    _binary_overload("-", "subtract_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP, subtract_timestamp_duration),
    _binary_overload("-", "subtract_timestamp_timestamp", (TIMESTAMP, TIMESTAMP), DURATION, subtract_timestamp),
    _binary_overload("-", "subtract_uint64", (UINT, UINT), UINT, subtract_uint),
    _binary_overload("*", "multiply_double", (DOUBLE, DOUBLE), DOUBLE, multiply_double),
    _binary_overload("*", "multiply_int64", (INT, INT), INT, multiply_int),
    _binary_overload("*", "multiply_uint64", (UINT, UINT), UINT, multiply_uint),
    _binary_overload("/", "divide_double", (DOUBLE, DOUBLE), DOUBLE, divide_double),
    _binary_overload("/", "divide_int64", (INT, INT), INT, divide_int),
    _binary_overload("/", "divide_uint64", (UINT, UINT), UINT, divide_uint),
    _binary_overload("%", "modulo_int64", (INT, INT), INT, modulo_int),
    _binary_overload("%", "modulo_uint64", (UINT, UINT), UINT, modulo_uint),
    Overload("-_", "negate_double", (DOUBLE,), DOUBLE, negate_double),
    Overload("-_", "negate_int64", (INT,), INT, negate_int),
    Overload("-_", "negate_duration", (DURATION,), DURATION, negate_duration, hidden=True),
)
