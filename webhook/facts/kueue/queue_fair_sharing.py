"""Rules for the fair sharing weight of a ClusterQueue or a Cohort.

Source: kubernetes-sigs/kueue@ff69552e pkg/webhooks/clusterqueue_webhook.go validateFairSharing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook import quantity
from webhook.facts.kueue.groups import KUEUE_QUEUE, KUEUE_QUEUE_ADVICE
from webhook.facts.kueue.queue_flavors import cluster_queue_or_cohort
from webhook.facts.subject import Subject
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

FAIR_SHARING: Final = KUEUE_QUEUE.rule(
    "kueue-queue/fair-sharing",
    title="A weight is 0 or more, and not tinier than Kueue can calculate with.",
    why="Shares are divided by it.",
    function="validateFairSharing",
)
FAIR_SHARING_ZERO: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/fair-sharing-zero",
    title="A queue that borrows has a weight above 0.",
    why="With fair sharing, a weight of 0 means that others borrow first.",
    refused_by="nobody; others come first",
    source="kubernetes-sigs/kueue@ff69552e pkg/cache/scheduler/fair_sharing.go",
    fails="silent",
)


def validate_fair_sharing(subject: Subject) -> Iterator[Problem]:
    """Yield the problem of a weight that is negative, or above 0 and at most 1n (validateFairSharing)."""
    sharing = cluster_queue_or_cohort(subject).spec.fair_sharing
    given, weight = sharing.weight, quantity.read_quantity_or_none(sharing.weight)
    if given is None or is_placeholder(str(given)):
        return
    is_tiny = weight is not None and weight.sign() > 0 and weight <= quantity.parse_quantity("1n")
    if weight is None or weight.sign() < 0 or is_tiny:
        message = "must be 0 or more, and above 1n unless it is 0" if is_tiny else "must be a quantity of 0 or more"
        yield FAIR_SHARING.problem(sharing.path("weight"), message, "set 1, which is the default", given)


def advise_zero_fair_sharing_weight(subject: Subject) -> Iterator[Problem]:
    """Yield the problem of a fair sharing weight of 0."""
    sharing = cluster_queue_or_cohort(subject).spec.fair_sharing
    weight = quantity.read_quantity_or_none(sharing.weight)
    if weight is not None and weight.sign() == 0:
        message = "is 0, which means that with fair sharing all other queues borrow first"
        yield FAIR_SHARING_ZERO.problem(sharing.path("weight"), message, "set 1, which is the default")
