"""The status of a Queue, which the API server drops when the queue is created."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.volcano.groups import VOLCANO_QUEUE
from webhook.facts.volcano.queue_tree import OPEN, vcctl_command_for_queue
from webhook.facts.volcano_objects.types import Queue
from webhook.problem import Problem

STATUS: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/status",
    title="A new queue has no status.",
    why="The API server drops it, so a queue is open when it is created, whatever it says.",
    refused_by="nobody; the queue is open",
    level="warn",
    fails="silent",
)


def warn_of_dropped_status(queue: Queue) -> Iterator[Problem]:
    """Yield the status of a new queue, which the API server drops."""
    if queue.state not in ("", OPEN):
        message = "has no effect on a new queue because the API server drops the status, so the queue opens"
        fix = f"remove status, and close the queue once it exists ({vcctl_command_for_queue('close', queue.name)})"
        yield STATUS.problem(queue.status.path("state"), message, fix, queue.state)
