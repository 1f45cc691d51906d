"""Ranges of sizes and costs before the evaluation, as in cel-go v0.26.0 checker/cost.go (SizeEstimate, CostEstimate).

Nothing exceeds UNBOUNDED, which also means "no bound is known".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from webhook.cel.types import Type

UNBOUNDED = 2**64 - 1


class Range(Struct, frozen=True):
    """A range of numbers with both ends included."""

    least: int
    most: int

    def __add__(self, other: Range) -> Range:
        return Range(_capped(self.least + other.least), _capped(self.most + other.most))

    def __mul__(self, other: Range) -> Range:
        return Range(_capped(self.least * other.least), _capped(self.most * other.most))

    def __or__(self, other: Range) -> Range:
        """Return the smallest range that contains both ranges."""
        return Range(min(self.least, other.least), max(self.most, other.most))

    def multiplied_by(self, factor: float) -> Range:
        """Return the range times a cost per unit, rounded up."""
        return Range(_capped_product(self.least, factor), _capped_product(self.most, factor))


def range_of_value(value: int) -> Range:
    """Return the range of a single value."""
    return Range(value, value)


NOTHING = range_of_value(0)
ONE = range_of_value(1)
UNKNOWN = Range(0, UNBOUNDED)


def is_bounded(cost: int) -> bool:
    """Return whether a cost is a real bound. A cost that depends on an unknown size is at least 1/40 of UNBOUNDED."""
    return cost < UNBOUNDED // 64


def _capped(value: int) -> int:
    return min(value, UNBOUNDED)


def _capped_product(value: int, factor: float) -> int:
    product = float(value) * factor
    return UNBOUNDED if product >= 2.0**64 else math.ceil(product)


Sizes: TypeAlias = "Callable[[tuple[str, ...], Type], Range | None]"
"""Returns the size of an input from its path and static type, or None.

A path is the variable, then field names, `@items` and `@indices` of lists, `@values` and `@keys` of maps; () for a
computed value.
"""


class EntrySizes(Struct, frozen=True):
    """The known sizes of the keys and values of a list or a map."""

    container: str
    key: Range
    value: Range


class NodeEstimate(Struct, frozen=True):
    """The estimate of one node: static type, cost, and known properties of the value.

    `constant` is the value of a literal int; `path` is as in Sizes.
    """

    type: Type
    cost: Range
    size: Range | None = None
    entries: EntrySizes | None = None
    path: tuple[str, ...] = ()
    constant: int | None = None

    @property
    def size_range(self) -> Range:
        """Return the size, or UNKNOWN."""
        return UNKNOWN if self.size is None else self.size


def combined_entry_sizes(first: EntrySizes | None, second: EntrySizes | None) -> EntrySizes | None:
    """Return the entry sizes of a value that is one of two values, or combines both."""
    if first is None or second is None:
        return None
    return EntrySizes(first.container, first.key | second.key, first.value | second.value)


def uniform_size_bound(most: int) -> Sizes:
    """Return a function that bounds every text, bytes, list and map of the input by `most`."""

    def bound_of_input(path: tuple[str, ...], static: Type) -> Range | None:
        return Range(0, most) if path and static.name in _SIZED else None

    return bound_of_input


_SIZED = frozenset(("string", "bytes", "list", "map", "dyn", "any"))
