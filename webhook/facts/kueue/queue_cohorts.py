"""Rules about cohorts: cycles of parents, and limits without a cohort.

Sources: kubernetes-sigs/kueue@ff69552e pkg/cache/hierarchy and pkg/cache/scheduler; a cycle was observed to leave the
ClusterQueue active and every job waiting.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.kueue.groups import KUEUE_QUEUE, KUEUE_QUEUE_ADVICE
from webhook.facts.kueue.quota_tree import read_quota_tree
from webhook.facts.kueue.types import ClusterQueue, Cohort, ResourceQuota
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.problem import Problem

COHORT_CYCLE: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/cohort-cycle",
    title="The parents of a Cohort do not lead back to it.",
    why="The ClusterQueues below stay active and admit nothing; only a log tells.",
    source="kubernetes-sigs/kueue@ff69552e pkg/cache/hierarchy",
)
LIMIT_WITHOUT_COHORT: Final = KUEUE_QUEUE.rule(
    "kueue-queue/limit-without-cohort",
    title="Borrowing and lending limits stand in a cohort.",
    why="Without a cohort there is nobody to borrow from or lend to.",
    function="validateLimit",
)


def advise_cohort_cycle(subject: Subject) -> Iterator[Problem]:
    """Yield the problem of a Cohort whose parents lead back to it."""
    cohort = subject.typed(Cohort)
    parent = cohort.spec.parent_name
    closes = _cohort_that_closes_cycle(cohort.name, parent, subject.cluster_view())
    if closes:
        message = f"makes a cycle through cohort `{closes}`, so Kueue admits no job in any cohort of the cycle"
        fix = "set a parent that is not below this Cohort"
        yield COHORT_CYCLE.problem(cohort.spec.path("parentName"), message, fix, parent)


def _cohort_that_closes_cycle(name: str, parent: str, view: ClusterView) -> str:
    """Return the cohort that closes a cycle above a cohort; "" if there is none."""
    everything, passed = read_quota_tree(view), {name}
    while parent and parent not in passed:
        passed.add(parent)
        parent = everything.parent_of(parent)
    return parent


def cohort_above(subject: Subject) -> str:
    """Return the cohort above a ClusterQueue or a Cohort; v1beta1 and v1beta2 have different fields for it."""
    if subject.group_kind[1] == Cohort.gvk.kind:
        return subject.typed(Cohort).spec.parent_name
    spec = subject.typed(ClusterQueue).spec
    return spec.cohort if subject.attributes.kind.version == "v1beta1" else spec.cohort_name


def name_of_cohort_field(subject: Subject) -> str:
    """Return the name of the field with the cohort above, in the version that the object is written in."""
    if subject.group_kind[1] == Cohort.gvk.kind:
        return "parentName"
    return "cohort" if subject.attributes.kind.version == "v1beta1" else "cohortName"


def validate_limit_without_cohort(quota: ResourceQuota, field: str) -> Iterator[Problem]:
    """Yield limits of borrowing or lending, because they need a cohort."""
    limits = (
        ("borrowingLimit", quota.borrowing_limit, "borrow from"),
        ("lendingLimit", quota.lending_limit, "lend to"),
    )
    for name, limit, verb in limits:
        if limit is not None:
            message = f"must not be set without {field} because there is no cohort to {verb}"
            fix = f"set spec.{field}, or remove the limit"
            yield LIMIT_WITHOUT_COHORT.problem(quota.path(name), message, fix, limit)
