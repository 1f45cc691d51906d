"""The interface for looking up other objects during an evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.apimachinery.names import object_as_text
from webhook.apimachinery.paths import get as at
from webhook.cluster.interest import Index

NOT_SERVED: Final = "not served by the API server; install its CustomResourceDefinition"
"""Why a look-up fails if the API server does not have the kind."""
OMITTED: Final = "claimgate.dev/omitted-bytes"
"""The field of a stub with the size of the object; no field of an API has a slash."""


class Cluster(Protocol):
    """A view of the cluster. Answers come from memory: an evaluation never waits for the network.

    A kind is its group and kind, without the version. Objects are shared and must not be changed. A lookup raises
    LookupFailed if the answer is not known.
    """

    def get(self, gvk: GroupVersionKind, namespace: str, name: str) -> JSON | None:
        """Return the object, or None if the view does not have the object. namespace is "" for cluster-scoped kinds."""
        ...

    def list(self, gvk: GroupVersionKind, namespace: str | None, labels: str = "") -> Sequence[JSON]:
        """Return the objects of a namespace (None: of all), sorted by namespace and name.

        labels is a labelSelector. A view may ignore `labels`, so the caller must select again.
        """
        ...

    def list_indexed(self, gvk: GroupVersionKind, namespace: str | None, index: Index, key: str) -> Sequence[JSON]:
        """Return the objects that an index has under a key in a namespace (None: in all)."""
        ...

    def is_namespaced(self, gvk: GroupVersionKind) -> bool | None:
        """Return whether objects of a kind have namespaces; None if unknown."""
        ...

    def is_synced(self, gvk: GroupVersionKind) -> bool:
        """Return whether lookups of this kind are answered. A live view answers after the first list."""
        ...

    def revision(self, gvk: GroupVersionKind) -> object:
        """Return a value that stays equal while all lookups of this kind have the same answers."""
        ...

    def is_whole(self) -> bool:
        """Return whether the cluster certainly lacks each object that the view lacks.

        True for a live cluster. For files, the user decides.
        """
        ...

    def file_of_object(self, obj: JSON) -> str:
        """Return the file of an object; "" for an object of a live cluster."""
        ...

    def objects_in_other_files(self, gvk: GroupVersionKind) -> Sequence[JSON]:
        """Return objects of other files in the tree, which may be in this cluster; () for a live cluster."""
        ...


class ClusterOverView:
    """A cluster with the answers of another view; a subclass gives other answers to some lookups."""

    def __init__(self, view: Cluster) -> None:
        self._view: Final = view

    def get(self, gvk: GroupVersionKind, namespace: str, name: str) -> JSON | None:
        return self._view.get(gvk, namespace, name)

    def list(self, gvk: GroupVersionKind, namespace: str | None, labels: str = "") -> Sequence[JSON]:
        return self._view.list(gvk, namespace, labels)

    def list_indexed(self, gvk: GroupVersionKind, namespace: str | None, index: Index, key: str) -> Sequence[JSON]:
        return self._view.list_indexed(gvk, namespace, index, key)

    def is_namespaced(self, gvk: GroupVersionKind) -> bool | None:
        return self._view.is_namespaced(gvk)

    def is_synced(self, gvk: GroupVersionKind) -> bool:
        return self._view.is_synced(gvk)

    def revision(self, gvk: GroupVersionKind) -> object:
        return self._view.revision(gvk)

    def is_whole(self) -> bool:
        return self._view.is_whole()

    def file_of_object(self, obj: JSON) -> str:
        return self._view.file_of_object(obj)

    def objects_in_other_files(self, gvk: GroupVersionKind) -> Sequence[JSON]:
        return self._view.objects_in_other_files(gvk)


def namespace_and_name(obj: JSON) -> tuple[str, str]:
    """Return namespace and name of an object, "" if not set; other types become text."""
    namespace, name = at(obj, ("metadata", "namespace"), ""), at(obj, ("metadata", "name"), "")
    if isinstance(namespace, str) and isinstance(name, str):
        return namespace, name
    return str(namespace), str(name)


def describe_lookup(gvk: GroupVersionKind, namespace: str, name: str) -> str:
    """Return a lookup in messages: `ResourceClaimTemplate team-a/x`."""
    return object_as_text(gvk.kind, namespace, name)
