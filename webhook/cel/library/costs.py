"""The measures that call costs are made of: a value's size, the walk over it, and bounds on what a call may produce.

Sources: k8s.io/apiserver v0.36.1 pkg/cel/library/cost.go actualSize and traversalCost, cel-go v0.26.0 common/cost.go.
Floating point on purpose, and in cel-go's order: its costs have its rounding.
"""

from __future__ import annotations

from math import ceil
from typing import Any

from webhook.cel.values import Map, map_keys
from webhook.deadline import Deadline
from webhook.errors import BudgetExceeded

STRING = 0.1
"""Cost of walking over one character."""

REGEX = 0.25
"""Cost of applying one character of a pattern."""

LIST = 10
"""Cost of making a list."""

MAX_CHARACTERS = 10_000_000
"""What one call may produce: the text that would cost the whole per-expression limit of 1,000,000 to walk over once."""

MAX_ELEMENTS = 1_000_000
"""What one call may produce or compare: an element costs at least 1, and 1,000,000 is the per-expression limit."""

EXCEEDED = "operation cancelled: actual cost limit exceeded"

_MAPS = frozenset((dict, Map))  # objects made by Object{…} have no size upstream
_SIZED = frozenset((str, bytes, list, *_MAPS))


def size(value: Any) -> int:
    """A value's size as costs see it: characters, bytes or entries; 1 for everything that has no size."""
    if type(value) in _SIZED:
        return len(value)
    return int(getattr(value, "cel_size", 1))


def walk(value: Any, times: float = STRING) -> int:
    """The cost of walking over a value of one size."""
    return ceil(size(value) * times)


def traversal(value: Any, deadline: Deadline) -> int:
    """The cost of walking over a value and everything inside it, which is a walk itself."""
    kind = type(value)
    if kind is str:
        return int((len(value) if value.isascii() else len(value.encode(errors="replace"))) * STRING)
    if kind is bytes:
        return int(len(value) * STRING)
    if kind is list:
        return sum([traversal(each, deadline) for each in deadline.each(value)])
    if kind in _MAPS:
        keys = sum([traversal(each, deadline) for each in deadline.each(map_keys(value))])
        return keys + sum([traversal(each, deadline) for each in deadline.each(value.values())])
    return 1


def bounded(count: int, most: int) -> None:
    """Stop a call whose output or comparisons would cost more than any budget.

    Raises:
        BudgetExceeded: there are more than `most`.

    """
    if count > most:
        raise BudgetExceeded(EXCEEDED)


# ---- formulas used by more than one library; each is a Cost: called with the result, then the arguments


def one(_: Any, *__: Any) -> int:
    """A nominal cost."""
    return 1


def nothing(_: Any, *__: Any) -> int:
    """No cost beyond that of the operands."""
    return 0


def walk_target(_: Any, target: Any, *__: Any) -> int:
    """Walking over the target, or first argument, once."""
    return walk(target)


def walk_target_twice(_: Any, target: Any, *__: Any) -> int:
    """Walking over the target and making the result."""
    return ceil(size(target) * 2 * STRING)


def traverse_target(_: Any, target: Any, *__: Any) -> int:
    """Walking over the target with everything inside."""
    return traversal(target, Deadline())


def apply_pattern(_: Any, text: Any, pattern: Any, *__: Any) -> int:
    """Matching a pattern against a text."""
    return ceil((1.0 + size(text)) * STRING) * ceil(size(pattern) * REGEX)
