"""The interface for looking up other objects during an evaluation. Implementations: files, file_tree, layered,
watch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.apimachinery.paths import get as at
from webhook.cluster.interest import Index

NOT_SERVED: Final = "not served by the API server; install its CustomResourceDefinition"
"""The text of a failed look-up if the API server does not have the kind."""
OMITTED: Final = "claimgate.dev/omitted-bytes"
"""The field of a stub with the size of the object. Real objects have no such field, because no field name has a
slash."""


class Cluster(Protocol):
    """A view of the cluster. Answers come from memory: an evaluation never waits for the network.

    Group and kind identify a kind; the version does not matter. Objects are shared and must not be changed.
    """

    def get(self, gvk: GroupVersionKind, namespace: str, name: str) -> JSON | None:
        """Return the object, or None if the view does not have it. namespace is "" for cluster-scoped kinds.

        Raises:
            LookupFailed: it is not known.
        """
        ...

    def list(self, gvk: GroupVersionKind, namespace: str | None, labels: str = "") -> Sequence[JSON]:
        """Return the objects of a namespace, or of all namespaces with None, sorted by namespace and name.

        labels is a labelSelector in the syntax of API servers. A view may also return objects that it does not
        select, so the caller must select again.

        Raises:
            LookupFailed: it is not known.
        """
        ...

    def list_indexed(self, gvk: GroupVersionKind, namespace: str | None, index: Index, key: str) -> Sequence[JSON]:
        """Return the objects that an index has under a key, in a namespace or, with None, in all namespaces.

        Raises:
            LookupFailed: it is not known.
        """
        ...

    def is_namespaced(self, gvk: GroupVersionKind) -> bool | None:
        """Return whether objects of a kind have namespaces; None if it is not known.

        Raises:
            LookupFailed: it is not known.
        """
        ...

    def is_synced(self, gvk: GroupVersionKind) -> bool:
        """Return whether lookups of this kind are answered, which begins after the first list."""
        ...

    def revision(self, gvk: GroupVersionKind) -> object:
        """Return a value that stays equal while all lookups of this kind have the same answers."""
        ...

    def is_whole(self) -> bool:
        """Return whether an object that the view does not have certainly does not exist: true for a live cluster,
        false for files unless the user says so.
        """
        ...

    def file_of_object(self, obj: JSON) -> str:
        """Return the file of an object of this view; "" for an object of a live cluster."""
        ...

    def objects_in_other_files(self, gvk: GroupVersionKind) -> Sequence[JSON]:
        """Return objects in other files of the same tree, which may be in this cluster; () in a live cluster."""
        ...


def namespace_and_name(obj: JSON) -> tuple[str, str]:
    """Return namespace and name of an object, "" for a field that is not set. A value of another type is converted to
    text.
    """
    namespace, name = at(obj, ("metadata", "namespace"), ""), at(obj, ("metadata", "name"), "")
    if isinstance(namespace, str) and isinstance(name, str):
        return namespace, name
    return str(namespace), str(name)


def describe_lookup(gvk: GroupVersionKind, namespace: str, name: str) -> str:
    """Return the text of a lookup for messages, such as `ResourceClaimTemplate team-a/x`."""
    return f"{gvk.kind} {namespace}/{name}" if namespace else f"{gvk.kind} {name}"
