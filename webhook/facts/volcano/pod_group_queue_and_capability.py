"""Rules for the queue of a PodGroup: it must exist, be open, have no queues below it, and be able to give enough.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/podgroups/validate. A PodGroup is taken into a queue that
is not a leaf.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.volcano.groups import VOLCANO_POD_GROUP, VOLCANO_POD_GROUP_ADVICE
from webhook.facts.volcano.referenced_queue import QueueRules
from webhook.facts.volcano_objects.types import PodGroup
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

POD_GROUP_QUEUE_EXISTS: Final = VOLCANO_POD_GROUP.rule(
    "volcano-pod-group/queue-exists",
    title="The queue of a PodGroup exists.",
    why="A PodGroup is stored only for a queue that is there. The default queue may be another one in its namespace.",
    function="checkQueueState",
    issues=(
        "https://github.com/volcano-sh/volcano/issues/452",
        "https://github.com/volcano-sh/volcano/issues/1863",
    ),
)
POD_GROUP_QUEUE_OPEN: Final = VOLCANO_POD_GROUP.rule(
    "volcano-pod-group/queue-open",
    title="The queue of a PodGroup is open.",
    why="A queue that is closed, or that its controller has not seen yet, takes no gangs.",
    function="checkQueueState",
)
POD_GROUP_QUEUE_LEAF: Final = VOLCANO_POD_GROUP_ADVICE.rule(
    "volcano-pod-group/queue-leaf",
    title="The queue of a PodGroup has no queues below it.",
    why=(
        "Volcano's webhook looks only at the queues of Jobs. With the hierarchy of the capacity plugin, one gang in a "
        "queue with children stops the scheduler for everybody."
    ),
    refused_by="nobody; the scheduler stops",
    source="https://github.com/volcano-sh/volcano/issues/4227",
    severity="high",
    issues=("https://github.com/volcano-sh/volcano/pull/5590",),
)
POD_GROUP_CAPABILITY: Final = VOLCANO_POD_GROUP_ADVICE.rule(
    "volcano-pod-group/capability",
    title="The queue of a PodGroup may give what the gang needs.",
    why="A gang is let in when its minResources are within the capability of the queue. Above that it waits for ever.",
    source="https://github.com/volcano-sh/volcano/issues/3220",
    severity="high",
    issues=(
        "https://github.com/volcano-sh/volcano/issues/452",
        "https://github.com/volcano-sh/volcano/issues/1863",
    ),
)
OF_POD_GROUPS: Final = QueueRules(
    POD_GROUP_QUEUE_EXISTS, POD_GROUP_QUEUE_OPEN, POD_GROUP_QUEUE_LEAF, POD_GROUP_CAPABILITY
)
QUEUE_CHANGED: Final = VOLCANO_POD_GROUP_ADVICE.rule(
    "volcano-pod-group/queue-changed",
    title="A PodGroup stays in its queue.",
    why=(
        "Volcano takes the change, but its queue controller keeps the PodGroup in the list of the old queue, which "
        "then cannot be closed, and nobody asks whether the new queue exists and is open."
    ),
    refused_by="nobody; the group is in the lists of two queues",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/queue/queue_controller_handler.go",
    function="updatePodGroup",
    fails="silent",
)


def advise_queue_change(group: PodGroup, before: PodGroup) -> Iterator[Problem]:
    """Yield the problem of a changed queue; placeholders and queues that were not set are ignored."""
    old, new = before.spec.queue, group.spec.queue
    if old and new and old != new and not is_placeholder(old + new):
        message = f"must stay `{old}` because Volcano does not move a PodGroup to another queue"
        fix = f"set `{old}`, or delete the PodGroup and create it in queue `{new}`"
        yield QUEUE_CHANGED.problem(group.spec.path("queue"), message, fix, new)
