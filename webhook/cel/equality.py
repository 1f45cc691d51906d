"""Equality and order of CEL values (cel-go v0.26.0 common/types)."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from typing import Any

from webhook.cel.values import (
    ABSENT,
    MAPS,
    NUMBERS,
    TYPE_NAMES,
    DictWithEmptyMaps,
    Duration,
    JSONPatch,
    Map,
    Struct,
    Timestamp,
    fail_with_no_such_overload,
    map_find,
    map_keys,
)
from webhook.deadline import Deadline
from webhook.errors import EvaluationError, NoSuchOverload
from webhook.yamltext.unread import Unread

_EVERY_MAP = MAPS | {DictWithEmptyMaps}


def are_equal(left: Any, right: Any, deadline: Deadline | None = None) -> bool:
    """Return whether two values are equal in CEL. Only numbers can be equal to values of another type.

    Args:
        left: a value. Its type decides which other values it can be compared with.
        right: the other value.
        deadline: charged for every entry of lists and maps.

    Raises:
        NoSuchOverload: an opaque value is compared with a value of another type.
        UnreadPartError: an object or a list is compared with a part that is too deep to be read.
    """
    kind = type(left)
    other = type(right)
    if kind is str:
        return kind is other and bool(left == right)
    if kind is Unread or other is Unread:
        return bool(left == right)
    if kind is dict and other is dict:
        return left.keys() == right.keys() and _all_pairs_equal(left.values(), map(right.__getitem__, left), deadline)
    if kind is list:
        return other is list and len(left) == len(right) and _all_pairs_equal(left, right, deadline)
    if kind in NUMBERS:
        return other in NUMBERS and numbers_equal(left, right)
    if kind is bool or left is None or right is None:
        return left is right
    if kind in _EVERY_MAP and other in _EVERY_MAP:
        return len(left) == len(right) and _maps_equal(left, right, deadline)
    if (
        isinstance(left, dict)
        and isinstance(right, dict)
        and (hasattr(kind, "__missing__") or hasattr(other, "__missing__"))
    ):
        return bool(left == right)  # a map that computes its entries
    if kind in _EVERY_MAP:
        return False
    if kind is Struct:
        return other is Struct and left.name == right.name and are_identical(left, right, deadline)
    if kind is JSONPatch:
        return other is JSONPatch and _patch_operations_equal(left, right, deadline)
    if kind in TYPE_NAMES:
        return kind is other and bool(left == right)
    if hasattr(kind, "has_same_value"):  # an optional
        return kind is other and bool(left.has_same_value(right, deadline))
    if other is not getattr(kind, "cel_equals", kind):
        fail_with_no_such_overload()  # Kubernetes' opaque types on the left refuse other types
    return bool(left == right)


def are_equal_without_error(left: Any, right: Any, deadline: Deadline | None = None) -> bool:
    """Return whether two values are equal. Values that refuse a comparison are not equal."""
    try:
        return are_equal(left, right, deadline)
    except NoSuchOverload:
        return False


def _all_pairs_equal(left_values: Collection[Any], right_values: Iterable[Any], deadline: Deadline | None) -> bool:
    # pairs that refuse a comparison are skipped, as in cel-go's lists and maps
    for left, right in zip(
        left_values if deadline is None else deadline.charge_for_items(left_values), right_values, strict=True
    ):
        if type(left) is str and type(right) is str:  # the usual case
            if left != right:
                return False
            continue
        try:
            if not are_equal(left, right, deadline):
                return False
        except NoSuchOverload:
            continue
    return True


def are_identical(left: Any, right: Any, deadline: Deadline | None = None) -> bool:
    """Return whether two fields of structures are equal without conversion, as in Go's reflect.DeepEqual."""
    if type(left) is not type(right):
        return False
    if deadline is not None and isinstance(left, dict):
        deadline.spend(len(left))
    if type(left) is list:
        return False  # in Go, a list has a function, and functions are never equal
    if isinstance(left, dict):
        keys_agree = left.keys() == right.keys()
        return keys_agree and all(are_identical(item, right.get(key), deadline) for key, item in left.items())
    return bool(left == right)


def _patch_operations_equal(left: JSONPatch, right: JSONPatch, deadline: Deadline | None) -> bool:
    # the fields `value` are compared by CEL's rules
    if left.keys() != right.keys() or any(left[text] != right[text] for text in ("op", "path", "from")):
        return False
    return "value" not in left or are_equal(left["value"], right["value"], deadline)


def numbers_equal(left: Any, right: Any) -> bool:
    """Return whether two numbers are equal. An int and a double are compared as doubles (cel-go compare.go)."""
    if type(left) is not type(right) and (type(left) is float or type(right) is float):
        return float(left) == float(right)
    return bool(left == right)


def _maps_equal(left: dict[Any, Any], right: dict[Any, Any], deadline: Deadline | None) -> bool:
    if type(left) is not Map and type(right) is not Map:
        return left.keys() == right.keys() and _all_pairs_equal(left.values(), map(right.__getitem__, left), deadline)
    others = [map_find(right, key) for key in map_keys(left)]
    return not any(item is ABSENT for item in others) and _all_pairs_equal(left.values(), others, deadline)


def compare(left: Any, right: Any) -> int:
    """Return -1, 0 or 1; NaN and values without an order raise an error."""
    kind = type(left)
    if kind in NUMBERS and type(right) in NUMBERS:
        if math.isnan(left) or math.isnan(right):
            raise EvaluationError("NaN values cannot be ordered")
        if kind is not type(right) and (kind is float or type(right) is float):
            left, right = float(left), float(right)
    elif kind is type(right) and (kind is Timestamp or kind is Duration):
        left, right = left.nanoseconds, right.nanoseconds
    elif kind is not type(right) or (kind is not str and kind is not bytes and kind is not bool):
        fail_with_no_such_overload()
    return int(left > right) - int(left < right)
