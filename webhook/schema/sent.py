"""Converts an object of a built-in kind to the form in which API servers send it, as Go decodes and encodes it.

A field that is unset or empty is left out, unless Go always writes it (go_encoding.json). In a map, a null text becomes
"", a null amount becomes 0, and a null in place of bytes stays null. An amount gets its canonical form.
api_defaults.py adds defaults.

Source: encoding/json on the types of k8s.io/api v0.36, k8s.io/apimachinery v0.36 pkg/api/resource/quantity.go;
tests/e2e/test_sent.py compares with kube-apiserver 1.36.
"""

from __future__ import annotations

from functools import cache
from operator import is_
from typing import Final, get_args

from msgspec import Struct

from webhook.apimachinery import quantity
from webhook.apimachinery.attributes import JSON, POD, GroupVersionKind
from webhook.deadline import Deadline
from webhook.patch.schema import is_builtin
from webhook.schema.decode import decode, zero_value_of_type
from webhook.schema.kinds import type_of
from webhook.schema.types import Fields, Items, Scalar, Type

_SCALARS: Final = ("text", "number", "truth")
_UNCHANGED: Final = frozenset(get_args(Scalar)) - {"quantity"}
"""The types that Go writes unchanged, except null."""
_UNJUDGED: Final = "status"
"""The field that controllers write. The types in kinds.py do not have this field."""
_BYTES: Final = {("core.v1.ConfigMap", "binaryData"), ("core.v1.Secret", "data")}
"""The maps of bytes, by type and field. A null in them stays."""


def as_sent_by_api_server(obj: JSON, kind: GroupVersionKind, deadline: Deadline | None = None) -> JSON | None:
    """Return a user's object in the form in which API servers send it. Unchanged objects are the same value.

    The result is None if API servers refuse the object because of a wrong type or an unknown field. Placeholders of a
    template have wrong types. The result is also None for custom kinds, because this module does not know their form.

    The deadline is charged for walked values.
    """
    of = type_of(kind) if is_builtin(kind) else None
    if of is None:
        return None
    until = deadline or Deadline()
    decoded = decode(obj, of, (), until)
    if decoded.mismatches or decoded.unfilled:
        return None
    try:
        return _ApiServerEncoder(until).encode_value(obj, of)
    except ValueError:  # an invalid quantity, or an unknown field
        return None


def pod_as_sent(pod: JSON, deadline: Deadline | None = None, *, is_whole: bool = True) -> JSON:
    """Return a decoded Pod in the form in which API servers send it.

    Unknown fields stay, because a newer Kubernetes may have them. Invalid quantities stay, too. Fields that Go always
    writes are added only if `is_whole`.
    """
    of = type_of(POD) or "any"
    return _ApiServerEncoder(deadline or Deadline(), is_strict=False, is_whole=is_whole).encode_value(pod, of)


class _ApiServerEncoder(Struct, frozen=True):
    """Encodes values of the right types.

    Attributes:
        is_strict: refuse invalid quantities and unknown fields.
        is_whole: add fields that Go always writes.
    """

    deadline: Deadline
    is_strict: bool = True
    is_whole: bool = True

    def encode_value(self, value: JSON, of: Type) -> JSON:
        """Return a value that is not null in encoded form. Raises ValueError for a refused value."""
        if of == "quantity":
            return self._canonical_quantity(value)
        if isinstance(of, Items):
            return self._list(value, of)
        if not isinstance(of, Fields):
            return value
        return self._object(value, of) if of.fields else self._map(value, of)

    def _list(self, value: list[JSON], of: Items) -> JSON:
        self.deadline.spend(len(value))
        if of.item in _UNCHANGED and None not in value:
            return value
        if isinstance(of.item, Fields) and self._are_unchanged(value, of.item):
            return value
        empty = zero_value_of_type(of.item)
        made = [self.encode_value(empty if item is None else item, of.item) for item in value]
        return value if all(map(is_, value, made)) else made

    def _are_unchanged(self, values: list[JSON], of: Fields) -> bool:
        """Most long lists have only fields that Go writes unchanged: variables, ports, mounts. This check is five
        times faster than encoding them.
        """
        written, always = _unchanged_fields(of), of.always.keys()
        for each in self.deadline.charge_for_items(values):
            if each is None or not (always <= each.keys() <= written and all(each.values())):
                return False
        return True

    def _map(self, value: dict[str, JSON], of: Fields) -> JSON:
        self.deadline.spend(len(value))
        others = of.others or "any"
        if others in _UNCHANGED and None not in value.values():
            return value
        empty = "0" if others == "quantity" else zero_value_of_type(others)
        made = {key: empty if item is None else self.encode_value(item, others) for key, item in value.items()}
        return value if all(map(is_, value.values(), made.values())) else made

    def _object(self, value: dict[str, JSON], of: Fields) -> JSON:
        self.deadline.spend(len(value))
        made, is_same, unchanged = {}, True, _unchanged_fields(of)
        for name, item in value.items():
            if item and name in unchanged:  # most fields
                made[name] = item
                continue
            field = of.fields.get(name, of.others)
            if field is None and name != _UNJUDGED and self.is_strict:
                raise ValueError(f"{name} is not a field")
            if item is None or (not item and not (name in of.always or name in of.kept) and _is_omitted(item, field)):
                is_same = False
                continue
            if field is None or field in _UNCHANGED or (of.name, name) in _BYTES:
                made[name] = item
                continue
            made[name] = self.encode_value(item, field)
            is_same = is_same and made[name] is item
        if self.is_whole:
            for name, empty in of.always.items():
                made.setdefault(name, empty)
        return value if is_same and len(made) == len(value) else made

    def _canonical_quantity(self, value: JSON) -> JSON:
        read = quantity.read_quantity_or_none(value)
        if read is None:
            if self.is_strict:
                raise ValueError(f"{value} is not a quantity")
            return value
        canonical = str(read)
        return value if canonical == value else canonical


@cache
def _unchanged_fields(of: Fields) -> frozenset[str]:
    """Return the fields that Go writes unchanged if they are not empty."""
    return frozenset(name for name, field in of.fields.items() if field in _UNCHANGED)


def _is_omitted(empty: JSON, of: Type | None) -> bool:
    """Go leaves out an empty scalar, list, or map without declared fields."""
    if isinstance(of, Fields):
        return not of.fields
    return isinstance(of, Items) or (of in _SCALARS and empty is not None)
