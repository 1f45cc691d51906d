"""The objects of one watch: its thread writes them, any thread reads them.

No reader waits: every step is one assignment or one change of a dict, so a process that is forked at any moment, from
any thread, has a readable view. An object that did not change in what is kept of it stays the same one, and so does the
list of them all: the heartbeats of 5,000 objects cost no review anything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from webhook.attributes import JSON

Place: TypeAlias = tuple[str, str]
"""Namespace, "" for a cluster-scoped object, and name."""


class ObjectStore:
    """Objects by place; `objects` is None until they were listed. `changes` counts the changes."""

    __slots__ = ("_listed", "changes", "objects")

    def __init__(self) -> None:
        self.objects: dict[Place, JSON] | None = None
        self.changes = 0
        self._listed: tuple[int, Mapping[str | None, Sequence[JSON]]] | None = None

    def known(self, place: Place, obj: JSON) -> JSON:
        """Return the stored object if it equals this one, else this one."""
        held = (self.objects or {}).get(place)
        return held if held is not None and _is_same_json(held, obj) else obj

    def replace(self, objects: dict[Place, JSON] | None) -> None:
        """Replace all objects by these."""
        self.objects = objects
        self.changes += 1

    def put(self, place: Place, obj: JSON) -> None:
        """Add an object, or replace the one of its name."""
        assert self.objects is not None
        if (kept := self.known(place, obj)) is not self.objects.get(place):
            self.objects[place] = kept
            self.changes += 1

    def drop(self, place: Place) -> None:
        """Remove an object."""
        assert self.objects is not None
        if self.objects.pop(place, None) is not None:
            self.changes += 1

    def list(self, namespace: str | None) -> Sequence[JSON]:
        """Return the objects of a namespace or of all, by namespace and name; the same tuple until the next change."""
        version, listed = self.changes, self._listed  # the version first: what changes meanwhile is listed again
        if listed is None or listed[0] != version:
            listed = self._listed = version, objects_by_namespace(dict(self.objects or {}))
        return listed[1].get(namespace, ())


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
