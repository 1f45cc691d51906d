"""Combines two views: objects of files over a live cluster, or a cluster over the shipped parameters."""

from __future__ import annotations

from collections.abc import Sequence

from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.cluster.interest import Index
from webhook.cluster.lookup import Cluster, namespace_and_name


class LayeredCluster:
    """Looks up in the first view, then in the other; objects of the first replace those of the same name."""

    def __init__(self, first: Cluster, then: Cluster) -> None:
        self._first = first
        self._then = then

    def get(self, gvk: GroupVersionKind, namespace: str, name: str) -> JSON | None:
        """Return the object of the first view, else of the other.

        Raises:
            LookupFailed: the view that had to answer cannot say.
        """
        obj = self._first.get(gvk, namespace, name)
        return self._then.get(gvk, namespace, name) if obj is None else obj

    def list(self, gvk: GroupVersionKind, namespace: str | None, labels: str = "") -> Sequence[JSON]:
        """Return the objects of both views, by namespace and name.

        Raises:
            LookupFailed: one of the views cannot say.
        """
        below, above = self._then.list(gvk, namespace, labels), self._first.list(gvk, namespace, labels)
        if not below or not above:  # mostly: then nothing is walked
            return above or below
        merged = {namespace_and_name(obj): obj for obj in (*below, *above)}
        return [obj for _, obj in sorted(merged.items(), key=lambda item: item[0])]

    def list_indexed(self, gvk: GroupVersionKind, namespace: str | None, index: Index, key: str) -> Sequence[JSON]:
        """Return the objects of both views that an index has under a key.

        Raises:
            LookupFailed: one of the views cannot say.
        """
        below = self._then.list_indexed(gvk, namespace, index, key)
        above = self._first.list_indexed(gvk, namespace, index, key)
        hidden = {namespace_and_name(obj) for obj in self._first.list(gvk, namespace)} if below else None
        kept = [obj for obj in below if namespace_and_name(obj) not in hidden] if hidden else below
        return (*above, *kept) if above else kept

    def is_namespaced(self, gvk: GroupVersionKind) -> bool | None:
        """Return whether objects of a kind have namespaces in either view; None if neither knows.

        Raises:
            LookupFailed: one of the views cannot say.
        """
        known = self._then.is_namespaced(gvk), self._first.is_namespaced(gvk)
        return None if known == (None, None) else True in known

    def is_synced(self, gvk: GroupVersionKind) -> bool:
        """Return whether both views answer lookups of this kind."""
        return self._first.is_synced(gvk) and self._then.is_synced(gvk)

    def revision(self, gvk: GroupVersionKind) -> object:
        """Return the revisions of both views."""
        return self._first.revision(gvk), self._then.revision(gvk)

    def is_whole(self) -> bool:
        """Return whether one of the two views is whole."""
        return self._first.is_whole() or self._then.is_whole()

    def objects_in_other_files(self, gvk: GroupVersionKind) -> Sequence[JSON]:
        """Return the objects of other files of both views."""
        return (*self._first.objects_in_other_files(gvk), *self._then.objects_in_other_files(gvk))

    def file_of_object(self, obj: JSON) -> str:
        """Return the file of an object, from the view that has it."""
        return self._first.file_of_object(obj) or self._then.file_of_object(obj)
