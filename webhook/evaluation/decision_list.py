"""The decisions of one review, of which an object with very many templates makes more than there is use for.

Every rule that denies or fails speaks at least once, whatever was said before: what a verdict is made of is never lost.
Knows no policies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from webhook.decisions import Decision

MOST_ADMITTED: Final = 10_000
"""Decisions of rules that hold: some megabytes. Counters and reports leave the others out."""
MOST_SPOKEN: Final = 1_000
"""Decisions with a text, which is up to 5 KiB long; of the others, the first of each rule."""


class DecisionList:
    """Decisions in their order."""

    __slots__ = ("_admitted", "_spoken", "_told", "made")

    def __init__(self) -> None:
        self.made: list[Decision] = []
        self._admitted = 0
        self._spoken = 0
        self._told: set[tuple[object, ...]] = set()

    def admit(self, decisions: Sequence[Decision]) -> None:
        """Keep the decisions of rules that hold."""
        self._admitted += len(decisions)
        if self._admitted <= MOST_ADMITTED:
            self.made.extend(decisions)

    def add(self, decisions: Iterable[Decision]) -> None:
        """Keep these, or of too many the first of each rule that has something to say."""
        for each in decisions:
            if each.evaluation == "admit" and not each.audit_annotations:
                self._admitted += 1
                if self._admitted <= MOST_ADMITTED:
                    self.made.append(each)
            else:
                self._spoken += 1
                if self._spoken <= MOST_SPOKEN or self._is_first(each):
                    self.made.append(each)

    def _is_first(self, decision: Decision) -> bool:
        key = (decision.policy, decision.binding, decision.param, decision.index, decision.evaluation, decision.actions)
        is_first = key not in self._told
        self._told.add(key)
        return is_first
