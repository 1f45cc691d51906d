"""Fast membership tests with CEL's equality, by buckets.

Equal values share a bucket: numbers by their double, texts and bytes by themselves, lists and maps by length, other
values by type. CEL's equality decides within a bucket.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import isnan
from typing import Any

from webhook.cel.equality import are_equal_without_error
from webhook.cel.library.costs import MAX_ELEMENTS, refuse_above_bound
from webhook.cel.values import INT_MAX, INT_MIN, MAPS, NUMBERS, UINT_MAX, UInt, refuse_unhashable
from webhook.deadline import Deadline

_WHOLE = ((int, INT_MIN, INT_MAX + 1), (UInt, 0, UINT_MAX + 1))
_PRIMITIVE = NUMBERS | {str, bool}
_PLAIN = _PRIMITIVE | {bytes}


def hash_bucket(value: Any) -> Any:
    """Return the bucket of a value: a hashable key that equal values share."""
    kind = type(value)
    if kind in NUMBERS:
        return ("number", float(value))
    if kind is str or kind is bytes or kind is bool:
        return (kind, value)
    if kind is list or kind in MAPS:
        return ("list" if kind is list else "map", len(value))
    return getattr(kind, "cel_type", kind)


def membership_set(values: Collection[Any]) -> Mapping[tuple[type, Any], None]:
    """Return the members of a constant list of numbers, texts and bools for `in`, by class and value.

    cel-go makes a set of such a list (v0.26.0 interpreter/decorators.go maybeOptimizeSetMembership). The set also has
    each number as an int, a uint and a double if it can be converted. An int becomes the nearest double. So
    9007199254740992.0 is in [9007199254740993], but 9007199254740993 is not in [9007199254740992.0].
    """
    members: dict[tuple[type, Any], None] = {}
    for value in values:
        kind = type(value)
        if kind is not float or not isnan(value):  # NaN is in no set
            members[kind, value] = None
        if kind is float and value.is_integer():
            members |= {(other, other(value)): None for other, least, most in _WHOLE if least <= value < most}
        elif kind is int or kind is UInt:
            members[float, float(value)] = None
            members |= {(other, other(value)): None for other, least, most in _WHOLE if least <= value < most}
    return members


def is_member(value: Any, members: Mapping[tuple[type, Any], None]) -> bool:
    """Return whether a value is in a constant list.

    Raises:
        EvaluationPanic: the value cannot be a key of a map in Go.
    """
    kind = type(value)
    if kind in _PRIMITIVE:
        return (kind, value) in members
    refuse_unhashable(value)
    return False


class ValueSet:
    """A collection with quick membership tests, charged to the Deadline.

    More than `most` comparisons raise BudgetExceeded. In the API server, more comparisons than the default exceed the
    cost limit.
    """

    __slots__ = ("_buckets", "_comparisons", "_deadline", "_max_elements")

    def __init__(self, deadline: Deadline, values: Collection[Any] = (), max_elements: int = MAX_ELEMENTS) -> None:
        self._deadline = deadline
        self._max_elements = max_elements
        self._buckets: dict[Any, list[Any]] = {}
        self._comparisons = 0
        for value in deadline.charge_for_items(values):
            self.add_value(value)

    def add_value(self, value: Any) -> None:
        """Add a value. Equal texts, bytes, bools and numbers of one class are kept once."""
        kind = type(value)
        members = self._buckets.setdefault(hash_bucket(value), [])
        if kind not in _PLAIN or not any(type(other) is kind and other == value for other in members):
            members.append(value)

    def __contains__(self, value: Any) -> bool:
        members = self._buckets.get(hash_bucket(value), ())
        self._comparisons += len(members)
        refuse_above_bound(self._comparisons, self._max_elements)
        deadline = self._deadline
        return any(are_equal_without_error(value, other, deadline) for other in deadline.charge_for_items(members))
