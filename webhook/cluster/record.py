"""A record of the lookups of one evaluation: what was asked and what was answered, to show and to replay.

One Recorder serves one evaluation and is not shared between threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from webhook.attributes import JSON, GroupVersionKind
from webhook.cluster.lookup import Cluster, describe, place_of
from webhook.errors import LookupFailed

_Question: TypeAlias = tuple[GroupVersionKind, str | None, str | None, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """One question and its answer. name is None for a list; namespace is None for a list of all namespaces.

    labels: the labelSelector of a list.

    answer: the object, None for absent, or a tuple of objects. failure: why nobody could say, else "".
    """

    gvk: GroupVersionKind
    namespace: str | None
    name: str | None
    labels: str = ""
    answer: JSON = None
    failure: str = ""

    @property
    def question(self) -> _Question:
        """What was asked."""
        return self.gvk, self.namespace, self.name, self.labels

    @property
    def is_absent(self) -> bool:
        """The object asked for is known not to be there."""
        return self.name is not None and self.answer is None and not self.failure

    def __str__(self) -> str:
        if self.name is not None:
            asked = describe(self.gvk, self.namespace or "", self.name)
        else:
            asked = f"{self.gvk.kind} list" + (f" in {self.namespace}" if self.namespace else "")
        return f"{asked}: {self.failure}" if self.failure else f"{asked} not found" if self.is_absent else asked


class Recorder:
    """Passes lookups on and keeps them in `lookups`, each question once, in the order of asking."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._lookups: dict[_Question, Lookup] = {}

    @property
    def lookups(self) -> tuple[Lookup, ...]:
        """What was asked so far."""
        return tuple(self._lookups.values())

    def get(self, gvk: GroupVersionKind, namespace: str, name: str) -> JSON | None:
        """The answer of the view behind, recorded.

        Raises:
            LookupFailed: the view behind cannot say; recorded too.
        """
        try:
            answer = self._cluster.get(gvk, namespace, name)
        except LookupFailed as error:
            self._note(Lookup(gvk=gvk, namespace=namespace, name=name, failure=str(error)))
            raise
        self._note(Lookup(gvk=gvk, namespace=namespace, name=name, answer=answer))
        return answer

    def list(self, gvk: GroupVersionKind, namespace: str | None, labels: str = "") -> Sequence[JSON]:
        """The answer of the view behind, recorded.

        Raises:
            LookupFailed: the view behind cannot say; recorded too.
        """
        try:
            answer = tuple(self._cluster.list(gvk, namespace, labels))
        except LookupFailed as error:
            self._note(Lookup(gvk=gvk, namespace=namespace, name=None, labels=labels, failure=str(error)))
            raise
        self._note(Lookup(gvk=gvk, namespace=namespace, name=None, labels=labels, answer=answer))
        return answer

    def is_namespaced(self, gvk: GroupVersionKind) -> bool | None:
        """What the view behind says, which is no lookup."""
        return self._cluster.is_namespaced(gvk)

    def synced(self, gvk: GroupVersionKind) -> bool:
        """Whether the view behind answers."""
        return self._cluster.synced(gvk)

    def _note(self, lookup: Lookup) -> None:
        self._lookups[lookup.question] = lookup


class Recorded:
    """The view that a record replays: the same answers to the same questions, and no others."""

    def __init__(self, lookups: Iterable[Lookup]) -> None:
        self._lookups = {lookup.question: lookup for lookup in lookups}

    def get(self, gvk: GroupVersionKind, namespace: str, name: str) -> JSON | None:
        """The recorded answer.

        Raises:
            LookupFailed: it failed then, or was never asked.
        """
        return self._answer((gvk, namespace, name, ""), describe(gvk, namespace, name))

    def list(self, gvk: GroupVersionKind, namespace: str | None, labels: str = "") -> Sequence[JSON]:
        """The recorded answer.

        Raises:
            LookupFailed: it failed then, or was never asked.
        """
        answer: Sequence[JSON] = self._answer((gvk, namespace, None, labels), f"{gvk.kind} list")
        return answer

    def is_namespaced(self, gvk: GroupVersionKind) -> bool | None:
        """Whether any recorded object of the kind has a namespace."""
        answers = [each.answer for each in self._lookups.values() if each.gvk == gvk and each.answer]
        objects = [each for answer in answers for each in (answer if isinstance(answer, tuple) else (answer,))]
        return any(place_of(each)[0] for each in objects) if objects else None

    def synced(self, gvk: GroupVersionKind) -> bool:
        """Whether any lookup of this kind was answered."""
        return any(lookup.gvk == gvk and not lookup.failure for lookup in self._lookups.values())

    def _answer(self, question: _Question, asked: str) -> JSON:
        lookup = self._lookups.get(question)
        if lookup is None:
            raise LookupFailed(f"{asked}: not in the record")
        if lookup.failure:
            raise LookupFailed(lookup.failure)
        return lookup.answer
