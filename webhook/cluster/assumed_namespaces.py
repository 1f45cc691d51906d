"""A cluster view of files in which the namespaces of requests exist, as they must in a cluster that asks.

NamespaceLifecycle refuses requests into a namespace that is not there before any webhook is asked (k8s.io/apiserver
v1.36 pkg/admission/plugin/namespace/lifecycle). What files say of a namespace counts; one that they do not have carries
only the label that every namespace has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from webhook.attributes import JSON, NAME_LABEL, GroupVersionKind
from webhook.cluster import Cluster

_NAMESPACE: Final = ("", "Namespace")


class AssumedNamespaces:
    """A view of the cluster that has every namespace, and everything else from another view."""

    def __init__(self, view: Cluster) -> None:
        self._view = view

    def get(self, gvk: GroupVersionKind, namespace: str, name: str) -> JSON | None:
        """The object of the view, or a namespace with its name."""
        held = self._view.get(gvk, namespace, name)
        if held is None and (gvk.group, gvk.kind) == _NAMESPACE:
            labels = {NAME_LABEL: name}
            return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        return held

    def list(self, gvk: GroupVersionKind, namespace: str | None, labels: str = "") -> Sequence[JSON]:
        """What the view has: nobody can list what is assumed."""
        return self._view.list(gvk, namespace, labels)

    def is_namespaced(self, gvk: GroupVersionKind) -> bool | None:
        """Whether objects of a kind have namespaces, as the other view says."""
        return self._view.is_namespaced(gvk)

    def synced(self, gvk: GroupVersionKind) -> bool:
        """Whether the other view answers lookups of this kind."""
        return self._view.synced(gvk)

    def revision(self, gvk: GroupVersionKind) -> object:
        """The revision of the other view."""
        return self._view.revision(gvk)

    def is_whole(self) -> bool:
        """Whether the other view is whole, apart from namespaces."""
        return self._view.is_whole()

    def place(self, obj: JSON) -> str:
        """The file of an object, as the other view says."""
        return self._view.place(obj)
