"""Views of the cluster on top of another view. A view shows files over a live cluster, namespaces that are assumed to
exist, or the cluster before the reviewed request. All views raise LookupFailed if the view that has to answer does not
know the answer.

NamespaceLifecycle refuses requests into a missing namespace before any webhook is called (k8s.io/apiserver v1.36
pkg/admission/plugin/namespace/lifecycle). So a namespace that no file has is assumed, with only its standard label.

Before a request, a created object does not exist yet, and an updated or deleted object is still the `oldObject`. A view
shows another state if it contains the reviewed files, or if its watch is ahead or behind. Kinds are compared by group
and kind, without the version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from webhook.apimachinery.attributes import JSON, NAME_LABEL, NAMESPACE, Attributes, GroupVersionKind, Operation
from webhook.cluster.interest import Index
from webhook.cluster.lookup import Cluster, ClusterOverView, namespace_and_name
from webhook.cluster.packed import replace_object
from webhook.errors import LookupFailed


class LayeredCluster:
    """Looks up an object in the first view, then in the second view."""

    def __init__(self, first: Cluster, then: Cluster) -> None:
        self._first = first
        self._then = then

    def get(self, gvk: GroupVersionKind, namespace: str, name: str) -> JSON | None:
        """Return the object of the first view. If the first view has no such object, return the object of the second
        view.
        """
        obj = self._first.get(gvk, namespace, name)
        return self._then.get(gvk, namespace, name) if obj is None else obj

    def list(self, gvk: GroupVersionKind, namespace: str | None, labels: str = "") -> Sequence[JSON]:
        """Return the objects of both views, by namespace and name."""
        below, above = self._then.list(gvk, namespace, labels), self._first.list(gvk, namespace, labels)
        if not below or not above:  # usually one list is empty
            return above or below
        merged = {namespace_and_name(obj): obj for obj in (*below, *above)}
        return [obj for _, obj in sorted(merged.items(), key=lambda item: item[0])]

    def list_indexed(self, gvk: GroupVersionKind, namespace: str | None, index: Index, key: str) -> Sequence[JSON]:
        """Return the objects of both views that an index has under a key."""
        below = self._then.list_indexed(gvk, namespace, index, key)
        above = self._first.list_indexed(gvk, namespace, index, key)
        hidden = {namespace_and_name(obj) for obj in self._first.list(gvk, namespace)} if below else None
        visible = [obj for obj in below if namespace_and_name(obj) not in hidden] if hidden else below
        return (*above, *visible) if above else visible

    def is_namespaced(self, gvk: GroupVersionKind) -> bool | None:
        """Return whether objects of a kind have namespaces in either view; None if neither view knows."""
        answers = self._then.is_namespaced(gvk), self._first.is_namespaced(gvk)
        return None if answers == (None, None) else True in answers

    def is_synced(self, gvk: GroupVersionKind) -> bool:
        return self._first.is_synced(gvk) and self._then.is_synced(gvk)

    def revision(self, gvk: GroupVersionKind) -> object:
        return self._first.revision(gvk), self._then.revision(gvk)

    def is_whole(self) -> bool:
        """Return whether one of the views certainly has all objects of the cluster."""
        return self._first.is_whole() or self._then.is_whole()

    def objects_in_other_files(self, gvk: GroupVersionKind) -> Sequence[JSON]:
        return (*self._first.objects_in_other_files(gvk), *self._then.objects_in_other_files(gvk))

    def file_of_object(self, obj: JSON) -> str:
        """Return the file of an object, from the view that has it."""
        return self._first.file_of_object(obj) or self._then.file_of_object(obj)


_NAMESPACE: Final = ("", "Namespace")


class AssumedNamespace(dict[str, JSON]):
    """A Namespace that is assumed to exist; only the name is known."""

    __slots__ = ()


class ClusterWithAssumedNamespaces(ClusterOverView):
    """A view with a Namespace for every name. Namespaces in `known` replace Namespaces of the view.

    Assumed namespaces cannot be listed.
    """

    def __init__(self, view: Cluster, known: Mapping[str, JSON] | None = None) -> None:
        super().__init__(view)
        self._known: Mapping[str, JSON] = {} if known is None else known

    def get(self, gvk: GroupVersionKind, namespace: str, name: str) -> JSON | None:
        """Return the object of the view, or an assumed Namespace with the name."""
        is_namespace = (gvk.group, gvk.kind) == _NAMESPACE
        obj = self._known.get(name) if is_namespace else None
        if obj is None:
            obj = self._view.get(gvk, namespace, name)
        if obj is None and is_namespace:
            labels = {NAME_LABEL: name}
            return AssumedNamespace(apiVersion="v1", kind="Namespace", metadata={"name": name, "labels": labels})
        return obj


_OPERATIONS: Final = frozenset((Operation.CREATE, Operation.UPDATE, Operation.DELETE))


def view_before_request(cluster: Cluster, attributes: Attributes) -> Cluster:
    """Return the view as it was before a request. If the view does not show the change, return the view itself."""
    if attributes.operation not in _OPERATIONS:
        return cluster
    kind, name = attributes.kind, attributes.name
    namespace = "" if kind == NAMESPACE else attributes.namespace
    try:
        current = cluster.get(kind, namespace, name)
    except LookupFailed:  # the view has no objects of this kind yet
        return cluster
    old = None if attributes.operation is Operation.CREATE else attributes.old_object
    if (current is None and old is None) or _is_part_of_object(current, old):
        return cluster
    return ClusterBeforeChange(cluster, (kind.group, kind.kind), (namespace, name), current, old)


class ClusterBeforeChange(ClusterOverView):
    """A view in which one object has another value, or does not exist."""

    def __init__(
        self, view: Cluster, kind: tuple[str, str], place: tuple[str, str], current: JSON | None, old: JSON | None
    ) -> None:
        """`current` is the object in the view, and `old` is the object before the request."""
        super().__init__(view)
        self._kind = kind
        self._place = place
        self._current = current
        self._old = old

    def get(self, gvk: GroupVersionKind, namespace: str, name: str) -> JSON | None:
        """Return the object before the request, or another object of the view."""
        if (gvk.group, gvk.kind) == self._kind and (namespace, name) == self._place:
            return self._old
        return self._view.get(gvk, namespace, name)

    def list(self, gvk: GroupVersionKind, namespace: str | None, labels: str = "") -> Sequence[JSON]:
        """Return the objects of the view, with the changed object in its state before the request."""
        objects = self._view.list(gvk, namespace, labels)
        if (gvk.group, gvk.kind) != self._kind or namespace not in (None, self._place[0]):
            return objects
        return replace_object(objects, self._place, self._current, self._old)

    def list_indexed(self, gvk: GroupVersionKind, namespace: str | None, index: Index, key: str) -> Sequence[JSON]:
        """Return the objects that an index has under a key, with the changed object in its state before the request."""
        matching = self._view.list_indexed(gvk, namespace, index, key)
        if (gvk.group, gvk.kind) != self._kind or namespace not in (None, self._place[0]):
            return matching
        has_key = self._old is not None and key in index.keys(self._old)
        return replace_object(matching, self._place, self._current, self._old if has_key else None)

    def revision(self, gvk: GroupVersionKind) -> object:
        """Return the view's revision. For the kind of the changed object, return this view, which never changes."""
        return self if (gvk.group, gvk.kind) == self._kind else self._view.revision(gvk)


def _is_part_of_object(current: JSON | None, old: JSON | None) -> bool:
    # a view keeps only the fields that are read, so the kept object can lack fields of `old`
    if current is None or old is None:
        return current is old
    if isinstance(current, dict) and isinstance(old, dict):
        return all(name in old and _is_part_of_object(each, old[name]) for name, each in current.items())
    return bool(current == old)
