"""A view of files in which all namespaces exist, as the namespaces of requests do in a cluster.

NamespaceLifecycle refuses requests into a namespace that does not exist before the API server calls any webhook
(k8s.io/apiserver v1.36 pkg/admission/plugin/namespace/lifecycle). If files have a namespace, it counts. A namespace
that no file has is assumed, with only the label that every namespace has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from webhook.apimachinery.attributes import JSON, NAME_LABEL, GroupVersionKind
from webhook.cluster import Cluster

_NAMESPACE: Final = ("", "Namespace")


class AssumedNamespace(dict[str, JSON]):
    """A Namespace of which only the name is known."""

    __slots__ = ()


class ClusterWithAssumedNamespaces:
    """A view of the cluster that has every namespace, and everything else from another view.

    `known` are Namespaces that the caller knows better than the view, by their names.
    """

    def __init__(self, view: Cluster, known: Mapping[str, JSON] | None = None) -> None:
        self._view = view
        self._known: Mapping[str, JSON] = {} if known is None else known
        self.list = view.list  # assumed namespaces cannot be listed
        self.list_indexed = view.list_indexed
        self.is_namespaced = view.is_namespaced
        self.is_synced = view.is_synced
        self.revision = view.revision
        self.is_whole = view.is_whole
        self.file_of_object = view.file_of_object
        self.objects_in_other_files = view.objects_in_other_files

    def get(self, gvk: GroupVersionKind, namespace: str, name: str) -> JSON | None:
        """Return the object of the view, or a namespace with its name."""
        is_namespace = (gvk.group, gvk.kind) == _NAMESPACE
        held = self._known.get(name) if is_namespace else None
        if held is None:
            held = self._view.get(gvk, namespace, name)
        if held is None and is_namespace:
            labels = {NAME_LABEL: name}
            return AssumedNamespace(apiVersion="v1", kind="Namespace", metadata={"name": name, "labels": labels})
        return held
