"""Compares the guarantee of a queue with what it deserves and with its siblings' guarantees.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/queues/validate/validate_queue.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.volcano.groups import VOLCANO_QUEUE
from webhook.facts.volcano.sibling_sums import first_excess
from webhook.facts.volcano_objects.types import Queue
from webhook.problem import Problem
from webhook.typed.collections import Items

GUARANTEE_SUM: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/guarantee-sum",
    title="Queues below one are guaranteed no more than it together.",
    why="A queue without a guarantee has none to give.",
    function="validateSiblingsSum",
    refused_on_updates="",
)
GUARANTEE_DESERVED: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/guarantee-deserved",
    title="What a queue is guaranteed, it deserves.",
    why="The guarantee is a part of the share that the queue deserves.",
    function="validateResourceQuantityOfQueue",
)


def validate_guarantee_sum(parent: Queue, children: Items[Queue], queue: Queue) -> Iterator[Problem]:
    """Yield the problem of children with more guarantees together than their queue (validateSiblingsSum)."""
    shares = (child.spec.guarantee.resource for child in children)
    if excess := first_excess("guarantee", shares, parent.spec.guarantee.resource):
        message, fix = excess.explain(parent, queue)
        yield GUARANTEE_SUM.problem(queue.spec.path("guarantee", "resource"), message, fix)


def validate_guarantee_deserved(queue: Queue) -> Iterator[Problem]:
    """Yield resources of which a queue is guaranteed more than it deserves (validateResourceQuantityOfQueue)."""
    spec = queue.spec
    for name, least in spec.guarantee.resource.items():
        path = spec.path("deserved", name)
        if name not in spec.written_deserved:
            message = f"must be set because the guarantee has {least} of this resource, and deserved must not be less"
            yield GUARANTEE_DESERVED.problem(path, message, f"set {least} or more")
        elif (share := spec.deserved.get(name, least)) < least:
            message, fix = f"must not be less than the guarantee of {least}", "raise the amount, or lower the guarantee"
            yield GUARANTEE_DESERVED.problem(path, message, fix, str(share))
