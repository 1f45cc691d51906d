"""Functions that treat lists as sets: ext.Sets. Order and repetition do not matter. Source: cel-go v0.26.0 ext/sets.go.

sets.contains(list(T), list(T)) -> bool
    Every element of the second list is in the first.

    sets.contains([1, 2, 3], [3, 1, 1]) // true
    sets.contains([1], [1, 2]) // false
    sets.contains([], []) // true
    sets.contains(dyn(1), []) // error: no such overload

sets.equivalent(list(T), list(T)) -> bool
    Each list contains the other.

    sets.equivalent([1, 2], [2, 1, 2]) // true
    sets.equivalent([dyn(1)], [dyn(1u), dyn(1.0)]) // true
    sets.equivalent([1], [2]) // false
    sets.equivalent(dyn({}), []) // error: no such overload

sets.intersects(list(T), list(T)) -> bool
    The lists have an element in common.

    sets.intersects(['a', 'b'], ['b']) // true
    sets.intersects(['a'], []) // false
    sets.intersects([], dyn('a')) // error: no such overload
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from webhook.cel.library import costs
from webhook.cel.library.declaration import Cost, Overload
from webhook.cel.library.membership import ValueSet
from webhook.cel.types import BOOL, A, list_of
from webhook.deadline import Deadline


def contains(deadline: Deadline, whole: list[Any], part: list[Any]) -> bool:
    """Return whether every element of `part` is in `whole`."""
    members = ValueSet(deadline, whole)
    return all(item in members for item in deadline.charge_for_items(part))


def equivalent(deadline: Deadline, left: list[Any], right: list[Any]) -> bool:
    """Return whether each list contains the other."""
    return contains(deadline, left, right) and contains(deadline, right, left)


def intersects(deadline: Deadline, left: list[Any], right: list[Any]) -> bool:
    """Return whether the lists have an element in common."""
    members = ValueSet(deadline, right)
    return any(item in members for item in deadline.charge_for_items(left))


def _product_of_sizes_cost(times: int) -> Cost:
    return lambda _, left, right: 1 + costs.counted_size(left) * costs.counted_size(right) * times


def _set_overload(name: str, implementation: Callable[..., bool], times: int) -> Overload:
    return Overload(
        f"sets.{name}",
        f"list_sets_{name}_list",
        (list_of(A), list_of(A)),
        BOOL,
        implementation,
        since=(1, 29),
        cost=_product_of_sizes_cost(times),
        metered=True,
    )


FUNCTIONS = (
    _set_overload("contains", contains, 1),
    _set_overload("equivalent", equivalent, 2),
    _set_overload("intersects", intersects, 1),
)
