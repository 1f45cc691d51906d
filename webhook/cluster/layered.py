"""Two views as one: objects of files over a live cluster, or of one audit over its context."""

from __future__ import annotations

from collections.abc import Sequence

from webhook.attributes import JSON, GroupVersionKind
from webhook.cluster.lookup import Cluster
from webhook.paths import get as at


class LayeredCluster:
    """Asks the first view, then the other; objects of the first hide those of the same name below."""

    def __init__(self, first: Cluster, then: Cluster) -> None:
        self._first = first
        self._then = then

    def get(self, gvk: GroupVersionKind, namespace: str, name: str) -> JSON | None:
        """The object of the upper view, else of the lower.

        Raises:
            LookupFailed: the view that had to answer cannot say.
        """
        found = self._first.get(gvk, namespace, name)
        return self._then.get(gvk, namespace, name) if found is None else found

    def list(self, gvk: GroupVersionKind, namespace: str | None) -> Sequence[JSON]:
        """The objects of both views, by namespace and name.

        Raises:
            LookupFailed: one of the views cannot say.
        """
        below = {_place(found): found for found in self._then.list(gvk, namespace)}
        merged = below | {_place(found): found for found in self._first.list(gvk, namespace)}
        return [found for _, found in sorted(merged.items(), key=lambda item: item[0])]

    def synced(self, gvk: GroupVersionKind) -> bool:
        """Whether both views answer."""
        return self._first.synced(gvk) and self._then.synced(gvk)


def _place(found: JSON) -> tuple[str, str]:
    return at(found, ("metadata", "namespace"), ""), at(found, ("metadata", "name"), "")
