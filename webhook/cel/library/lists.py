"""Lists: kubernetes.lists (always; includes since 1.37) and ext.Lists v3 (since 1.34).

Sources: k8s.io/apiserver v0.36.1 pkg/cel/library/lists.go, cel-go v0.26.0 ext/lists.go. Comparable are int, uint,
double, bool, duration, timestamp, string and bytes; on a list of dyn the first element says which overload runs.

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
    The list has an equal element, or the value is equal.

    [1, 2, 3].includes(2) // true
    [1, 2, 3].includes(4) // false
    'model-a'.includes('model-a') // true
    (1 / 0).includes(1) // error: division by zero

list(T).slice(int, int) -> list(T)
    From the first index up to, not including, the second.

    [1, 2, 3, 4].slice(1, 3) // [2, 3]
    [1].slice(0, 0) // []
    [1, 2].slice(1, 3) // error: cannot slice(1, 3), list is length 2

list(list(T)).flatten() -> list(T)
    One level of nesting less.

    [[1], [2, 3]].flatten() // [1, 2, 3]
    [[[1]], [[2]]].flatten() // [[1], [2]]
    dyn({}).flatten() // error: no such overload

list(dyn).flatten(int) -> list(dyn)
    So many levels of nesting less.

    [[[1]], [[2, 3]]].flatten(2) // [1, 2, 3]
    [[1]].flatten(0) // [[1]]
    [[1]].flatten(-1) // error: level must be non-negative

list(T).sort() -> list(T)                           T comparable

    [3, 1, 2].sort() // [1, 2, 3]
    ['b', 'a', 'B'].sort() // ['B', 'a', 'b']
    dyn([dyn(1), dyn('a')]).sort() // error: list elements must have the same type

list(T).sortBy(name, expression) -> list(T)         a macro
    Sorted by the value of the expression for each element, which it sees under the name.

    [{'n': 2}, {'n': 1}].sortBy(e, e.n) // [{'n': 1}, {'n': 2}]
    [1, 2, 3].sortBy(i, -i) // [3, 2, 1]
    [1, 2].sortBy(i, dyn([i])) // error: list elements must be comparable

list(T).distinct() -> list(T)
    The first of each group of equal elements.

    [1, 2, 1, 3].distinct() // [1, 2, 3]
    [dyn(1), dyn(1.0), dyn(1u)].distinct() // [1]
    dyn('aa').distinct() // error: no such overload

list(T).reverse() -> list(T)

    [1, 2, 3].reverse() // [3, 2, 1]
    [].reverse() // []
    dyn('abc').reverse() // error: no such overload

lists.range(int) -> list(int)
    0 up to, not including, the number. Over a million elements no budget would pay for: that is refused at once.

    lists.range(3) // [0, 1, 2]
    lists.range(-1) // []
    lists.range(10000000) // error: operation cancelled: actual cost limit exceeded
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isnan
from typing import Any

from webhook.cel.library import costs
from webhook.cel.library.declaration import Overload
from webhook.cel.library.membership import Members
from webhook.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    LIST_DYN,
    STRING,
    TIMESTAMP,
    UINT,
    A,
    Type,
    list_of,
)
from webhook.cel.values import INT_MAX, INT_MIN, UINT_MAX, Duration, Timestamp, UInt, compare, equal
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
_COMPARABLE_CLASSES = frozenset((int, UInt, float, bool, Duration, Timestamp, str, bytes))
_ZEROS: dict[type, Any] = {int: 0, UInt: UInt(0), float: 0.0, Duration: Duration(0)}


# ---- kubernetes.lists


def is_sorted(values: list[Any]) -> bool:
    """No element is greater than the next one; elements without an order are passed over, as upstream does."""
    _first_is_comparable(values)
    previous: Any = None
    for place, value in enumerate(values):
        _comparable(value)
        if place and _order(previous, value) == 1:
            return False
        previous = value
    return True


def sum_from(zero: Any) -> Callable[[list[Any]], Any]:
    """The sum of a list of one class of numbers; an empty list's sum is the zero of the overload that was chosen."""

    def total(values: list[Any]) -> Any:
        if not values:
            return zero
        kind = type(values[0])
        if kind not in _ZEROS:
            raise NoSuchOverload
        for value in values:
            if type(value) is not kind:
                raise NoSuchOverload
        return _SUMS[kind](values)

    return total


def _sum_ints(values: list[int]) -> int:
    total = 0
    for value in values:
        total += value
        if not INT_MIN <= total <= INT_MAX:
            raise EvaluationError("integer overflow")
    return total


def _sum_uints(values: list[UInt]) -> UInt:
    total = sum(values)
    if total > UINT_MAX:
        raise EvaluationError("unsigned integer overflow")
    return UInt(total)


def _sum_doubles(values: list[float]) -> float:
    total = 0.0
    for value in values:  # not sum(): newer Pythons correct its rounding, Go does not
        total += value
    return total


def _sum_durations(values: list[Duration]) -> Duration:
    return Duration(_sum_ints([value.nanoseconds for value in values]))


_SUMS: dict[type, Callable[[list[Any]], Any]] = {
    int: _sum_ints,
    UInt: _sum_uints,
    float: _sum_doubles,
    Duration: _sum_durations,
}


def extreme(name: str, worse: int) -> Callable[[list[Any]], Any]:
    """Min or max: a candidate is given up for the next element when it compares to it as `worse`."""

    def choose(values: list[Any]) -> Any:
        if not values:
            raise EvaluationError(f"{name} called on empty list")
        _first_is_comparable(values)
        chosen = values[0]
        for value in values:
            _comparable(value)
            if _order(chosen, value) == worse:
                chosen = value
        return chosen

    return choose


def _comparable(value: Any) -> None:
    if type(value) not in _COMPARABLE_CLASSES:
        raise NoSuchOverload


def _first_is_comparable(values: list[Any]) -> None:
    if values:
        _comparable(values[0])


def _order(left: Any, right: Any) -> int | None:
    """How two values compare; None where they have no order, which upstream takes for neither less nor greater."""
    try:
        return compare(left, right)
    except EvaluationError:
        return None


def index_of(values: list[Any], item: Any) -> int:
    """The first place of an equal element, or -1."""
    return next((place for place, value in enumerate(values) if equal(value, item)), -1)


def last_index_of(values: list[Any], item: Any) -> int:
    """The last place of an equal element, or -1."""
    return next((place for place in range(len(values) - 1, -1, -1) if equal(values[place], item)), -1)


def includes(target: Any, item: Any) -> bool:
    """The list has an equal element, or the target is equal itself."""
    if type(target) is list:
        return index_of(target, item) >= 0
    return equal(target, item)


# ---- ext.Lists


def slice_list(values: list[Any], start: int, end: int) -> list[Any]:
    """The elements from start up to end."""
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if len(values) < end:
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(values)}")
    return values[start:end]


def flatten(values: list[Any], depth: int = 1) -> list[Any]:
    """The elements of nested lists, down to a depth."""
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    flat: list[Any] = []
    seen = 0
    open_lists: list[Iterator[Any]] = [iter(values)]
    while open_lists:
        for value in open_lists[-1]:
            seen += 1
            if type(value) is list and len(open_lists) <= depth:
                open_lists.append(iter(value))
                break
            flat.append(value)
        else:
            open_lists.pop()
        costs.bounded(seen, costs.MAX_ELEMENTS)
    return flat


def sort(values: list[Any]) -> list[Any]:
    """The elements in ascending order."""
    return sort_by_keys(values, values)


def sort_by_keys(values: list[Any], keys: list[Any]) -> list[Any]:
    """The elements in ascending order of their keys, which are in the second list: what sortBy calls."""
    if len(values) != len(keys):
        raise EvaluationError(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, "
            f"but got {len(values)} and {len(keys)} elements respectively"
        )
    if not values:
        return values
    if type(keys[0]) not in _COMPARABLE_CLASSES:
        raise EvaluationError("list elements must be comparable")
    if any(type(key) is not type(keys[0]) for key in keys):
        raise EvaluationError("list elements must have the same type")
    if type(keys[0]) is float and any(map(isnan, keys)):
        order = _insertion_order(keys)
    else:
        order = sorted(range(len(keys)), key=_sort_key(keys))
    return [values[place] for place in order]


def _sort_key(keys: list[Any]) -> Callable[[int], Any]:
    if type(keys[0]) in (Duration, Timestamp):
        return lambda place: keys[place].nanoseconds
    return keys.__getitem__


def _insertion_order(keys: list[float]) -> list[int]:
    """The order that Go makes of up to 12 numbers of which some are NaN, less than none; some order of more."""
    order = sorted(range(len(keys)), key=lambda place: (keys[place] != keys[place], keys[place]))
    if len(keys) > 12:
        return order
    order.sort()
    for end in range(1, len(order)):
        place = end
        while place > 0 and keys[order[place]] < keys[order[place - 1]]:
            order[place], order[place - 1] = order[place - 1], order[place]
            place -= 1
    return order


def distinct(values: list[Any]) -> list[Any]:
    """The first of each group of equal elements."""
    seen = Members(most=costs.MAX_ELEMENTS // 4)  # upstream counts 2n² where n²/2 comparisons are made
    kept = []
    for value in values:
        if value not in seen:
            seen.add(value)
            kept.append(value)
    return kept


def reverse(values: list[Any]) -> list[Any]:
    """The elements, last first."""
    return values[::-1]


def count_up(number: int) -> list[int]:
    """0 up to a number."""
    costs.bounded(number, costs.MAX_ELEMENTS)
    return list(range(number))


# ---- costs: cel-go ext/lists.go track…


def _made(elements: int, times: float = 1) -> int:
    return int(elements * times) + 1 + costs.LIST


def _cost_of_result(result: Any, *_: Any) -> int:
    return _made(costs.size(result))


def _cost_of_flatten(_: Any, values: list[Any], depth: int = 1) -> int:
    return _made(costs.size(values), float(depth)) % 2**64  # a negative depth wraps around as Go's uint64


def _cost_of_comparing(_: Any, *arguments: list[Any]) -> int:
    keys = arguments[-1]
    times = 2.0 + (costs.STRING if keys and type(keys[0]) in (str, bytes) else 0)
    return _made(len(keys) ** 2, times)


# ---- declarations


def _of_comparable(
    name: str, id_: str, implementation: Callable[[list[Any]], Any], result: Type | None = None
) -> list[Overload]:
    """A kubernetes.lists function, once for each comparable element type; the result is the element where not given."""
    return [
        Overload(
            name,
            id_.format(kind),
            (list_of(element),),
            result or element,
            implementation,
            member=True,
            cost=costs.traverse_target,
        )
        for kind, element in COMPARABLE.items()
    ]


def _sums() -> list[Overload]:
    zeros = {"int": (INT, 0), "uint": (UINT, UInt(0)), "double": (DOUBLE, 0.0), "duration": (DURATION, Duration(0))}
    return [
        Overload(
            "sum",
            f"list_{kind}_sum_{kind}",
            (list_of(element),),
            element,
            sum_from(zero),
            member=True,
            cost=costs.traverse_target,
        )
        for kind, (element, zero) in zeros.items()
    ]


def _sorts() -> list[Overload]:
    plain = [
        Overload(
            "sort",
            f"list_{element.name}_sort",
            (list_of(element),),
            list_of(element),
            sort,
            member=True,
            since=(1, 34),
            resolved_cost=_cost_of_comparing,
        )
        for element in COMPARABLE.values()
    ]
    by_keys = [
        Overload(
            "@sortByAssociatedKeys",
            f"list_{element.name}_sortByAssociatedKeys",
            (list_of(A), list_of(element)),
            list_of(A),
            sort_by_keys,
            member=True,
            since=(1, 34),
            resolved_cost=_cost_of_comparing,
        )
        for element in COMPARABLE.values()
    ]
    return plain + by_keys


def _search(name: str, implementation: Callable[..., int], id_: str) -> Overload:
    return Overload(name, id_, (list_of(A), A), INT, implementation, member=True, cost=costs.traverse_target)


_LISTS = list_of(list_of(A))
_LIST = list_of(A)

FUNCTIONS = (
    *_of_comparable("isSorted", "list_{}_is_sorted_bool", is_sorted, BOOL),
    *_sums(),
    *_of_comparable("max", "list_{0}_max_{0}", extreme("max", -1)),
    *_of_comparable("min", "list_{0}_min_{0}", extreme("min", 1)),
    _search("indexOf", index_of, "list_a_index_of_int"),
    _search("lastIndexOf", last_index_of, "list_a_last_index_of_int"),
    Overload(
        "includes",
        "list_includes_dyn_dyn",
        (DYN, DYN),
        BOOL,
        includes,
        member=True,
        since=(1, 37),
        cost=costs.traverse_target,
    ),
    Overload(
        "slice",
        "list_slice",
        (_LIST, INT, INT),
        _LIST,
        slice_list,
        member=True,
        since=(1, 34),
        cost=_cost_of_result,
    ),
    Overload("flatten", "list_flatten", (_LISTS,), _LIST, flatten, member=True, since=(1, 34), cost=_cost_of_flatten),
    Overload(
        "flatten",
        "list_flatten_int",
        (LIST_DYN, INT),
        LIST_DYN,
        flatten,
        member=True,
        since=(1, 34),
        cost=_cost_of_flatten,
    ),
    *_sorts(),
    Overload("lists.range", "lists_range", (INT,), list_of(INT), count_up, since=(1, 34), cost=_cost_of_result),
    Overload("reverse", "list_reverse", (_LIST,), _LIST, reverse, member=True, since=(1, 34), cost=_cost_of_result),
    Overload(
        "distinct",
        "list_distinct",
        (_LIST,),
        _LIST,
        distinct,
        member=True,
        since=(1, 34),
        cost=_cost_of_comparing,
    ),
)
