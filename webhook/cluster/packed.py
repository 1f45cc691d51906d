"""Reduces the objects of a view to the fields that are read, and keeps larger objects as JSON text.

Text needs a quarter of the memory of decoded values. Decoded objects share one copy of each field name.

A user may write a few objects of 1.5 MB each second. Decoded values took 0.1 s for each megabyte, and the event loop
waited until their names were shared, their bytes counted and their fields compared. With texts, these calls are short.
Forked processes share the memory of a text, and copy the pages of decoded values that they read. A lookup decodes the
text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from sys import getsizeof
from typing import Any, Final, TypeAlias, overload

import msgspec
from msgspec import Struct

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import parse_path
from webhook.cluster.decoding import DEEPEST, TOO_DEEP
from webhook.cluster.interest import Fields
from webhook.cluster.lookup import namespace_and_name
from webhook.cluster.view_memory import PLACE_BYTES, SharedKeys
from webhook.deadline import Deadline

Tree: TypeAlias = Mapping[str, "Tree"]
"""The kept fields by name. A field with an empty tree is kept whole."""
_Share: TypeAlias = Callable[[str], str]

_ALWAYS: Final = frozenset(("apiVersion", "kind", "metadata.name", "metadata.namespace"))
_UNREAD: Final = "managedFields"
"""Never kept, because managedFields are half of an object's size, and no rule reads them."""


class TooDeepObject(ValueError):
    """A field that is read is nested deeper than DEEPEST."""

    def __init__(self) -> None:
        super().__init__(f"is nested deeper than {DEEPEST} levels and cannot be read")


def projection_of_fields(fields: Fields) -> Callable[[JSON], JSON]:
    """Return a function that reduces an object to name, namespace and these fields; None keeps all but managedFields.

    The function raises TooDeepObject if one of the fields is too deep. `with_shared_keys` and `is_too_deep` check the
    values below the fields. Removed fields may have any depth.
    """
    if fields is None:
        return _without_managed_fields
    tree = _tree_of_fields(fields | _ALWAYS)
    return lambda obj: _kept_fields(obj, tree, 0)


def _tree_of_fields(fields: frozenset[str]) -> Tree:
    tree: dict[str, Any] = {}
    for path in sorted(fields, key=len, reverse=True):  # a shorter path replaces longer paths
        *above, last = map(str, parse_path(path))
        place = tree
        for name in above:
            place = place.setdefault(name, {})
        place[last] = {}
    return tree


def _kept_fields(value: JSON, tree: Tree, depth: int) -> JSON:
    if not tree:
        return value
    if depth > DEEPEST or value is TOO_DEEP:
        raise TooDeepObject
    if isinstance(value, dict):
        return {name: _kept_fields(value[name], below, depth + 1) for name, below in tree.items() if name in value}
    if isinstance(value, list):
        return [_kept_fields(each, tree, depth + 1) for each in value]
    return value


def _without_managed_fields(obj: JSON) -> JSON:
    return {**obj, "metadata": {key: value for key, value in obj["metadata"].items() if key != _UNREAD}}


def with_shared_keys(obj: JSON, keys: SharedKeys) -> JSON:
    """Return an object with shared copies of its keys.

    Raises:
        TooDeepObject: the object is nested deeper than DEEPEST.
    """
    return _with_shared_keys(obj, keys.share, 0)


def _with_shared_keys(value: JSON, share: _Share, depth: int) -> JSON:
    if isinstance(value, dict):
        if depth >= DEEPEST:
            raise TooDeepObject
        return {share(key): _with_shared_keys(below, share, depth + 1) for key, below in value.items()}
    if isinstance(value, list):
        if depth >= DEEPEST:
            raise TooDeepObject
        return [_with_shared_keys(each, share, depth + 1) for each in value]
    if value is TOO_DEEP:
        raise TooDeepObject
    return value


SMALL: Final = 8 << 10
"""The most bytes of JSON of an object that is kept decoded: nearly all objects that people write. Caches find these
objects by identity (docs/caches.md)."""
LARGEST_HELD: Final = 128 << 10
"""The most bytes of JSON of a kept object, for a kind that is watched in all namespaces. Otherwise a user's objects
could fill the memory of the server, and block the event loop with each lookup. Objects that people write have some KB;
etcd accepts 1.5 MB."""
WORK_BYTES: Final = 100
"""Bytes of JSON for one step of a deadline."""


class PackedObject(Struct, frozen=True):
    """An object as JSON text."""

    namespace: str
    name: str
    text: bytes

    @property
    def memory_bytes(self) -> int:
        """Return the bytes of the view's memory for the object."""
        return PLACE_BYTES + getsizeof(self) + getsizeof(self.text)

    def read(self) -> JSON:
        return json.loads(self.text)  # msgspec is hundreds of times slower for numbers such as 1e308


def encode_kept(value: JSON) -> bytes:
    """Return the kept fields of an object as JSON text.

    Raises:
        TooDeepObject: the object is nested too deeply.
    """
    try:
        return msgspec.json.encode(value, enc_hook=_refuse)
    except RecursionError:
        raise TooDeepObject from None


def _refuse(_value: object) -> JSON:
    raise TooDeepObject  # the only value that is not JSON is TOO_DEEP


class PackedList(Sequence[JSON]):
    """A list that decodes packed objects on each access. `stored` has the objects in the form of the view."""

    __slots__ = ("stored",)

    def __init__(self, stored: tuple[JSON | PackedObject, ...]) -> None:
        self.stored = stored

    def __len__(self) -> int:
        return len(self.stored)

    @overload
    def __getitem__(self, at: int) -> JSON: ...
    @overload
    def __getitem__(self, at: slice) -> PackedList: ...
    def __getitem__(self, at: int | slice) -> JSON:
        return PackedList(self.stored[at]) if isinstance(at, slice) else _read(self.stored[at])

    def __iter__(self) -> Iterator[JSON]:
        return map(_read, self.stored)


def readable_list(stored: tuple[JSON | PackedObject, ...]) -> Sequence[JSON]:
    """Return objects of a view as plain JSON. If none is packed, return the given tuple."""
    return PackedList(stored) if PackedObject in map(type, stored) else stored  # no Python code for each object


def charge_for_objects(objects: Sequence[JSON], deadline: Deadline) -> Iterable[JSON]:
    """Return the objects of a list, and charge the deadline for decoding them."""
    if not isinstance(objects, PackedList):
        return deadline.charge_for_items(objects)
    return _charged_objects(objects, deadline)


def _charged_objects(objects: PackedList, deadline: Deadline) -> Iterator[JSON]:
    for obj in objects.stored:
        deadline.spend(1 + len(obj.text) // WORK_BYTES if isinstance(obj, PackedObject) else 1)
        yield _read(obj)


def places_of_objects(objects: Sequence[JSON]) -> Iterator[tuple[str, str]]:
    """Yield namespace and name of each object of a list, without decoding objects."""
    return map(_place_of_object, _stored_objects(objects))


def replace_object(
    objects: Sequence[JSON], place: tuple[str, str], current: JSON | None, new: JSON | None
) -> Sequence[JSON]:
    """Return a view's list, sorted, with `new` in place of `current`; None means no object."""
    others = [obj for obj in _stored_objects(objects) if obj is not current and not _is_packed_at(place, obj)]
    if new is not None:
        others = sorted((*others, new), key=_place_of_object)
    return readable_list(tuple(others))


def _stored_objects(objects: Sequence[JSON]) -> Sequence[JSON | PackedObject]:
    return objects.stored if isinstance(objects, PackedList) else objects


def _is_packed_at(place: tuple[str, str], obj: JSON | PackedObject) -> bool:
    return isinstance(obj, PackedObject) and (obj.namespace, obj.name) == place


def _place_of_object(obj: JSON | PackedObject) -> tuple[str, str]:
    if isinstance(obj, PackedObject):
        return obj.namespace, obj.name
    namespace, name = namespace_and_name(obj)
    return str(namespace), str(name)  # a recorded review may have another type here


def _read(obj: JSON | PackedObject) -> JSON:
    return obj.read() if isinstance(obj, PackedObject) else obj
