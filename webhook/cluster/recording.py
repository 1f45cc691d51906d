"""A view of the cluster that records the lookups and their results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.cluster.interest import Index
from webhook.cluster.lookup import Cluster, ClusterOverView, namespace_and_name
from webhook.errors import LookupFailed

Found = tuple[GroupVersionKind, str, str]
"""An object's kind, namespace and name."""


class RecordingCluster(ClusterOverView):
    """Answers from another view, and records the lookups. Raises the LookupFailed of the other view.

    Attributes:
        objects: the existing objects, by kind, namespace and name.
        counts: the number of objects of each listed kind.
        failures: the kinds that could not be read, each with the reason.
    """

    def __init__(self, view: Cluster) -> None:
        super().__init__(view)
        self.objects: Final[dict[Found, JSON]] = {}
        self.counts: Final[dict[GroupVersionKind, int]] = {}
        self.failures: Final[dict[GroupVersionKind, str]] = {}
        self._lists: Final[dict[tuple[GroupVersionKind, str | None], Sequence[JSON]]] = {}

    def get(self, gvk: GroupVersionKind, namespace: str, name: str) -> JSON | None:
        try:
            obj = self._view.get(gvk, namespace, name)
        except LookupFailed as failure:
            self.failures[gvk] = str(failure)
            raise
        if obj is not None:
            self.objects[gvk, namespace, name] = obj
        return obj

    def list(self, gvk: GroupVersionKind, namespace: str | None, labels: str = "") -> Sequence[JSON]:
        try:
            objects = self._view.list(gvk, namespace, labels)
        except LookupFailed as failure:
            self.failures[gvk] = str(failure)
            raise
        self.counts[gvk] = max(len(objects), self.counts.get(gvk, 0))
        self._lists[gvk, namespace] = objects
        return objects

    def list_indexed(self, gvk: GroupVersionKind, namespace: str | None, index: Index, key: str) -> Sequence[JSON]:
        try:
            matching = self._view.list_indexed(gvk, namespace, index, key)
        except LookupFailed as failure:
            self.failures[gvk] = str(failure)
            raise
        for obj in matching:
            object_namespace, name = namespace_and_name(obj)
            self.objects[gvk, object_namespace or namespace or "", name] = obj
        return matching

    def recorded_objects(self) -> Iterator[tuple[GroupVersionKind, str, JSON]]:
        """Yield each recorded object once, with its namespace, by kind, namespace and name."""
        objects_by_place: dict[Found, JSON] = {}
        for (gvk, listed_namespace), objects in self._lists.items():
            for obj in objects:
                namespace, name = namespace_and_name(obj)
                objects_by_place[gvk, namespace or listed_namespace or "", name] = obj
        objects_by_place.update(self.objects)
        for gvk, namespace, name in sorted(objects_by_place, key=lambda key: (key[0].kind, key[0].group, *key[1:])):
            yield gvk, namespace, objects_by_place[gvk, namespace, name]
