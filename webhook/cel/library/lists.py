"""Lists: kubernetes.lists, in all versions, and `includes` since 1.37. extended_lists.py has more functions.

Sources: k8s.io/apiserver v0.36.1 pkg/cel/library/lists.go; cel-go v0.26 common/types/list.go (concatList.Value,
NewStringList) for Go's types. Comparable: int, uint, double, bool, duration, timestamp, string and bytes. The first
element of a list of dyn decides which overload runs.

list(T).isSorted() -> bool                          T comparable

    [1, 2, 2, 3].isSorted() // true
    ['b', 'a'].isSorted() // false
    [].isSorted() // true
    dyn([null]).isSorted() // error: no such overload

list(T).sum() -> T                                  T int, uint, double or duration

    [1, 3].sum() // 4
    [1.5, 2.5].sum() // 4.0
    [].sum() // 0
    [duration('1m'), duration('1s')].sum() // duration('61s')
    [9223372036854775807, 1].sum() // error: integer overflow

list(T).min() -> T                                  T comparable

    [3, 1, 2].min() // 1
    ['b', 'a'].min() // 'a'
    dyn([]).min() // error: min called on empty list

list(T).max() -> T                                  T comparable

    [3, 1, 2].max() // 3
    [true, false].max() // true
    dyn([]).max() // error: max called on empty list

list(T).indexOf(T) -> int
    The place of the first equal element, -1 if there is none.

    ['a', 'b', 'b'].indexOf('b') // 1
    [1].indexOf(2) // -1
    dyn({}).indexOf(1) // error: no such overload

list(T).lastIndexOf(T) -> int
    The place of the last equal element, -1 if there is none.

    ['a', 'b', 'b'].lastIndexOf('b') // 2
    [].lastIndexOf('b') // -1
    dyn({}).lastIndexOf(1) // error: no such overload

dyn.includes(dyn) -> bool                           since 1.37
    Whether the list has an equal element. If the target is not a list, whether the target equals the argument.

    [1, 2, 3].includes(2) // true
    [1, 2, 3].includes(4) // false
    'model-a'.includes('model-a') // true
    (1 / 0).includes(1) // error: division by zero

Code that converts values to Go types needs the Go types of lists. A literal, a macro and nearly every function make a
[]ref.Val; `+` makes a []any; split, findAll and validate make a []string. Inside `record_origins`, each
[]any and []string is recorded by its `id`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, TypeAlias

from webhook.cel.equality import are_equal, are_equal_without_error, compare
from webhook.cel.library import costs
from webhook.cel.library.declaration import Overload
from webhook.cel.types import BOOL, BYTES, DOUBLE, DURATION, DYN, INT, STRING, TIMESTAMP, UINT, A, Type, list_of
from webhook.cel.values import INT_MAX, INT_MIN, UINT_MAX, Duration, Timestamp, UInt
from webhook.deadline import Deadline
from webhook.errors import EvaluationError, NoSuchOverload

COMPARABLE: dict[str, Type] = {
    "int": INT,
    "uint": UINT,
    "double": DOUBLE,
    "bool": BOOL,
    "duration": DURATION,
    "timestamp": TIMESTAMP,
    "string": STRING,
    "bytes": BYTES,
}
COMPARABLE_CLASSES = frozenset((int, UInt, float, bool, Duration, Timestamp, str, bytes))
_ZEROS: dict[type, Any] = {int: 0, UInt: UInt(0), float: 0.0, Duration: Duration(0)}


# ---- kubernetes.lists


def is_sorted(deadline: Deadline, values: list[Any]) -> bool:
    """Return whether no element exceeds the next; as upstream, elements without an order are skipped."""
    _require_comparable_first(values)
    previous: Any = None
    for place, value in enumerate(deadline.charge_for_items(values)):
        _require_comparable(value)
        if place and _order_or_none(previous, value) == 1:
            return False
        previous = value
    return True


def sum_function(zero: Any) -> Callable[[Deadline, list[Any]], Any]:
    """Return a function that sums a list of values of one class; an empty list gives `zero`."""

    def sum_values(deadline: Deadline, values: list[Any]) -> Any:
        if not values:
            return zero
        kind = type(values[0])
        if kind not in _ZEROS:
            raise NoSuchOverload
        for value in deadline.charge_for_items(values):
            if type(value) is not kind:
                raise NoSuchOverload
        return _SUMS[kind](deadline.charge_for_items(values))

    return sum_values


def _sum_ints(values: Iterable[int]) -> int:
    total = 0
    for value in values:
        total += value
        if not INT_MIN <= total <= INT_MAX:
            raise EvaluationError("integer overflow")
    return total


def _sum_uints(values: Iterable[UInt]) -> UInt:
    total = sum(values)
    if total > UINT_MAX:
        raise EvaluationError("unsigned integer overflow")
    return UInt(total)


def _sum_doubles(values: Iterable[float]) -> float:
    total = 0.0
    for value in values:  # sum() corrects rounding in newer Pythons, unlike Go
        total += value
    return total


def _sum_durations(values: Iterable[Duration]) -> Duration:
    return Duration(_sum_ints(value.nanoseconds for value in values))


_SUMS: dict[type, Callable[[Iterable[Any]], Any]] = {
    int: _sum_ints,
    UInt: _sum_uints,
    float: _sum_doubles,
    Duration: _sum_durations,
}


def create_min_or_max_function(name: str, worse: int) -> Callable[[Deadline, list[Any]], Any]:
    """Return min or max: an element replaces the result if compare(result, element) is `worse`."""

    def extreme_of_list(deadline: Deadline, values: list[Any]) -> Any:
        if not values:
            raise EvaluationError(f"{name} called on empty list")
        _require_comparable_first(values)
        chosen = values[0]
        for value in deadline.charge_for_items(values):
            _require_comparable(value)
            if _order_or_none(chosen, value) == worse:
                chosen = value
        return chosen

    return extreme_of_list


def _require_comparable(value: Any) -> None:
    if type(value) not in COMPARABLE_CLASSES:
        raise NoSuchOverload


def _require_comparable_first(values: list[Any]) -> None:
    if values:
        _require_comparable(values[0])


def _order_or_none(left: Any, right: Any) -> int | None:
    try:
        return compare(left, right)
    except EvaluationError:
        return None


def index_of(deadline: Deadline, values: list[Any], item: Any) -> int:
    return next(_indexes_of_equal(deadline, values, item, range(len(values))), -1)


def last_index_of(deadline: Deadline, values: list[Any], item: Any) -> int:
    return next(_indexes_of_equal(deadline, values, item, range(len(values) - 1, -1, -1)), -1)


def _indexes_of_equal(deadline: Deadline, values: list[Any], item: Any, order: range) -> Iterator[int]:
    return (
        place for place in deadline.charge_for_items(order) if are_equal_without_error(values[place], item, deadline)
    )


def includes(deadline: Deadline, target: Any, item: Any) -> bool:
    """Return whether a list has an equal element. If the target is not a list, return whether the target is equal."""
    if type(target) is list:
        return index_of(deadline, target, item) >= 0
    return are_equal(target, item, deadline)


# ---- declarations


def _overloads_of_comparable(
    name: str, id_: str, implementation: Callable[..., Any], result: Type | None = None
) -> list[Overload]:
    # one overload for each comparable element type; if `result` is None, the result has the element type
    return [
        Overload(
            name,
            id_.format(kind),
            (list_of(element),),
            result or element,
            implementation,
            member=True,
            cost=costs.traverse_target_cost,
            metered=True,
        )
        for kind, element in COMPARABLE.items()
    ]


def _sum_overloads() -> list[Overload]:
    zeros = {"int": (INT, 0), "uint": (UINT, UInt(0)), "double": (DOUBLE, 0.0), "duration": (DURATION, Duration(0))}
    return [
        Overload(
            "sum",
            f"list_{kind}_sum_{kind}",
            (list_of(element),),
            element,
            sum_function(zero),
            member=True,
            cost=costs.traverse_target_cost,
            metered=True,
        )
        for kind, (element, zero) in zeros.items()
    ]


def _search_overload(name: str, implementation: Callable[..., int], id_: str) -> Overload:
    return Overload(
        name, id_, (list_of(A), A), INT, implementation, member=True, cost=costs.traverse_target_cost, metered=True
    )


FUNCTIONS = (
    *_overloads_of_comparable("isSorted", "list_{}_is_sorted_bool", is_sorted, BOOL),
    *_sum_overloads(),
    *_overloads_of_comparable("max", "list_{0}_max_{0}", create_min_or_max_function("max", -1)),
    *_overloads_of_comparable("min", "list_{0}_min_{0}", create_min_or_max_function("min", 1)),
    _search_overload("indexOf", index_of, "list_a_index_of_int"),
    _search_overload("lastIndexOf", last_index_of, "list_a_last_index_of_int"),
    Overload(
        "includes",
        "list_includes_dyn_dyn",
        (DYN, DYN),
        BOOL,
        includes,
        member=True,
        since=(1, 37),
        cost=costs.traverse_target_cost,
        metered=True,
    ),
)

Origin: TypeAlias = Literal["joined", "texts"]
Origins: TypeAlias = dict[int, tuple[Origin, list[Any]]]
"""Origins by the `id` of a list; the list is kept, so that its id is not reused."""

_origins: ContextVar[Origins | None] = ContextVar("_origins", default=None)


@contextmanager
def record_origins() -> Iterator[Origins]:
    """Yield the origins of the lists that functions create inside the `with`."""
    origins: Origins = {}
    token = _origins.set(origins)
    try:
        yield origins
    finally:
        _origins.reset(token)


def record_concatenation(values: list[Any]) -> list[Any]:
    """Record that a list is the result of `+`, and return it."""
    return _record_origin("joined", values)


def record_string_list(values: list[str]) -> list[str]:
    """Record that a list is Go's []string, and return it."""
    return _record_origin("texts", values)


def _record_origin(origin: Origin, values: list[Any]) -> list[Any]:
    origins = _origins.get()
    if origins is not None:
        origins[id(values)] = origin, values
    return values
