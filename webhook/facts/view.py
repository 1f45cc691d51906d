"""The cluster as facts see it: lookups that remember what was not there.

An absent object and one that could not be looked up are both `missing`, in different words; the fact goes on without.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from webhook.attributes import JSON, NAMESPACE, GroupVersionKind
from webhook.cluster import Cluster
from webhook.cluster.interest import reading
from webhook.deadline import Deadline
from webhook.errors import LookupFailed
from webhook.facts.similar_names import nearest

NAMESPACES = reading(NAMESPACE, "metadata.labels")
"""What facts read of namespaces."""
_MOST_COMPARED: Final = 20_000
"""Names that one fact looks at for what is near its unknown ones: some hundredths of a second, and a courtesy only."""


@dataclass(slots=True)
class View:
    """Lookups of one fact in one namespace, and until when it may be computed.

    `missing` collects texts such as `ClusterTrainingRuntime x not found`.
    """

    cluster: Cluster
    namespace: str
    deadline: Deadline = field(default_factory=Deadline)
    missing: list[str] = field(default_factory=list)
    _noted: set[str] = field(default_factory=set, init=False)
    _listed: dict[GroupVersionKind, Sequence[JSON]] = field(default_factory=dict, init=False)
    _whole: bool | None = field(default=None, init=False)
    _compared: int = field(default=0, init=False)

    def get(self, gvk: GroupVersionKind, name: str, *, namespaced: bool = True) -> JSON | None:
        """The object, or None, which `missing` then explains."""
        self.deadline.spend(1)
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
        found = self._listed.get(gvk)
        if found is None:
            try:
                found = self.cluster.list(gvk, None)
            except LookupFailed:
                found = ()
            self._listed[gvk] = found
        return found

    def is_whole(self) -> bool:
        """Whether this is the view of a whole cluster, and not of a few files: every cluster has `kube-system`.

        Only in a whole cluster an object that is not there is known to be absent without further evidence.
        """
        if self._whole is None:
            names = ((found.get("metadata") or {}).get("name") for found in self.objects(NAMESPACE))
            self._whole = any(name == "kube-system" for name in names)
        return self._whole

    def note(self, text: str) -> None:
        """Remember once what could not be found out."""
        if text not in self._noted:
            self._noted.add(text)
            self.missing.append(text)

    def nearest(self, name: str, known: Iterable[str]) -> str:
        """The known name that an unknown one was probably meant to be; "" once the fact has compared very many."""
        if self._compared >= _MOST_COMPARED:
            return ""
        compared = list(islice(known, _MOST_COMPARED - self._compared))
        self._compared += len(compared)
        return nearest(name, self.deadline.paced(compared))
