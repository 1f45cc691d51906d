"""More functions of lists: ext.Lists v3, since 1.34.

Source: cel-go v0.26.0 ext/lists.go.

list(T).slice(int, int) -> list(T)
    The elements from the first index up to the second, which is not included.

    [1, 2, 3, 4].slice(1, 3) // [2, 3]
    [1].slice(0, 0) // []
    [1, 2].slice(1, 3) // error: cannot slice(1, 3), list is length 2

list(list(T)).flatten() -> list(T)
    The list with one level of nesting less.

    [[1], [2, 3]].flatten() // [1, 2, 3]
    [[[1]], [[2]]].flatten() // [[1], [2]]
    dyn({}).flatten() // error: no such overload

list(dyn).flatten(int) -> list(dyn)
    The list after flattening this number of times.

    [[[1]], [[2, 3]]].flatten(2) // [1, 2, 3]
    [[1]].flatten(0) // [[1]]
    [[1]].flatten(-1) // error: level must be non-negative

list(T).sort() -> list(T)                           T comparable

    [3, 1, 2].sort() // [1, 2, 3]
    ['b', 'a', 'B'].sort() // ['B', 'a', 'b']
    dyn([dyn(1), dyn('a')]).sort() // error: list elements must have the same type

list(T).sortBy(name, expression) -> list(T)         a macro
    The list, sorted by the value of the expression for each element. In the expression, the name is the element.

    [{'n': 2}, {'n': 1}].sortBy(e, e.n) // [{'n': 1}, {'n': 2}]
    [1, 2, 3].sortBy(i, -i) // [3, 2, 1]
    [1, 2].sortBy(i, dyn([i])) // error: list elements must be comparable

list(T).distinct() -> list(T)
    The first of each group of equal elements.

    [1, 2, 1, 3].distinct() // [1, 2, 3]
    [dyn(1), dyn(1.0), dyn(1u)].distinct() // [1]
    dyn('aa').distinct() // error: internal error

list(T).reverse() -> list(T)

    [1, 2, 3].reverse() // [3, 2, 1]
    [].reverse() // []
    dyn('abc').reverse() // error: no such overload

lists.range(int) -> list(int)
    The numbers from 0 up to the number, which is not included. More than a million elements exceed every budget and are
    refused at once.

    lists.range(3) // [0, 1, 2]
    lists.range(-1) // []
    lists.range(10000000) // error: operation cancelled: actual cost limit exceeded
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from math import isnan
from random import Random
from typing import Any, Final

from webhook.cel.library import costs
from webhook.cel.library.declaration import Overload
from webhook.cel.library.lists import COMPARABLE, COMPARABLE_CLASSES
from webhook.cel.library.membership import ValueSet
from webhook.cel.types import INT, LIST_DYN, A, list_of
from webhook.cel.values import Duration, Timestamp
from webhook.deadline import Deadline
from webhook.errors import EvaluationError

COPIED = 8
"""List elements that C copies in one unit of work."""

# ---- ext.Lists


def slice_list(deadline: Deadline, values: list[Any], start: int, end: int) -> list[Any]:
    """Return the elements from `start` up to, but not including, `end`."""
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if len(values) < end:
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(values)}")
    deadline.spend((end - start) // COPIED)
    return values[start:end]


def flatten(deadline: Deadline, values: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    flat: list[Any] = []
    visited: Counter[int] = Counter()
    stack = [iter(deadline.charge_for_items(values))]
    while stack:
        for value in stack[-1]:
            if type(value) is list and len(stack) <= depth:
                visited[len(stack)] += len(value)
                costs.refuse_above_bound(max(visited[len(stack)], len(flat) + len(value)), costs.MAX_ELEMENTS)
                stack.append(iter(deadline.charge_for_items(value)))
                break
            flat.append(value)
        else:
            stack.pop()
    return flat


def sort(deadline: Deadline, values: list[Any]) -> list[Any]:
    return sort_by_keys(deadline, values, values)


def sort_by_keys(deadline: Deadline, values: list[Any], keys: list[Any]) -> list[Any]:
    """Return the elements in ascending order of their keys; for sortBy."""
    if len(values) != len(keys):
        raise EvaluationError(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, "
            f"but got {len(values)} and {len(keys)} elements respectively"
        )
    if not values:
        return values
    if type(keys[0]) not in COMPARABLE_CLASSES:
        raise EvaluationError("list elements must be comparable")
    kind = type(keys[0])
    if any(type(key) is not kind for key in deadline.charge_for_items(keys)):
        raise EvaluationError("list elements must have the same type")
    if kind is Duration or kind is Timestamp:
        order = indexes_in_ascending_order(deadline, [key.nanoseconds for key in deadline.charge_for_items(keys)])
    elif kind is float and any(map(isnan, deadline.charge_for_items(keys))):
        order = _go_sort_order_with_nan(deadline, keys)
    else:
        order = indexes_in_ascending_order(deadline, keys)
    return [values[place] for place in deadline.charge_for_items(order)]


def _go_sort_order_with_nan(deadline: Deadline, keys: list[float]) -> list[int]:
    # the code below orders up to 12 numbers with NaN as Go's sort does; for more numbers, the order differs
    if len(keys) > 12:
        return indexes_in_ascending_order(
            deadline, [(isnan(key), 0.0 if isnan(key) else key) for key in deadline.charge_for_items(keys)]
        )
    order = list(range(len(keys)))
    for end in range(1, len(order)):
        place = end
        while place > 0 and keys[order[place]] < keys[order[place - 1]]:
            order[place], order[place - 1] = order[place - 1], order[place]
            place -= 1
    return order


def distinct(deadline: Deadline, values: list[Any]) -> list[Any]:
    """Return the first of each group of equal elements."""
    # cel-go counts 2n² for n²/2 comparisons, so 4 for each
    seen = ValueSet(deadline, max_elements=costs.MAX_ELEMENTS // 4)
    distinct_values = []
    for value in deadline.charge_for_items(values):
        if value not in seen:
            seen.add_value(value)
            distinct_values.append(value)
    return distinct_values


def reverse(deadline: Deadline, values: list[Any]) -> list[Any]:
    deadline.spend(len(values) // COPIED)
    return values[::-1]


def numbers_below(deadline: Deadline, number: int) -> list[int]:
    """Return the numbers from 0 up to, but not including, `number`."""
    costs.refuse_above_bound(number, costs.MAX_ELEMENTS)
    deadline.spend(max(number, 0) // COPIED)
    return list(range(number))


# ---- sorting many keys in parts, between which the clock is read


PART: Final = 2_000
"""One call of C sorts at most this number of keys, in less than a millisecond."""
_DRAWN: Final = 500
"""The number of random keys that divide all keys into parts. A part of more than PART keys is divided again."""


_LONG: Final = 64
"""Texts of at most this average length compare about as quickly as numbers."""


def indexes_in_ascending_order(deadline: Deadline, keys: list[Any]) -> list[int]:
    """Return the indexes of the keys in ascending order; equal keys keep their order.

    Nothing interrupts Python's sort. So random keys divide a long list into parts (a sample sort). Sorting the parts
    takes about as long as sorting the whole list, and gives the same order. Long texts are first replaced by their
    ranks: a list may have the same text a hundred thousand times, and each comparison would read the whole text.
    """
    is_text = bool(keys) and isinstance(keys[0], str | bytes)
    is_long = is_text and sum(map(len, keys)) > _LONG * len(keys)
    return _sorted_indexes(deadline, _ranks_of_texts(deadline, keys) if is_long else keys)


def _ranks_of_texts(deadline: Deadline, texts: list[Any]) -> list[int]:
    # equal texts are compared once
    each_once = list(dict.fromkeys(deadline.charge_for_items(texts)))
    order = _sorted_indexes(deadline, each_once)
    ranks = {each_once[place]: number for number, place in enumerate(deadline.charge_for_items(order))}
    return [ranks[text] for text in deadline.charge_for_items(texts)]


def _sorted_indexes(deadline: Deadline, keys: list[Any]) -> list[int]:
    order: list[int] = []
    pending = [(list(range(len(keys))), False)]
    while pending:
        places, is_sorted = pending.pop()
        if not is_sorted and len(places) > PART:
            pending.extend(reversed(_partitioned(deadline, keys, places)))
            continue
        if not is_sorted:
            deadline.spend(len(places))
            places.sort(key=keys.__getitem__)
        order += places
    return order


def _partitioned(deadline: Deadline, keys: list[Any], places: list[int]) -> list[tuple[list[int], bool]]:
    # returns parts with ascending keys, and for each part whether all its keys are equal
    sampled = Random(len(places)).sample(places, _DRAWN)  # noqa: S311 - no secret depends on it
    bounds = sorted({keys[place] for place in sampled})
    if len(bounds) == 1:  # most keys are equal
        return _partitioned_by_pivot(deadline, keys, places, bounds[0])
    parts: list[list[int]] = [[] for _ in range(len(bounds) + 1)]
    for place in deadline.items_with_clock_checks(places):
        parts[bisect_right(bounds, keys[place])].append(place)
    return [(part, False) for part in parts if part]


def _partitioned_by_pivot(
    deadline: Deadline, keys: list[Any], places: list[int], pivot: Any
) -> list[tuple[list[int], bool]]:
    # returns the keys below the pivot, the keys that equal the pivot, and the keys above the pivot
    before: list[int] = []
    equal: list[int] = []
    after: list[int] = []
    for place in deadline.items_with_clock_checks(places):
        key = keys[place]
        (equal if key == pivot else before if key < pivot else after).append(place)
    return [(before, False), (equal, True), (after, False)]


# ---- costs, as the track… functions of cel-go ext/lists.go, and signatures


def _list_creation_cost(elements: int, times: float = 1) -> int:
    return int(elements * times) + 1 + costs.LIST


def _cost_of_result(result: Any, *_: Any) -> int:
    return _list_creation_cost(costs.counted_size(result))


def _cost_of_flatten(_: Any, values: list[Any], depth: int = 1) -> int:
    return (
        _list_creation_cost(costs.counted_size(values), float(depth)) % 2**64
    )  # a negative depth wraps around as Go's uint64


def _cost_of_comparing(_: Any, *arguments: list[Any]) -> int:
    keys = arguments[-1]
    times = 2.0 + (costs.STRING if keys and type(keys[0]) in (str, bytes) else 0)
    return _list_creation_cost(len(keys) ** 2, times)


def _sort_overloads() -> list[Overload]:
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
            metered=True,
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
            metered=True,
        )
        for element in COMPARABLE.values()
    ]
    return plain + by_keys


_LISTS = list_of(list_of(A))
_LIST = list_of(A)

FUNCTIONS = (
    Overload(
        "slice",
        "list_slice",
        (_LIST, INT, INT),
        _LIST,
        slice_list,
        member=True,
        since=(1, 34),
        cost=_cost_of_result,
        metered=True,
    ),
    Overload(
        "flatten",
        "list_flatten",
        (_LISTS,),
        _LIST,
        flatten,
        member=True,
        since=(1, 34),
        cost=_cost_of_flatten,
        metered=True,
    ),
    Overload(
        "flatten",
        "list_flatten_int",
        (LIST_DYN, INT),
        LIST_DYN,
        flatten,
        member=True,
        since=(1, 34),
        cost=_cost_of_flatten,
        metered=True,
    ),
    *_sort_overloads(),
    Overload(
        "lists.range",
        "lists_range",
        (INT,),
        list_of(INT),
        numbers_below,
        since=(1, 34),
        cost=_cost_of_result,
        metered=True,
    ),
    Overload(
        "reverse",
        "list_reverse",
        (_LIST,),
        _LIST,
        reverse,
        member=True,
        since=(1, 34),
        cost=_cost_of_result,
        metered=True,
    ),
    Overload(
        "distinct",
        "list_distinct",
        (_LIST,),
        _LIST,
        distinct,
        member=True,
        since=(1, 34),
        cost=_cost_of_comparing,
        metered=True,
    ),
)
