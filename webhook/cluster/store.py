"""The objects of one watch. The thread of the watch writes the objects, and any thread reads them.

Readers never wait: every step of a writer is one assignment or one change of a dict or a list. So a process that is
forked at any moment has a readable view. If the kept fields of an object do not change, its Python object and the list
of its namespace stay the same. Writers use a lock: if the view is full, threads of other watches also write here
(view_memory.py).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from operator import is_
from typing import Final, TypeAlias

from msgspec import Struct

from webhook.apimachinery.attributes import JSON
from webhook.cluster.interest import BY_NAME, Index
from webhook.cluster.packed import PackedObject, readable_list
from webhook.cluster.view_memory import ViewMemory, bytes_of_object

Place: TypeAlias = tuple[str, str]
"""Namespace and name; the namespace of a cluster-scoped object is ""."""


_Key: TypeAlias = tuple[Index, str]
_KEY_BYTES: Final = 500
"""Bytes of one key of an object in an index, without the key's text: a dict and one entry."""


class UnreadableObject(Struct, frozen=True):
    """An object that exists, but is not in the view. `why` completes the sentence "it …"."""

    why: str


HeldObject: TypeAlias = "JSON | PackedObject | UnreadableObject"
_TOO_LARGE: Final = UnreadableObject("is too large for --view-memory")


class _NamespaceObjects:
    """The objects of one namespace, in lists that are sorted by name and change in place.

    Readers use only `by_name`, `objects`, `by_key` and `unreadable`, one at a time. Each table is always consistent.
    `unreadable` has the UnreadableObjects of `by_name`.
    """

    __slots__ = ("_listed", "by_key", "by_name", "changes", "names", "objects", "sizes", "unreadable")

    def __init__(self) -> None:
        self.by_name: dict[str, HeldObject] = {}
        self.by_key: dict[tuple[Index, str], dict[str, JSON]] = {}
        self.names: list[str] = []
        self.objects: list[HeldObject] = []
        self.sizes = array("q")
        self.unreadable: dict[str, UnreadableObject] = {}
        self.changes = 0
        self._listed: tuple[int, Sequence[JSON]] | None = None

    def put(self, name: str, obj: HeldObject, size: int, keys: Iterable[_Key] = ()) -> int:
        """Add or replace an object. Return the additional bytes."""
        place, before = self._place_of_name(name), 0
        for key in keys:
            self.by_key.setdefault(key, {})[name] = obj
        is_held = place < len(self.names) and self.names[place] == name
        if isinstance(obj, UnreadableObject):
            self.unreadable[name] = obj  # added first: a reader that misses the object must see the note
        self.by_name[name] = obj
        if is_held:
            before = self.sizes[place]
            self.objects[place], self.sizes[place] = obj, size
            if not isinstance(obj, UnreadableObject):
                self.unreadable.pop(name, None)
        else:
            self.names.insert(place, name)
            self.objects.insert(place, obj)
            self.sizes.insert(place, size)
        self._note_change()
        return size - before

    def drop_keys(self, name: str, keys: Iterable[_Key]) -> None:
        for key in keys:
            by_name = self.by_key.get(key, {})
            by_name.pop(name, None)
            if not by_name:
                self.by_key.pop(key, None)

    def drop(self, name: str) -> int:
        """Remove an object. Return its bytes."""
        if name not in self.by_name:
            return 0
        place = self._place_of_name(name)
        del self.by_name[name]
        del self.names[place]
        del self.objects[place]
        self.unreadable.pop(name, None)
        self._note_change()
        return self.sizes.pop(place)

    def _note_change(self) -> None:
        self.changes += 1
        self._listed = None  # otherwise a deleted object would stay in memory until the next list

    def _place_of_name(self, name: str) -> int:
        names = self.names
        return len(names) if not names or names[-1] < name else bisect_left(names, name)

    def size_of_name(self, name: str) -> int:
        return self.sizes[self._place_of_name(name)]

    def list_indexed(self, index: Index, key: str) -> Sequence[JSON]:
        if index == BY_NAME:
            obj = self.by_name.get(key)
            return () if obj is None else readable_list((obj,))
        return readable_list(tuple(self.by_key.get((index, key), {}).values()))

    def list(self) -> Sequence[JSON]:
        """Return the objects by name: the same tuple until the next change."""
        version, cached = self.changes, self._listed  # read before the objects, to notice a change meanwhile
        if cached is None or cached[0] != version:
            cached = self._listed = version, readable_list(tuple(self.objects))
        return cached[1]


_NONE: Final = _NamespaceObjects()


class ObjectStore:
    """Objects by place.

    Attributes:
        changes: the number of changes.
        is_listed: the first list is complete, so a missing object does not exist.
        unreadable_count: existing objects that are too large or unreadable for the view.
        not_held: the namespaces with dropped objects, because the view was full; "" means cluster-scoped objects.
    """

    __slots__ = (
        *("_are_namespaces", "_listed", "_listing", "_listing_bytes", "_listing_not_held", "_memory"),
        *("_indexes", "_namespaces", "changes", "not_held", "unreadable_count"),
    )

    def __init__(
        self, memory: ViewMemory | None = None, indexes: Iterable[Index] = (), *, are_namespaces: bool = False
    ) -> None:
        """Begin without objects.

        Args:
            memory: counts the bytes of all watches of the view.
            indexes: the indexes, in addition to the index by name.
            are_namespaces: the objects are Namespaces, and their bytes count for the namespace of their name.
        """
        self.not_held: frozenset[str] = frozenset()
        self.changes = 0
        self.unreadable_count = 0
        self._are_namespaces = are_namespaces
        self._indexes = tuple(indexes)
        self._memory = memory or ViewMemory()
        self._namespaces: dict[str, _NamespaceObjects] | None = None
        self._listed: tuple[int, Sequence[JSON]] | None = None
        self._listing: dict[str, _NamespaceObjects] | None = None
        self._listing_bytes: dict[str, int] = {}
        self._listing_not_held: set[str] = set()

    # ---- for readers

    @property
    def is_listed(self) -> bool:
        """Return whether the first list is complete."""
        return self._namespaces is not None

    def get(self, place: Place) -> HeldObject | None:
        """Return an object; None if it does not exist, or if its namespace is not in the view."""
        in_namespace = (self._namespaces or {}).get(place[0])
        return None if in_namespace is None else in_namespace.by_name.get(place[1])

    def list(self, namespace: str | None) -> Sequence[JSON]:
        """Return the sorted objects of a namespace (None: of all); the same tuple until the next change."""
        namespaces = self._namespaces or {}
        if namespace is not None:
            return namespaces.get(namespace, _NONE).list()
        version, cached = self.changes, self._listed
        if cached is None or cached[0] != version:
            parts = (tuple(namespaces.get(name, _NONE).objects) for name in sorted(namespaces))
            cached = self._listed = version, readable_list(tuple(chain.from_iterable(parts)))
        return cached[1]

    def list_indexed(self, namespace: str | None, index: Index, key: str) -> Sequence[JSON]:
        """Return the objects that an index has under a key in a namespace (None: in all), unsorted."""
        namespaces = self._namespaces or {}
        if namespace is not None:
            return namespaces.get(namespace, _NONE).list_indexed(index, key)
        return [obj for in_namespace in tuple(namespaces.values()) for obj in in_namespace.list_indexed(index, key)]

    def unreadable_objects(self, namespace: str | None, max_count: int) -> Sequence[tuple[Place, UnreadableObject]]:
        """Return at most `max_count` UnreadableObjects of a namespace (None: of all).

        The number is bounded, because users may create any number, and probes call this method on the event loop.
        """
        namespaces, chosen = self._namespaces or {}, list[tuple[Place, UnreadableObject]]()
        names = () if not self.unreadable_count else tuple(namespaces) if namespace is None else (namespace,)
        for each in names:
            if len(chosen) < max_count and (unreadable := namespaces.get(each, _NONE).unreadable):
                some = tuple(islice(unreadable.items(), max_count - len(chosen)))
                chosen += (((each, name), obj) for name, obj in some)
        return chosen

    # ---- a new list of all objects

    def begin_list(self) -> None:
        """Begin a list that replaces all objects at `end_list`."""
        with self._memory.lock:
            self._forget_listing()
            self._listing, self._listing_not_held = {}, set()

    def add_listed(self, place: Place, obj: HeldObject) -> None:
        assert self._listing is not None
        namespace, name = place
        if self._owner(place) in self._listing_not_held and not self._are_namespaces:
            return
        kept, keys, size = self._measure(place, obj)
        with self._memory.lock:
            in_namespace = self._listing.setdefault(namespace, _NamespaceObjects())
            is_new = kept is not self.get(place)  # otherwise the bytes of the object are counted already
            listed = in_namespace.by_name.get(name)
            was_new = name in in_namespace.by_name and listed is not self.get(place)  # a page was read twice
            before = in_namespace.size_of_name(name) if was_new else 0
            in_namespace.drop_keys(name, self._keys(in_namespace.by_name.get(name)))
            in_namespace.put(name, kept, size, keys)
            self._count_listed(self._owner(place), (size if is_new else 0) - before)

    def end_list(self) -> None:
        """Replace all objects by the objects of the list."""
        assert self._listing is not None
        with self._memory.lock:
            missing = frozenset(self._listing_not_held)
            self.not_held |= missing  # first: no lookup may report a dropped object as absent
            before, listed = self._namespaces or {}, self._listing
            for namespace, objects_before in before.items():
                now = listed.get(namespace)
                if (
                    now is not None
                    and now.names == objects_before.names
                    and all(map(is_, now.objects, objects_before.objects))
                ):
                    listed[namespace] = objects_before  # lookups return the same tuple as before
            unreadable = sum(len(objects_before.unreadable) for objects_before in listed.values())
            self.unreadable_count = max(self.unreadable_count, unreadable)  # first: a reader must not miss an object
            self._namespaces, self._listing, self._listing_bytes = listed, None, {}
            self.unreadable_count, self.not_held = unreadable, missing
            self._note_change()
            for namespace, objects_before in before.items():
                now = listed.get(namespace, _NONE)
                if now is not objects_before:
                    self._uncount_replaced(namespace, objects_before, now)

    def _uncount_replaced(self, namespace: str, before: _NamespaceObjects, now: _NamespaceObjects) -> None:
        gone: dict[str, int] = {}
        for name, obj, size in zip(before.names, before.objects, before.sizes, strict=True):
            if now.by_name.get(name) is not obj:
                owner = self._owner((namespace, name))
                gone[owner] = gone.get(owner, 0) + size
        for owner, size in gone.items():
            self._memory.add_bytes(self, owner, -size)

    def _count_listed(self, owner: str, size: int) -> None:
        # the caller holds the lock
        # a full view may drop a namespace here, also `owner`
        self._listing_bytes[owner] = self._listing_bytes.get(owner, 0) + size
        self._memory.add_bytes(self, owner, size)

    def _forget_listing(self) -> None:
        # the caller holds the lock
        sizes, self._listing_bytes = self._listing_bytes, {}
        for owner, size in sizes.items():
            self._memory.add_bytes(self, owner, -size)

    # ---- single changes

    def put(self, place: Place, obj: HeldObject) -> None:
        assert self._namespaces is not None
        kept, keys, size = self._measure(place, obj)
        if kept is self.get(place):
            return
        with self._memory.lock:
            namespace, name = place
            if self._owner(place) in self.not_held and not self._are_namespaces:
                return
            if namespace not in self._namespaces:
                self._namespaces[namespace] = _NamespaceObjects()
            in_namespace = self._namespaces[namespace]
            was_unreadable = isinstance(in_namespace.by_name.get(name), UnreadableObject)
            self.unreadable_count += isinstance(kept, UnreadableObject)
            gone = set(self._keys(in_namespace.by_name.get(name))).difference(keys)
            more = in_namespace.put(name, kept, size, keys)
            in_namespace.drop_keys(name, gone)
            self.unreadable_count -= was_unreadable
            self._note_change()
            self._memory.add_bytes(self, self._owner(place), more)

    def drop(self, place: Place) -> None:
        assert self._namespaces is not None
        with self._memory.lock:
            in_namespace = self._namespaces.get(place[0])
            if in_namespace is None or place[1] not in in_namespace.by_name:
                return
            was_unreadable = isinstance(in_namespace.by_name[place[1]], UnreadableObject)
            in_namespace.drop_keys(place[1], self._keys(in_namespace.by_name[place[1]]))
            size = in_namespace.drop(place[1])
            self.unreadable_count -= was_unreadable
            if not in_namespace.names:
                del self._namespaces[place[0]]
            self._note_change()
            self._memory.add_bytes(self, self._owner(place), -size)

    def _measure(self, place: Place, obj: HeldObject) -> tuple[HeldObject, Sequence[_Key], int]:
        """Return the object, its keys and its bytes. An equal stored object replaces the given object.

        If the keys cannot be computed, an UnreadableObject replaces the object.
        """
        kept = self.reuse_equal_object(place, obj)
        try:
            keys = self._keys(kept)
        except Exception as error:  # noqa: BLE001 - users choose the content of the object
            kept, keys = UnreadableObject(f"cannot be indexed: {error!r}"), ()
        size = kept.memory_bytes if isinstance(kept, PackedObject) else bytes_of_object(kept, self._memory.keys)
        return kept, keys, size + sum(_KEY_BYTES + len(key) for _, key in keys)

    def _keys(self, obj: HeldObject | None) -> Sequence[_Key]:
        if obj is None or isinstance(obj, UnreadableObject) or not self._indexes:
            return ()
        obj = obj.read() if isinstance(obj, PackedObject) else obj
        return [(index, key) for index in self._indexes for key in index.keys(obj)]

    def reuse_equal_object(self, place: Place, obj: HeldObject) -> HeldObject:
        """Return the stored object if it equals `obj`; otherwise `obj`."""
        stored = self.get(place)
        return stored if stored is not None and _is_same_json(stored, obj) else obj

    def clear(self) -> None:
        """Remove all objects. Afterwards, a missing object may exist."""
        with self._memory.lock:
            self._memory.forget_all(self)
            self._namespaces, self.not_held, self._listing_bytes = None, frozenset(), {}
            self.unreadable_count = 0
            self._note_change()

    def stop_counting_memory(self) -> None:
        """Subtract the objects from the view's memory after the watch has ended. Reviews may still read the objects."""
        with self._memory.lock:
            self._memory.forget_all(self)
            self._listing_bytes = {}
        self._memory = ViewMemory()

    def drop_namespace(self, namespace: str) -> None:
        """Drop the objects of a namespace, so that their lookups fail. The caller holds the lock."""
        if self._are_namespaces:
            self._drop_namespace_object(namespace)
        else:
            if self._listing is not None:
                self._listing_not_held.add(namespace)
                self._listing.pop(namespace, None)
            self.not_held |= {namespace}  # first: no lookup may report a dropped object as absent
            if self._namespaces is not None and (in_namespace := self._namespaces.pop(namespace, None)) is not None:
                self.unreadable_count -= len(in_namespace.unreadable)
        self._listing_bytes.pop(namespace, None)
        self._note_change()

    def _drop_namespace_object(self, name: str) -> None:
        """Replace a Namespace by a note that it exists."""
        for namespaces in (self._listing, self._namespaces):
            cluster_scoped = (namespaces or {}).get("")
            if cluster_scoped is not None and name in cluster_scoped.by_name:
                if namespaces is self._namespaces and not isinstance(cluster_scoped.by_name[name], UnreadableObject):
                    self.unreadable_count += 1
                cluster_scoped.put(name, _TOO_LARGE, 0)

    def _note_change(self) -> None:
        self.changes += 1
        self._listed = None  # otherwise a deleted object would stay in memory until the next list

    @property
    def has_dropped_objects(self) -> bool:
        """Return whether objects were dropped for lack of room. Another list may have room for these objects."""
        names = (self._namespaces or {}).get("", _NONE).unreadable if self._are_namespaces else {}
        return bool(self.not_held) or any(obj is _TOO_LARGE for obj in tuple(names.values()))

    def _owner(self, place: Place) -> str:
        """Return the namespace for which the bytes of an object count."""
        return place[1] if self._are_namespaces else place[0]


def _is_same_json(stored: JSON, obj: JSON) -> bool:
    # CEL distinguishes 1, 1.0 and true, which are equal in Python. Values are compared one by one, because a single
    # call of C, such as `json.dumps`, would block the event loop.
    if type(stored) is not type(obj):
        return False
    if isinstance(stored, PackedObject):
        return bool(stored == obj)
    if isinstance(stored, dict):
        return len(stored) == len(obj) and all(key in obj and _is_same_json(stored[key], obj[key]) for key in stored)
    if isinstance(stored, list):
        return len(stored) == len(obj) and all(map(_is_same_json, stored, obj))
    return (
        repr(stored) == repr(obj) if isinstance(stored, float) else bool(stored == obj)
    )  # CEL distinguishes 0.0 and -0.0
