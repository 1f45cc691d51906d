"""Functions that generated code calls with values of any class: access, iteration, construction, costs by size.

Sources: cel-go v0.26.0 interpreter/attributes.go (refQualify), interpreter/interpretable.go (folds, constructors),
ext/comprehensions.go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from webhook.cel.library.conversions import format_key_for_message
from webhook.cel.library.costs import counted_size
from webhook.cel.library.optional_value import Optional, check_key_type, is_field_present, is_zero, look_up_optional
from webhook.cel.library.refusal import go_type_name, raise_no_such_overload
from webhook.cel.library.standard import element_at
from webhook.cel.values import (
    ABSENT,
    MAPS,
    UNHASHABLE,
    DictWithEmptyMaps,
    Duration,
    JSONPatch,
    Map,
    Struct,
    Timestamp,
    TypeValue,
    UInt,
    find_by_map_key,
    make_map,
    map_items,
    map_key,
    map_keys,
    type_name,
)
from webhook.deadline import STEP, Deadline
from webhook.errors import EvaluationError

_SIZED = frozenset((str, bytes, list, dict, Map))
_GO_VALUES: dict[type, str] = {
    bool: "bool",
    int: "int64",
    UInt: "uint64",
    float: "float64",
    bytes: "[]uint8",
    type(None): "structpb.NullValue",
    list: "[]interface {}",
    dict: "map[string]interface {}",
    Map: "map[ref.Val]ref.Val",
    Struct: "map[string]interface {}",
    JSONPatch: "*mutation.JSONPatchVal",
    Duration: "time.Duration",
    Timestamp: "time.Time",
    Optional: "<nil>",
}
"""The Go types of values in errors (%T of Value())."""
_GO_OPAQUE = {
    "net.IP": "netip.Addr",
    "net.CIDR": "netip.Prefix",
    "kubernetes.Quantity": "*resource.Quantity",
    "kubernetes.URL": "*url.URL",
    "kubernetes.Semver": "semver.Version",
    "kubernetes.NamedFormat": "cel.Format",
}
"""The Go types of opaque values in errors."""


def value_at_key(value: Any, key: Any) -> Any:
    if type(value) is Optional:
        return look_up_optional(value, key)
    check_key_type(key)
    if type(value) is JSONPatch and type(key) is not str:
        raise EvaluationError(f"unsupported indexer: %!s({go_type_name(type(key))}={format_key_for_message(key)})")
    if isinstance(value, dict) and type(value) not in MAPS:
        return value[key] if type(key) is str else _raise_no_such_key(key)
    return element_at(value, key)


def non_zero_or_absent(value: Any) -> Any:
    """Return the value; ABSENT if it is zero or empty."""
    return ABSENT if is_zero(value) else value


def field_of(value: Any, field: str) -> Any:
    """Return a field of a value; null for a field that Object{…} lacks (apiserver mutation/dynamic/objects.go)."""
    kind = type(value)
    if kind is Struct:
        return _as_plain_map(value.get(field))
    return value[field] if kind is JSONPatch else value_at_key(value, field)


def has_field(value: Any, field: str) -> bool:
    """Return whether a value has a field, or Object{…} sets the field."""
    return field in value if type(value) is Struct else is_field_present(value, field)


def _as_plain_map(value: Any) -> Any:
    # objects inside the value also become maps (objects.go ConvertToNative)
    if type(value) is list:
        return [_as_plain_map(each) for each in value]
    return {field: _as_plain_map(item) for field, item in value.items()} if type(value) is Struct else value


def _raise_no_such_key(key: Any) -> Any:
    raise EvaluationError(f"no such key: {format_key_for_message(key)}")


def iterated_elements(value: Any) -> list[Any]:
    """Return the values that a comprehension with one variable visits: a list's elements, a map's keys."""
    kind = type(value)
    if kind is list:
        return list(value)
    if kind in MAPS:
        return map_keys(value)
    if isinstance(value, dict) and not isinstance(value, Struct):
        return list(value)
    shown = go_type_name(kind)
    raise EvaluationError(f"got '{shown}', expected iterable type")


def iterated_pairs(value: Any) -> Collection[tuple[Any, Any]]:
    """Return the pairs that a comprehension with two variables visits: index and element, or key and value."""
    kind = type(value)
    if kind is list:
        return list(enumerate(value))
    if kind is dict or kind is DictWithEmptyMaps:
        return value.items()  # type: ignore[no-any-return]
    if kind is Map:
        return list(map_items(value))
    if isinstance(value, dict) and hasattr(kind, "__missing__"):
        return list(value.items())
    raise EvaluationError(f"unsupported comprehension range type: {go_type_name(kind)}")


def cost_if_element_remains(remaining: Iterator[Any], more: int) -> int:
    """Return `more` if the iterator has a next element, otherwise 0."""
    return more if remaining.__length_hint__() else 0  # type: ignore[attr-defined]


def append_optional_element(value: Any, target: list[Any]) -> None:
    """Append the value of an optional that has a value; for [?value]."""
    if type(value) is not Optional:
        raise EvaluationError(
            f"cannot initialize optional list element from non-optional value {format_key_for_message(value)}"
        )
    if value.present:
        target.append(value.value)


def set_optional_entry(key: Any, value: Any, target: list[tuple[Any, Any]]) -> None:
    """Add the entry of {?key: value}, or remove an earlier entry if the optional has no value."""
    if type(value) is not Optional:
        entry, value_text = format_key_for_message(key), format_key_for_message(value)
        raise EvaluationError(f"cannot initialize optional entry '{entry}' from non-optional value {value_text}")
    if value.present:
        target.append((key, value.value))
    else:
        target[:] = [entry for entry in target if map_key(entry[0]) != map_key(key)]


def build_structure(name: str, entries: list[tuple[Any, Any]]) -> Struct:
    """Return the structure of Name{field: value}."""
    if name != "JSONPatch":
        return Struct(name, entries)
    for field, value in entries:
        if field != "value" and type(value) not in (str, TypeValue):
            shown = _GO_VALUES.get(type(value)) or _GO_OPAQUE.get(type_name(value), type_name(value))
            raise EvaluationError(f"unexpected type {shown} for JSONPatchType '{field}' field")
    return JSONPatch(
        [(field, str(value) if type(value) is TypeValue and field != "value" else value) for field, value in entries]
    )


def insert_entries(deadline: Deadline, entries: dict[Any, Any], more: Any) -> None:
    """Add the entries of a map for transformMapEntry; fail for a key that is already there."""
    if type(more) not in MAPS:
        raise_no_such_overload("cel.@mapInsert", {}, more)
    deadline.spend(len(more) // 8)  # C copies the keys
    for key, value in map_items(more) if len(more) <= STEP else deadline.items_with_clock_checks(map_items(more)):
        if type(key) in UNHASHABLE:
            deadline.check_clock()  # the whole key is compared
        if find_by_map_key(entries, key) is not ABSENT:
            raise EvaluationError(f"insert failed: key {format_key_for_message(key)} already exists")
        entries[map_key(key)] = (key, value)


def map_of_inserted_entries(deadline: Deadline, entries: dict[Any, Any]) -> dict[Any, Any]:
    """Return the map that `insert_entries` collected."""
    return make_map(deadline.charge_for_items(entries.values()))


def map_of_pairs(deadline: Deadline, entries: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return the map of the keys and values that a loop collected."""
    return make_map(deadline.charge_for_items(entries))


def size_of(value: Any) -> int:
    if type(value) in _SIZED or (isinstance(value, dict) and not isinstance(value, Struct)):
        return len(value)
    return raise_no_such_overload("size", value)


def one_if_sized(value: Any) -> int:
    """Return 1 if the value's type has a size, otherwise 0. Comparing a sized value with an empty value costs 1
    less.
    """
    return 1 if type(value) in _SIZED else 0


def equality_cost(left: Any, right: Any) -> int:
    """Return the cost of == or !=, minus 1 (runtimecost.go, Equals)."""
    return -(-min(actual_size(left), actual_size(right)) // 10) - 1


def actual_size(value: Any) -> int:
    """Return the size of a value, or of the value in an optional (runtimecost.go actualSize)."""
    if type(value) is Optional and value.present:
        return actual_size(value.value)
    return counted_size(value) if type(value) in _SIZED else 1
