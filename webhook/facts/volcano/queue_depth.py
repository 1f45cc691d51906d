"""Limits the depth of queues.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/queues/validate/validate_queue.go validateQueueDepth.
"""

from __future__ import annotations

from typing import Final

from webhook.facts.volcano.groups import VOLCANO_QUEUE
from webhook.problem import Problem

DEPTH: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/depth",
    title="Queues are at most 5 levels deep.",
    why="Volcano refuses more, unless its flag max-queue-depth says otherwise.",
    function="validateQueueDepth",
    refused_on_updates="",
)
DEEPEST: Final = 5
"""The default of `--max-queue-depth`."""


def too_deep_problem(parent: str, level: int) -> Problem:
    """Return the problem of a parent that puts a queue below the last level (validateQueueDepth)."""
    message = f"puts the queue on level {level}, but queues can have at most {DEEPEST} levels"
    return DEPTH.problem("spec.parent", message, "choose a parent nearer to the root", parent)
