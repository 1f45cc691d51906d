"""Rules for the deletion of queues: the root, those with children, and those with pods.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/queues/validate/validate_queue.go validateQueueDeleting;
that pods lose their queue is refused only with a flag that is off by default.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.subject import Subject
from webhook.facts.volcano.groups import VOLCANO_QUEUE
from webhook.facts.volcano.queue_tree import ALWAYS_THERE, read_queues, vcctl_command_for_queue
from webhook.facts.volcano_objects.types import Queue
from webhook.problem import Problem
from webhook.wording import counted

DELETION: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/deletion",
    title="The root, the default queue and queues with children are not deleted.",
    why="Jobs and queues refer to them.",
    function="validateQueueDeleting",
    refused_on_updates="pkg/webhooks/admission/queues/validate/validate_queue.go validateQueueDeleting",
)
DELETION_OF_USED: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/deletion-of-used",
    title="A queue that is deleted has no pods.",
    why="Unless a flag of its webhook is on, Volcano lets it go, and pods that run in it lose their queue.",
    refused_by="nobody; pods lose their queue",
    function="validateQueueDeleting",
    level="warn",
    fails="disruption",
)


_SHOWN: Final = 3
"""How many queues a message names."""


def check_queue_deletion(subject: Subject) -> Iterator[Problem]:
    """Yield the reasons why a queue cannot be deleted."""
    queue = subject.typed_old(Queue)
    name = queue.name or subject.attributes.name
    children = sorted(subject.once(read_queues).children.get(name, ()))
    if name in ALWAYS_THERE:
        yield _deletion_problem(name, "because Volcano needs it", "keep the queue")
    elif children:
        shown = ", ".join(children[:_SHOWN]) + (", …" if len(children) > _SHOWN else "")
        fix = f"delete {'that queue' if len(children) == 1 else 'those queues'} first"
        yield _deletion_problem(name, f"while it has {counted(len(children), 'queue')} below ({shown})", fix)
    elif queue.running_pod_count:
        yield _deletion_of_used_queue_problem(name, queue.running_pod_count)


def _deletion_problem(name: str, why: str, fix: str) -> Problem:
    return DELETION.problem("metadata.name", f"must not be deleted {why}", fix, name)


def _deletion_of_used_queue_problem(name: str, pods: int) -> Problem:
    message = f"should not be deleted while {counted(pods, 'pod')} run in it because these pods lose their queue"
    fix = f"close the queue ({vcctl_command_for_queue('close', name)}), wait until the pods end, then delete the queue"
    return DELETION_OF_USED.problem("metadata.name", message, fix, name)
