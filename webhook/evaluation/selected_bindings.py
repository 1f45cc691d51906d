"""What is made of the candidates for a Pod once for all namespaces that the same bindings select.

A namespaceSelector is asked about the labels of a namespace: of each set of labels once. Knows no policies' content.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Generic, TypeAlias, TypeVar

from webhook.attributes import NAME_LABEL
from webhook.errors import LookupFailed
from webhook.evaluation.request_context import RequestContext
from webhook.manifests.label_selectors import EVERYTHING, Labels, Selector
from webhook.policy.candidates import Candidate
from webhook.policy.compiled import Binding

_T = TypeVar("_T")
_MOST_NAMESPACES: Final = 1000
"""Sets of labels whose bindings are remembered: asking a few selectors again costs little."""
_MOST_PLANS: Final = 64

_Selected: TypeAlias = tuple[bool | None, ...]
"""Whether each selector takes a namespace; None where nobody can say."""


class SelectedBindings(Generic[_T]):
    """Some candidates, and what was made of them for the bindings that select a namespace."""

    __slots__ = ("_made", "_of_labels", "_selectors", "candidates")

    def __init__(self, candidates: tuple[Candidate, ...]) -> None:
        self.candidates = candidates
        listed = (binding for candidate in candidates for binding, _ in candidate.bindings)
        selectors = (each.criteria.namespaces for each in listed if each.criteria is not None)
        self._selectors = tuple(dict.fromkeys(each for each in selectors if each.requirements))
        self._of_labels: dict[tuple[object, ...], _Selected] = {}
        self._made: dict[_Selected, _T] = {}

    def made_once(self, context: RequestContext, make: Callable[[Sequence[Candidate], RequestContext], _T]) -> _T:
        """What `make` gives for the candidates without bindings that do not select the namespace of a request.

        A binding of which nobody can say whether it does is not certain.
        """
        selected = self._selected(context)
        known = self._made.get(selected)
        if known is None:
            if len(self._made) >= _MOST_PLANS:
                self._made.clear()
            known = self._made[selected] = make(self._left(selected), context)
        return known

    def _selected(self, context: RequestContext) -> _Selected:
        if not self._selectors:
            return ()
        name = context.attributes.namespace
        try:
            labels = context.namespace_labels() if name else None
        except LookupFailed:
            labels = None
        is_known = labels is not None
        return self._by_labels(labels if labels is not None else {NAME_LABEL: name} if name else {}, is_known=is_known)

    def _by_labels(self, labels: Labels, *, is_known: bool) -> _Selected:
        """Which selectors take a namespace with these labels, or with these and others that nobody knows."""
        key = is_known, *labels.items()
        try:
            known = self._of_labels.get(key)
        except TypeError:  # a file may hold labels that are not texts
            return (None,) * len(self._selectors)
        if known is None:
            if len(self._of_labels) >= _MOST_NAMESPACES:
                self._of_labels.clear()
            known = tuple(
                each.matches(labels) if is_known or each.keys <= labels.keys() else None for each in self._selectors
            )
            self._of_labels[key] = known
        return known

    def _left(self, selected: _Selected) -> Sequence[Candidate]:
        takes = dict(zip(self._selectors, selected, strict=True))
        left = []
        for candidate in self.candidates:
            asked = [(binding, is_certain, _takes(binding, takes)) for binding, is_certain in candidate.bindings]
            bindings = tuple((each, certain and taken is True) for each, certain, taken in asked if taken is not False)
            if bindings or not candidate.is_certain:
                left.append(replace(candidate, bindings=bindings))
        return left


def _takes(binding: Binding, takes: Mapping[Selector, bool | None]) -> bool | None:
    """Whether a binding selects the namespace, as far as its namespaceSelector says."""
    selector = binding.criteria.namespaces if binding.criteria is not None else EVERYTHING
    return takes[selector] if selector.requirements else True
