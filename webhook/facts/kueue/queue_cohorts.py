"""Cohorts that lead back to themselves.

Sources: kubernetes-sigs/kueue@ff69552e pkg/cache/hierarchy and pkg/cache/scheduler; a cycle was observed to leave the
ClusterQueue active and every job waiting.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.kueue.groups import KUEUE_QUEUE_ADVICE
from webhook.facts.kueue.quota_tree import queues
from webhook.facts.kueue.types import Cohort
from webhook.facts.subject import Subject
from webhook.facts.view import View
from webhook.problem import Problem

COHORT_CYCLE: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/cohort-cycle",
    title="The parents of a Cohort do not lead back to it.",
    why="The ClusterQueues below stay active and admit nothing; only a log tells.",
    source="kubernetes-sigs/kueue@ff69552e pkg/cache/hierarchy",
)


def advise_cohort(subject: Subject) -> Iterator[Problem]:
    """A Cohort whose parents lead back to it."""
    cohort = subject.typed(Cohort)
    parent = cohort.spec.parent_name
    closes = _cycle(cohort.name, parent, subject.view())
    if closes:
        message = f"makes a cycle through cohort `{closes}`, so Kueue admits no job in any cohort of the cycle"
        fix = "set a parent that is not below this Cohort"
        yield COHORT_CYCLE.problem(cohort.spec.path("parentName"), message, fix, parent)


def _cycle(name: str, parent: str, view: View) -> str:
    """The cohort at which the parents of a cohort come round to one before; "" where they do not."""
    everything, passed = queues(view), {name}
    while parent and parent not in passed:
        passed.add(parent)
        parent = everything.parent_of(parent)
    return parent
