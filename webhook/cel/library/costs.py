"""The parts of call costs: sizes, walks, and bounds on results.

Sources: k8s.io/apiserver v0.36.1 pkg/cel/library/cost.go actualSize and traversalCost, cel-go v0.26.0 common/cost.go.
Costs are computed in floating point and in cel-go's order, to get the same rounding.
"""

from __future__ import annotations

from math import ceil
from typing import Any

from webhook.cel.values import Map, map_keys
from webhook.deadline import Deadline
from webhook.errors import BudgetExceeded

STRING = 0.1
"""The cost of one character of a text."""

REGEX = 0.25
"""The cost of one character of a pattern."""

LIST = 10
"""The cost of a new list."""

MAX_CHARACTERS = 10_000_000
"""The limit of a call's result in characters. A walk over so many characters costs the whole limit of an expression."""

MAX_ELEMENTS = 1_000_000
"""The limit of elements that a call produces or compares. An element costs at least 1, and the cost limit of an
expression is 1,000,000.
"""

EXCEEDED = "operation cancelled: actual cost limit exceeded"

_MAPS = frozenset((dict, Map))  # without Struct: upstream, objects built by Object{…} have no size
_SIZED = frozenset((str, bytes, list, *_MAPS))


def counted_size(value: Any) -> int:
    """Return the size for costs: characters, bytes or entries; 1 for values without a size."""
    if type(value) in _SIZED:
        return len(value)
    return int(getattr(value, "cel_size", 1))


def walk_cost(value: Any, times: float = STRING) -> int:
    """Return the cost of one walk over a value."""
    return ceil(counted_size(value) * times)


def traversal_cost(value: Any, deadline: Deadline) -> int:
    """Return the cost of a walk over a value and everything inside. This function also walks, and charges its walk."""
    kind = type(value)
    if kind is str:
        return int((len(value) if value.isascii() else len(value.encode(errors="replace"))) * STRING)
    if kind is bytes:
        return int(len(value) * STRING)
    if kind is list:
        return sum([traversal_cost(each, deadline) for each in deadline.charge_for_items(value)])
    if kind in _MAPS:
        keys = sum([traversal_cost(each, deadline) for each in deadline.charge_for_items(map_keys(value))])
        return keys + sum([traversal_cost(each, deadline) for each in deadline.charge_for_items(value.values())])
    return 1


def refuse_above_bound(count: int, bound: int) -> None:
    """Stop a call that would produce or compare too much.

    Raises:
        BudgetExceeded: `count` exceeds `bound`.
    """
    if count > bound:
        raise BudgetExceeded(EXCEEDED)


# ---- formulas that several libraries use; each is a Cost, which is called with the result and then the arguments


def cost_one(_: Any, *__: Any) -> int:
    return 1


def cost_zero(_: Any, *__: Any) -> int:
    """Return the cost 0: the call costs no more than its operands."""
    return 0


def walk_target_cost(_: Any, target: Any, *__: Any) -> int:
    """Return the cost of one walk over the target, the first argument."""
    return walk_cost(target)


def walk_target_twice_cost(_: Any, target: Any, *__: Any) -> int:
    """Return the cost of a walk over the target and of a result of the same length."""
    return ceil(counted_size(target) * 2 * STRING)


def traverse_target_cost(_: Any, target: Any, *__: Any) -> int:
    return traversal_cost(target, Deadline())


def pattern_match_cost(_: Any, text: Any, pattern: Any, *__: Any) -> int:
    return ceil((1.0 + counted_size(text)) * STRING) * ceil(counted_size(pattern) * REGEX)
