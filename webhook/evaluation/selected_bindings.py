"""What is made of the candidates for a Pod once for all namespaces that the same bindings select.

A namespaceSelector is asked about the labels of a namespace: of each set of labels once. Knows no policies' content.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, Generic, TypeAlias, TypeVar

from webhook.errors import LookupFailed
from webhook.evaluation.request_context import RequestContext
from webhook.manifests.label_selectors import Labels
from webhook.policy.candidates import Candidate
from webhook.policy.compiled import Binding

_T = TypeVar("_T")
_MOST_NAMESPACES: Final = 1000
"""Sets of labels whose bindings are remembered: asking a few selectors again costs little."""
_MOST_PLANS: Final = 64

_Selected: TypeAlias = tuple[bool, ...]


class SelectedBindings(Generic[_T]):
    """Some candidates, and what was made of them for the bindings that select a namespace."""

    __slots__ = ("_made", "_of_labels", "_selectors", "candidates")

    def __init__(self, candidates: tuple[Candidate, ...]) -> None:
        self.candidates = candidates
        listed = (binding for candidate in candidates for binding, _ in candidate.bindings)
        selectors = (each.criteria.namespaces for each in listed if each.criteria is not None)
        self._selectors = tuple(dict.fromkeys(each for each in selectors if each.requirements))
        self._of_labels: dict[tuple[tuple[str, str], ...], _Selected] = {}
        self._made: dict[_Selected, _T] = {}

    def made_once(
        self, context: RequestContext, make: Callable[[Sequence[Candidate], RequestContext], _T]
    ) -> _T | None:
        """What `make` gives for the candidates without bindings that do not select the namespace of a request.

        None where nobody can say which these are.
        """
        selected = self._selected(context)
        if selected is None:
            return None
        known = self._made.get(selected)
        if known is None:
            if len(self._made) >= _MOST_PLANS:
                self._made.clear()
            known = self._made[selected] = make(self._left(selected), context)
        return known

    def _selected(self, context: RequestContext) -> _Selected | None:
        if not self._selectors:
            return ()
        try:
            labels = context.namespace_labels() if context.attributes.namespace else None
        except LookupFailed:
            return None
        return None if labels is None else self._by_labels(labels)

    def _by_labels(self, labels: Labels) -> _Selected | None:
        key = tuple(labels.items())
        try:
            known = self._of_labels.get(key)
        except TypeError:  # a file may hold labels that are not texts
            return None
        if known is None:
            if len(self._of_labels) >= _MOST_NAMESPACES:
                self._of_labels.clear()
            known = self._of_labels[key] = tuple(each.matches(labels) for each in self._selectors)
        return known

    def _left(self, selected: _Selected) -> Sequence[Candidate]:
        chosen = {each for each, is_selected in zip(self._selectors, selected, strict=True) if is_selected}

        def is_left(binding: Binding) -> bool:
            criteria = binding.criteria
            return criteria is None or not criteria.namespaces.requirements or criteria.namespaces in chosen

        left = []
        for candidate in self.candidates:
            bindings = tuple(each for each in candidate.bindings if is_left(each[0]))
            if bindings or not candidate.is_certain:
                left.append(replace(candidate, bindings=bindings))
        return left
