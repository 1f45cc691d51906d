"""Cohorts that lead back to themselves, and limits of borrowing in a cohort where nobody has anything to lend.

Sources: kubernetes-sigs/kueue@ff69552e pkg/cache/hierarchy and pkg/cache/scheduler; a cycle of cohorts was observed to
leave the ClusterQueue active and every job waiting.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.kueue.cluster_queue_quota import cohort_of
from webhook.facts.kueue.cluster_queues import read_cluster_queue
from webhook.facts.kueue.groups import KUEUE_QUEUE_ADVICE
from webhook.facts.kueue.queues import others_of, queues
from webhook.facts.kueue.types import ClusterQueue, Cohort
from webhook.facts.resource_units import of_resource
from webhook.facts.subject import Subject
from webhook.facts.view import View
from webhook.problem import Problem

COHORT_CYCLE: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/cohort-cycle",
    title="The parents of a Cohort do not lead back to it.",
    why="The ClusterQueues below stay active and admit nothing; only a log tells.",
    source="kubernetes-sigs/kueue@ff69552e pkg/cache/hierarchy",
)
NOTHING_TO_BORROW: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/nothing-to-borrow",
    title="A borrowing limit is for what another member of the cohort has.",
    why="Without a lender nothing can be borrowed, whatever the limit.",
    refused_by="nobody; nothing can be borrowed",
    source="kubernetes-sigs/kueue@ff69552e pkg/cache/scheduler/resource_node.go",
    fails="silent",
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


def advise_borrowing(subject: Subject) -> Iterator[Problem]:
    """Borrowing limits in a cohort where nobody else has any of it, as far as the view shows other members."""
    cohort, written = cohort_of(subject), subject.typed(ClusterQueue)
    others = others_of(written.name, cohort, subject.view()) if cohort else ()
    if all(node.is_cohort for node in others):
        return
    queue = read_cluster_queue(written)
    lent = {pair for node in others for pair, quota in node.quotas.items() if quota.nominal > 0}
    for (flavor, resource), quota in queue.quotas.items():
        if quota.borrowing_limit and (flavor, resource) not in lent:
            limit = of_resource(resource, quota.borrowing_limit)
            message = (
                f"lets flavor `{flavor}` borrow {limit}, which has no effect because no other member of cohort "
                f"`{cohort}` has quota for {resource} of this flavor"
            )
            fix = f"remove the borrowingLimit of {resource} from flavor `{flavor}`"
            yield NOTHING_TO_BORROW.problem("spec.resourceGroups", message, fix)
