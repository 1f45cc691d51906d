"""The decisions of one review, limited in number for objects with very many pod templates.

Every rule that denies or fails speaks at least once, whatever was said before: what a verdict is made of is never lost.
Knows no policies' content.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from webhook.policy.static_params import Param
from webhook.rules.decisions import Decision

MOST_ADMITTED: Final = 10_000
"""How many decisions without a problem are kept, which take some megabytes. Counters and reports leave the
others out.
"""
MOST_SPOKEN: Final = 1_000
"""How many decisions with a message are kept, of up to 5 KiB each; of the others, the first of each rule."""


class DecisionList:
    """Decisions in order, up to a limit."""

    __slots__ = ("_admitted", "_named", "_spoken", "decisions")

    def __init__(self) -> None:
        self.decisions: list[Decision] = []
        self._admitted = 0
        self._spoken = 0
        self._named: set[tuple[object, ...]] = set()

    def add(self, decisions: Iterable[Decision]) -> None:
        """Add decisions; beyond the limit, add only the first of each rule that has a message."""
        for decision in decisions:
            if decision.evaluation == "admit" and not decision.audit_annotations:
                self._admitted += 1
                if self._admitted <= MOST_ADMITTED:
                    self.decisions.append(decision)
            else:
                self._spoken += 1
                if self._spoken <= MOST_SPOKEN or self._is_first_of_rule(decision):
                    self.decisions.append(decision)

    def _is_first_of_rule(self, decision: Decision) -> bool:
        key = (decision.policy, decision.binding, decision.param, decision.index, decision.evaluation, decision.actions)
        is_first = key not in self._named
        self._named.add(key)
        return is_first


def decisions_admitted_by_param(param: Param, place: str) -> Sequence[Decision]:
    """Return the decisions that admit under a parameter, for the object or for the template at a place in it."""
    return tuple(replace(decision, path=place) for decision in param.admits) if place else param.admits
