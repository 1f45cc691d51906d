"""Pods that no mutating policy changes, because the conditions of none of them hold: nearly all.

Where every policy read of an earlier Pod what it reads of this one, and none spoke, none is asked. Policies see what
those before them have made of an object, so one that might speak has all of them asked in full.
"""

from __future__ import annotations

from webhook.evaluation import expansion
from webhook.evaluation.kept_answers import KeptAnswers
from webhook.evaluation.prepared import steps
from webhook.evaluation.request_context import RequestContext
from webhook.policy.candidates import Candidate
from webhook.policy.memo import Key


class Unchanged:
    """Whether the mutating policies that may concern a request leave its object alone."""

    __slots__ = ("_asked", "_context")

    def __init__(self, candidates: tuple[Candidate, ...], context: RequestContext) -> None:
        self._context = context
        self._asked = _asked(candidates, context)

    @property
    def is_known(self) -> bool:
        """Whether they did so before, with the same to read."""
        asked = self._asked
        return asked is not None and all(step.answer(key) is not None for step, key in asked)

    def keep(self) -> None:
        """Keep that none of them spoke."""
        for step, key in self._asked or ():
            step.keep(key, (), self._context)


def _asked(candidates: tuple[Candidate, ...], context: RequestContext) -> list[tuple[KeptAnswers, Key]] | None:
    """The policies with what they read; None where one of them is to be asked."""
    own = expansion.own(context) if context.faults is None else ()
    made = []
    for step in steps(candidates, own[0], context) if own else candidates:
        key = step.key(own[0], context) if isinstance(step, KeptAnswers) else None
        if key is None or not isinstance(step, KeptAnswers):
            return None
        made.append((step, key))
    return made
