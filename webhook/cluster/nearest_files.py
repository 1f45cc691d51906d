"""A view of files in which a name that several files define means the object of the nearest file.

Folders of examples use one name for many objects, and a person applies each example by itself: a Job means the
LocalQueue of its own file, else of its own folder, else of the nearest folder above.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Final, TypeAlias

from webhook.attributes import JSON, GroupVersionKind
from webhook.cluster.files import identity
from webhook.cluster.lookup import Cluster

Kind: TypeAlias = tuple[str, str]
Place: TypeAlias = tuple[str, str]
Nearest: TypeAlias = Mapping[PurePath, JSON]
"""The first object of one name in each file, and below each folder."""


class RepeatedObjects:
    """The names that stand for different objects in different files, by kind, namespace and name."""

    def __init__(self, objects: Iterable[tuple[str, JSON]]) -> None:
        """Take each object with its file, in the order of the view."""
        named: dict[Kind, dict[Place, dict[PurePath, JSON]]] = {}
        for source, obj in objects:
            kind, place = identity(obj)
            nearest = named.setdefault(kind, {}).setdefault(place, {})
            for path in _upwards(source):
                nearest.setdefault(path, obj)
        self.kinds: Final = {kind: kept for kind, places in named.items() if (kept := _repeated(places))}


class NearestFiles:
    """A view of files, as one of them means its names."""

    def __init__(self, files: Cluster, repeated: RepeatedObjects, source: str) -> None:
        self._files: Final = files
        self._repeated: Final = repeated.kinds
        self._upwards: Final = _upwards(source)
        self._near: Final[dict[Kind, Mapping[Place, JSON]]] = {}

    def _nearest(self, places: Nearest) -> JSON | None:
        return next((places[path] for path in self._upwards if path in places), None)

    def _near_of(self, kind: Kind) -> Mapping[Place, JSON]:
        if kind not in self._near:
            near = {place: self._nearest(each) for place, each in self._repeated[kind].items()}
            self._near[kind] = {place: obj for place, obj in near.items() if obj is not None}
        return self._near[kind]

    def get(self, gvk: GroupVersionKind, namespace: str, name: str) -> JSON | None:
        """The object of the nearest file."""
        places = self._repeated.get((gvk.group, gvk.kind), {}).get((namespace or "default", name), {})
        near = self._nearest(places)
        return self._files.get(gvk, namespace, name) if near is None else near

    def list(self, gvk: GroupVersionKind, namespace: str | None, labels: str = "") -> Sequence[JSON]:
        """The objects of the view, by namespace and name; of those with one name, the nearest."""
        listed, kind = self._files.list(gvk, namespace, labels), (gvk.group, gvk.kind)
        if kind not in self._repeated:
            return listed
        near = self._near_of(kind)
        return [near.get(identity(obj)[1], obj) for obj in listed]

    def is_namespaced(self, gvk: GroupVersionKind) -> bool | None:
        """As the files say."""
        return self._files.is_namespaced(gvk)

    def synced(self, gvk: GroupVersionKind) -> bool:
        """As the files say."""
        return self._files.synced(gvk)

    def revision(self, gvk: GroupVersionKind) -> object:
        """That of the files, for kinds without repeated names; else this view, which never changes."""
        return self if (gvk.group, gvk.kind) in self._repeated else self._files.revision(gvk)


def _upwards(source: str) -> tuple[PurePath, ...]:
    path = PurePath(source)
    return (path, *path.parents)


def _repeated(places: Mapping[Place, Nearest]) -> Mapping[Place, Nearest]:
    return {place: nearest for place, nearest in places.items() if _differ(nearest)}


def _differ(places: Nearest) -> bool:
    values = iter(places.values())
    first = next(values)
    return any(each is not first and each != first for each in values)
