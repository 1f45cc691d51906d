"""The objects of one watch: its thread writes them, any thread reads them.

No reader waits: every step is one assignment or one change of a dict, so a process that is forked at any moment, from
any thread, has a readable view. An object that did not change in what is kept of it stays the same one, and so does the
list of them all: the heartbeats of 5,000 objects cost no review anything. Threads of other watches write here, too,
when the view is full (view_memory.py); writers wait for each other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from webhook.attributes import JSON
from webhook.cluster.view_memory import ViewMemory, bytes_of_object

Place: TypeAlias = tuple[str, str]
"""Namespace, "" for a cluster-scoped object, and name."""


class ObjectStore:
    """Objects by place; `objects` is None until they were listed. `changes` counts the changes.

    Attributes:
        not_held: the namespaces whose objects exist and are not held, because they are too large together.
    """

    __slots__ = ("_listed", "_listing", "_listing_not_held", "_memory", "changes", "not_held", "objects")

    def __init__(self, memory: ViewMemory | None = None) -> None:
        self.objects: dict[Place, JSON] | None = None
        self.not_held: frozenset[str] = frozenset()
        self.changes = 0
        self._memory = memory or ViewMemory()
        self._listed: tuple[int, Mapping[str | None, Sequence[JSON]]] | None = None
        self._listing: dict[Place, JSON] | None = None
        self._listing_not_held: set[str] = set()

    def reuse_equal_object(self, place: Place, obj: JSON) -> JSON:
        """Return the stored object if it equals this one, else this one."""
        held = (self.objects or {}).get(place)
        return held if held is not None and _is_same_json(held, obj) else obj

    # ---- a new list of all objects

    def begin_list(self) -> None:
        """Begin with a list that will replace all objects; the present ones answer until `end_list`."""
        with self._memory.lock:
            self._memory.forget_all(self)
            self._listing, self._listing_not_held = {}, set()

    def add_listed(self, place: Place, obj: JSON) -> None:
        """Add an object to the list."""
        assert self._listing is not None
        namespace = place[0]
        if namespace in self._listing_not_held:
            return
        kept = self.reuse_equal_object(place, obj)
        size = bytes_of_object(kept)
        with self._memory.lock:
            if (again := self._listing.get(place)) is not None:  # a page that was read twice
                size -= bytes_of_object(again)
            self._listing[place] = kept
            self._memory.add_bytes(self, namespace, size)

    def end_list(self) -> None:
        """Replace all objects by those of the list."""
        assert self._listing is not None
        with self._memory.lock:
            missing = frozenset(self._listing_not_held)
            self.not_held |= missing  # first: nobody may take for absent what is not held
            self.objects, self._listing = self._listing, None
            self.not_held = missing
            self.changes += 1

    # ---- single changes

    def put(self, place: Place, obj: JSON) -> None:
        """Add an object, or replace the one of its name."""
        assert self.objects is not None
        kept, held = self.reuse_equal_object(place, obj), self.objects.get(place)
        if kept is held:
            return
        size = bytes_of_object(kept) - (bytes_of_object(held) if held is not None else 0)
        with self._memory.lock:
            if place[0] in self.not_held:
                return
            self.objects[place] = kept
            self.changes += 1
            self._memory.add_bytes(self, place[0], size)

    def drop(self, place: Place) -> None:
        """Remove an object."""
        assert self.objects is not None
        with self._memory.lock:
            if (held := self.objects.pop(place, None)) is not None:
                self.changes += 1
                self._memory.add_bytes(self, place[0], -bytes_of_object(held))

    def clear(self) -> None:
        """Remove all objects, of which nobody knows anything any more."""
        with self._memory.lock:
            self._memory.forget_all(self)
            self.objects, self.not_held = None, frozenset()
            self.changes += 1

    def stop_counting_memory(self) -> None:
        """Take the objects out of the view's count of memory: the watch has ended, reviews may still read them."""
        with self._memory.lock:
            self._memory.forget_all(self)
        self._memory = ViewMemory()

    def drop_namespace(self, namespace: str) -> None:
        """Drop the objects of a namespace, and answer from now on that they are not held."""
        if self._listing is not None:
            self._listing_not_held.add(namespace)
            self._listing = _without_namespace(self._listing, namespace)
        self.not_held |= {namespace}  # first: nobody may take for absent what is not held
        if self.objects is not None:
            self.objects = _without_namespace(self.objects, namespace)
        self.changes += 1

    def list(self, namespace: str | None) -> Sequence[JSON]:
        """Return the objects of a namespace or of all, by namespace and name; the same tuple until the next change."""
        version, listed = self.changes, self._listed  # the version first: what changes meanwhile is listed again
        if listed is None or listed[0] != version:
            listed = self._listed = version, objects_by_namespace(dict(self.objects or {}))
        return listed[1].get(namespace, ())


def _without_namespace(objects: dict[Place, JSON], namespace: str) -> dict[Place, JSON]:
    return {place: obj for place, obj in objects.items() if place[0] != namespace}


def _is_same_json(held: JSON, obj: JSON) -> bool:
    """Return whether two objects have the same values; to Python 1, 1.0 and true are equal, to CEL they are not."""
    return bool(held == obj) and json.dumps(held, default=repr) == json.dumps(obj, default=repr)


def objects_by_namespace(objects: Mapping[Place, JSON]) -> Mapping[str | None, Sequence[JSON]]:
    """Return the objects of each namespace, and under None of all, by namespace and name."""
    places = sorted(objects)
    spaces: dict[str | None, list[JSON]] = {}
    for place in places:
        spaces.setdefault(place[0], []).append(objects[place])
    return {None: tuple(objects[place] for place in places), **{key: tuple(each) for key, each in spaces.items()}}
