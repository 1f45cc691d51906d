"""Optional values, and the selections that return them: `a.?b`, `a[?k]` and `has(a.b)`.

A selection from an optional returns an optional, so the class and the selections are in one module. optional.py has the
functions of optionals. Source: cel-go v0.26.0 common/types/optional.go, interpreter/attributes.go (refQualify).
"""

from __future__ import annotations

from typing import Any, ClassVar

from webhook.cel.equality import are_equal
from webhook.cel.library.refusal import go_type_name
from webhook.cel.library.standard import list_index
from webhook.cel.types import DYN, Type, optional_of
from webhook.cel.values import ABSENT, MAPS, Duration, JSONPatch, Struct, Timestamp, UInt, map_find
from webhook.deadline import Deadline
from webhook.errors import EvaluationError
from webhook.yamltext.unread import refuse_unread_part

_KEYS = frozenset((str, int, UInt, bool, float))
"""Classes of keys and indexes (interpreter/attributes.go newQualifier)."""
_GO_KEYS: dict[type, str] = {
    list: "[]interface {}",
    dict: "map[string]interface {}",
    type(None): "<nil>",
}
"""Go types of JSON values that cannot be keys."""
_WITH_ZERO = frozenset((bool, int, UInt, float, str, bytes, list, *MAPS, Struct, Duration, Timestamp))


class Optional:
    """optional.of(value), or optional.none() if `present` is False: then `value` has no meaning."""

    __slots__ = ("present", "value")
    cel_type: ClassVar[Type] = optional_of(DYN)
    go_type: ClassVar[str] = "*types.Optional"

    def __init__(self, value: Any, present: bool = True) -> None:
        self.value = value
        self.present = present

    def __eq__(self, other: object) -> bool:
        return type(other) is Optional and self.has_same_value(other)

    def has_same_value(self, other: Optional, deadline: Deadline | None = None) -> bool:
        """Return whether both optionals are without a value, or have equal values."""
        if self.present is not other.present:
            return False
        return not self.present or are_equal(self.value, other.value, deadline)

    def __hash__(self) -> int:
        return hash((Optional, self.present))

    def __getitem__(self, key: Any) -> Optional:
        """Return an optional of the value under the key, for generated code."""
        return look_up_optional(self, key)

    def __repr__(self) -> str:
        return f"optional({self.value!r})" if self.present else "optional.none()"


NONE = Optional(None, present=False)
"""optional.none()."""


def check_key_type(key: Any) -> None:
    """Raise an EvaluationError if a value can be neither a key nor an index."""
    if type(key) not in _KEYS:
        raise EvaluationError(f"invalid qualifier type: {_GO_KEYS.get(type(key)) or go_type_name(type(key))}")


def look_up_optional(value: Any, key: Any) -> Optional:
    """Return the optional of `value[?key]`; `value` may be an optional."""
    value_found = value_or_absent_at(value, key)
    return NONE if value_found is ABSENT else Optional(value_found)


def value_or_absent_at(value: Any, key: Any) -> Any:
    """Return the value of `value[?key]`, or ABSENT."""
    while type(value) is Optional:
        if not value.present:
            return ABSENT
        value = value.value
    check_key_type(key)
    kind = type(value)
    if kind is list:
        position = list_index(key)
        return value[position] if 0 <= position < len(value) else ABSENT
    if kind in MAPS:
        return map_find(value, key)
    if kind is JSONPatch and type(key) is str:
        return value[key] if value.is_field_set(key) else ABSENT
    if isinstance(value, dict) and kind is not Struct:  # not the API server's Object{…}
        return value[key] if is_field_present(value, key) else ABSENT
    refuse_unread_part(value)
    return ABSENT


def is_zero(value: Any) -> bool:
    """Return whether the value is its type's zero, if the type has one."""
    kind = type(value)
    return not value if kind in _WITH_ZERO else value is None


def value_or_absent(value: Any) -> Any:
    """Return the value of an optional, or ABSENT; other values unchanged."""
    if type(value) is not Optional:
        return value
    return value.value if value.present else ABSENT


def is_field_present(value: Any, field: str) -> bool:
    """Return whether a value has a field; False for a value without fields, an error for a list."""
    kind = type(value)
    if kind in MAPS:
        return field in value
    if kind is Struct:
        return False
    if kind is JSONPatch:
        return bool(value.is_field_set(field))
    if kind is Optional:
        return value.present and is_field_present(value.value, field)
    if kind is list:
        list_index(field)
    if isinstance(value, dict):
        is_set = field in value
        if is_set or kind.__contains__ is not dict.__contains__:
            return is_set
        # a map that computes its entries has a key if a lookup finds a value
        return hasattr(kind, "__missing__") and _has_key(value, field)
    refuse_unread_part(value)
    return False


def _has_key(value: dict[str, Any], field: str) -> bool:
    try:
        value[field]
    except KeyError:
        return False
    return True
