"""The cluster as facts see it: lookups that remember what was not there.

An absent object and one that could not be looked up are both `missing`, in different words; the fact goes on without.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from webhook.attributes import JSON, GroupVersionKind
from webhook.cluster import Cluster
from webhook.cluster.interest import reading
from webhook.deadline import Deadline
from webhook.errors import LookupFailed

NAMESPACE = GroupVersionKind("", "v1", "Namespace")
NAMESPACES = reading(NAMESPACE, "metadata.labels")
"""What facts read of namespaces."""


@dataclass(slots=True)
class View:
    """Lookups of one fact in one namespace, and until when it may be computed.

    `missing` collects texts such as `ClusterTrainingRuntime x not found`.
    """

    cluster: Cluster
    namespace: str
    deadline: Deadline = field(default_factory=Deadline)
    missing: list[str] = field(default_factory=list)

    def get(self, gvk: GroupVersionKind, name: str, *, namespaced: bool = True) -> JSON | None:
        """The object, or None, which `missing` then explains."""
        try:
            found = self.cluster.get(gvk, self.namespace if namespaced else "", name)
        except LookupFailed as failure:
            self.note(f"{gvk.kind} {name} not looked up: {failure}")
            return None
        if found is None:
            self.note(f"{gvk.kind} {name} not found")
        return found

    def objects(self, gvk: GroupVersionKind) -> Sequence[JSON]:
        """All objects of a kind in every namespace, none where nobody can say: for what is near, or elsewhere."""
        try:
            return self.cluster.list(gvk, None)
        except LookupFailed:
            return ()

    def is_whole(self) -> bool:
        """Whether this is the view of a whole cluster, and not of a few files: every cluster has `kube-system`.

        Only in a whole cluster an object that is not there is known to be absent without further evidence.
        """
        return any((found.get("metadata") or {}).get("name") == "kube-system" for found in self.objects(NAMESPACE))

    def note(self, text: str) -> None:
        """Remember once what could not be found out."""
        if text not in self.missing:
            self.missing.append(text)
