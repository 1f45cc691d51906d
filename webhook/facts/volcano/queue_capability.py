"""Compares the capability of a queue with those of the queues above and below it.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/queues/validate/validate_queue.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.volcano.groups import VOLCANO_QUEUE
from webhook.facts.volcano.queue_tree import QueueTree
from webhook.facts.volcano.sibling_sums import is_resource_compared_by_scheduler
from webhook.facts.volcano_objects.types import Queue
from webhook.problem import Problem
from webhook.quantity import Quantity

CAPABILITY_ANCESTOR: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/capability-ancestor",
    title="A queue may not have more than the queues above it.",
    why="The nearest queue above that limits a resource counts.",
    function="validateChildAgainstAncestor",
    refused_on_updates="",
)
CAPABILITY_DESCENDANT: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/capability-descendant",
    title="A queue may not have less than the queues below it.",
    why="They could not have what they say.",
    function="validateChildrenConstraints",
    refused_on_updates="",
)


def validate_capability_ancestor(queue: Queue, queues: QueueTree) -> Iterator[Problem]:
    """Yield a capability above that of the nearest limiting queue above (validateChildAgainstAncestor)."""
    for name, most in _limits_of_capability(queue):
        above = next(
            (above for above in queues.queue_and_ancestors(queue.parent) if above.spec.capability.get(name)), None
        )
        limit = above.spec.capability[name] if above else most
        if above and most > limit:
            message = f"must not be more than {limit}, the capability of queue `{above.name}` above this queue"
            fix = f"lower the amount, or raise the capability of `{above.name}`"
            yield CAPABILITY_ANCESTOR.problem(queue.spec.path("capability", name), message, fix, str(most))


def validate_capability_descendant(queue: Queue, queues: QueueTree) -> Iterator[Problem]:
    """Yield a capability below that of the topmost limiting queues below (validateChildrenConstraints)."""
    for name, most in _limits_of_capability(queue):
        limited = queues.topmost_descendants_with_limit(queue.name, name)
        below = next((below for below in limited if below.spec.capability[name] > most), None)
        if below:
            largest = below.spec.capability[name]
            message = f"must not be less than {largest}, the capability of queue `{below.name}` below this queue"
            fix = f"raise the amount, or lower the capability of `{below.name}`"
            yield CAPABILITY_DESCENDANT.problem(queue.spec.path("capability", name), message, fix, str(most))


def _limits_of_capability(queue: Queue) -> Iterator[tuple[str, Quantity]]:
    """Yield the resources and amounts that the capability of a queue limits."""
    return (
        (name, most) for name, most in queue.spec.capability.items() if most and is_resource_compared_by_scheduler(name)
    )
