"""The view of a cluster before the change that the reviewed request asks for.

A created object does not exist yet, and an updated or deleted object is still the `oldObject`. A view differs if it has
the reviewed files themselves, or if a watch is late or early. Group and kind identify a kind, as in every view.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from webhook.apimachinery.attributes import JSON, NAMESPACE, Attributes, GroupVersionKind, Operation
from webhook.cluster.interest import Index
from webhook.cluster.lookup import Cluster
from webhook.cluster.packed import replace_object
from webhook.errors import LookupFailed

_OPERATIONS: Final = frozenset((Operation.CREATE, Operation.UPDATE, Operation.DELETE))


def view_before_request(cluster: Cluster, attributes: Attributes) -> Cluster:
    """Return the view as it was before a request: the same view, unless it shows the change already."""
    if attributes.operation not in _OPERATIONS:
        return cluster
    kind, name = attributes.kind, attributes.name
    namespace = "" if kind == NAMESPACE else attributes.namespace
    try:
        held = cluster.get(kind, namespace, name)
    except LookupFailed:  # the view does not have objects of this kind, or not yet
        return cluster
    old = None if attributes.operation is Operation.CREATE else attributes.old_object
    if (held is None and old is None) or _is_part_of_object(held, old):
        return cluster
    return ClusterBeforeChange(cluster, (kind.group, kind.kind), (namespace, name), held, old)


class ClusterBeforeChange:
    """A view in which one object has another value, or does not exist."""

    def __init__(
        self, view: Cluster, kind: tuple[str, str], place: tuple[str, str], held: JSON | None, old: JSON | None
    ) -> None:
        """Args: the view; group and kind, namespace and name of the object; the object in the view, and the true
        object.
        """
        self._view = view
        self._kind = kind
        self._place = place
        self._held = held
        self._old = old

    def get(self, gvk: GroupVersionKind, namespace: str, name: str) -> JSON | None:
        """Return the object as it was before, or one of the view.

        Raises:
            LookupFailed: the view cannot say.
        """
        if (gvk.group, gvk.kind) == self._kind and (namespace, name) == self._place:
            return self._old
        return self._view.get(gvk, namespace, name)

    def list(self, gvk: GroupVersionKind, namespace: str | None, labels: str = "") -> Sequence[JSON]:
        """Return the objects of the view, with the object as it was before the request.

        Raises:
            LookupFailed: the view cannot say.
        """
        listed = self._view.list(gvk, namespace, labels)
        if (gvk.group, gvk.kind) != self._kind or namespace not in (None, self._place[0]):
            return listed
        return replace_object(listed, self._place, self._held, self._old)

    def list_indexed(self, gvk: GroupVersionKind, namespace: str | None, index: Index, key: str) -> Sequence[JSON]:
        """Return the objects of a key of an index, with the object as it was before the request.

        Raises:
            LookupFailed: the view cannot say.
        """
        matching = self._view.list_indexed(gvk, namespace, index, key)
        if (gvk.group, gvk.kind) != self._kind or namespace not in (None, self._place[0]):
            return matching
        has_key = self._old is not None and key in index.keys(self._old)
        return replace_object(matching, self._place, self._held, self._old if has_key else None)

    def is_namespaced(self, gvk: GroupVersionKind) -> bool | None:
        """Return the view's answer.

        Raises:
            LookupFailed: the view cannot say.
        """
        return self._view.is_namespaced(gvk)

    def is_synced(self, gvk: GroupVersionKind) -> bool:
        """Return whether the other view answers lookups of this kind."""
        return self._view.is_synced(gvk)

    def is_whole(self) -> bool:
        """Return whether the other view is whole."""
        return self._view.is_whole()

    def objects_in_other_files(self, gvk: GroupVersionKind) -> Sequence[JSON]:
        """Return objects of other files."""
        return self._view.objects_in_other_files(gvk)

    def file_of_object(self, obj: JSON) -> str:
        """Return the view's file of an object."""
        return self._view.file_of_object(obj)

    def revision(self, gvk: GroupVersionKind) -> object:
        """Return the view's revision; for the kind of the stored object this view itself, because it never changes."""
        return self if (gvk.group, gvk.kind) == self._kind else self._view.revision(gvk)


def _is_part_of_object(held: JSON | None, old: JSON | None) -> bool:
    """Return whether the held object is a part of the old one, because a view keeps only fields that are read."""
    if held is None or old is None:
        return held is old
    if isinstance(held, dict) and isinstance(old, dict):
        return all(name in old and _is_part_of_object(each, old[name]) for name, each in held.items())
    return bool(held == old)
