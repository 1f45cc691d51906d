"""Functions that treat lists as sets: ext.Sets. Source: cel-go v0.26.0 ext/sets.go. Order and repetition do not matter.

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
from webhook.cel.library.membership import Members
from webhook.cel.types import BOOL, A, list_of
from webhook.deadline import Deadline


def contains(deadline: Deadline, whole: list[Any], part: list[Any]) -> bool:
    """Return whether every element of `part` is in `whole`."""
    members = Members(deadline, whole)
    return all(item in members for item in deadline.each(part))


def equivalent(deadline: Deadline, left: list[Any], right: list[Any]) -> bool:
    """Return whether each list contains the other."""
    return contains(deadline, left, right) and contains(deadline, right, left)


def intersects(deadline: Deadline, left: list[Any], right: list[Any]) -> bool:
    """Return whether the lists have an element in common."""
    members = Members(deadline, right)
    return any(item in members for item in deadline.each(left))


def _cost(times: int) -> Cost:
    return lambda _, left, right: 1 + costs.size(left) * costs.size(right) * times


def _function(name: str, implementation: Callable[..., bool], times: int) -> Overload:
    return Overload(
        f"sets.{name}",
        f"list_sets_{name}_list",
        (list_of(A), list_of(A)),
        BOOL,
        implementation,
        since=(1, 29),
        cost=_cost(times),
        metered=True,
    )


FUNCTIONS = (
    _function("contains", contains, 1),
    _function("equivalent", equivalent, 2),
    _function("intersects", intersects, 1),
)
