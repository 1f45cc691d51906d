"""Compares what a queue deserves with its capability and with what its siblings deserve.

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

DESERVED_SUM: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/deserved-sum",
    title="Queues below one deserve no more than it together.",
    why="A queue that deserves nothing has nothing to share.",
    function="validateSiblingsSum",
    refused_on_updates="",
)
DESERVED_CAPABILITY: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/deserved-capability",
    title="A queue deserves no more than its capability.",
    why="It could never have the rest.",
    function="validateResourceQuantityOfQueue",
)


def validate_deserved_sum(parent: Queue, children: Items[Queue], queue: Queue) -> Iterator[Problem]:
    """Yield the problem of children that deserve more together than their queue (validateSiblingsSum)."""
    if excess := first_excess("deserved", (child.spec.deserved for child in children), parent.spec.deserved):
        message, fix = excess.explain(parent, queue)
        yield DESERVED_SUM.problem(queue.spec.path("deserved"), message, fix)


def validate_deserved_capability(queue: Queue) -> Iterator[Problem]:
    """Yield resources of which a queue deserves more than its capability (validateResourceQuantityOfQueue)."""
    spec = queue.spec
    for name, share in spec.deserved.items():
        most = spec.capability.get(name, share)
        if share > most:
            message, fix = (
                f"must not be more than the capability of {most}",
                "lower the amount, or raise the capability",
            )
            yield DESERVED_CAPABILITY.problem(spec.path("deserved", name), message, fix, str(share))
