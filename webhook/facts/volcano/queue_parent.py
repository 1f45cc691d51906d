"""Rules for the parent of a Queue: it must exist, may have children, and must not be below the queue.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/queues/validate/validate_queue.go
validateHierarchicalQueue. On UPDATE the webhook does not see that a queue becomes
its own ancestor; afterwards it loops for ever when one of them changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.subject import Subject
from webhook.facts.volcano.groups import VOLCANO_QUEUE
from webhook.facts.volcano.queue import changed_root_queue_problem
from webhook.facts.volcano.queue_capability import validate_capability_ancestor, validate_capability_descendant
from webhook.facts.volcano.queue_depth import DEEPEST, too_deep_problem
from webhook.facts.volcano.queue_deserved import validate_deserved_sum
from webhook.facts.volcano.queue_guarantee import validate_guarantee_sum
from webhook.facts.volcano.queue_tree import QueueTree, read_queues
from webhook.facts.volcano.sent_job import is_create_request
from webhook.facts.volcano_objects.types import ROOT, Queue
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.typed.collections import Items
from webhook.wording import counted, did_you_mean

PARENT_ITSELF: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/parent-itself",
    title="A queue is not its own parent.",
    why="Its place in the tree would be unknown.",
    function="validateHierarchicalQueue",
    refused_on_updates="",
)
PARENT_CYCLE: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/parent-cycle",
    title="A queue is not below itself.",
    why=(
        "Volcano takes such a change. From then on its webhook loops for ever when one of these queues changes, they "
        "cannot be deleted, and no queue can be created below them."
    ),
    refused_by="nobody; Volcano's webhook fails afterwards",
    level="warn",
    severity="high",
    fails="waiting",
)
PARENT_EXISTS: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/parent-exists",
    title="The parent of a queue exists.",
    why="A queue is stored only below one that is there.",
    function="validateHierarchicalQueue",
    refused_on_updates="",
)
PARENT_USED: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/parent-used",
    title="The parent of a first child has no pods.",
    why="A queue with children holds no Jobs.",
    function="validateHierarchicalQueue",
    refused_on_updates="",
)
PARENT_DEFAULT: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/parent-default",
    title="The default queue has no children.",
    why="Volcano puts Jobs that name no queue into the default queue, and refuses Jobs in a queue that has children.",
    refused_by="Volcano's webhook, all jobs that name no queue",
    level="warn",
    severity="high",
    fails="controller",
)

_PARENT: Final = ("spec", "parent")


def validate_parent(queue: Queue, subject: Subject) -> Iterator[Problem]:
    """Yield the problems of a queue's parent, and of a queue with children."""
    queues, old = subject.once(read_queues), subject.typed_old(Queue)
    is_new = is_create_request(subject)
    is_moved = is_new or old.parent != queue.parent
    differing = _differing_amounts(queue, old)
    if queue.name == ROOT and differing and not is_moved:
        yield changed_root_queue_problem(differing)
    is_refused = False
    if queue.parent and is_moved and not is_placeholder(queue.parent):
        for broken in _validate_hierarchical_queue(queue, queues, subject):
            is_refused = True
            yield broken
    if (is_moved or differing) and queue.name != ROOT and not is_refused:
        yield from validate_hierarchical_queue_resources(queue, queues)


def _differing_amounts(queue: Queue, old: Queue) -> list[str]:
    """Return the fields of amounts that have changed."""
    spec = queue.spec
    differing = [name for name in ("capability", "deserved") if spec.differs(old.spec, name)]
    if spec.guarantee.differs(old.spec.guarantee, "resource"):
        differing.append("guarantee")
    return differing


def _validate_hierarchical_queue(queue: Queue, queues: QueueTree, subject: Subject) -> Iterator[Problem]:
    """Yield the problems that validateHierarchicalQueue and validateQueueDepth would report."""
    name = queue.parent
    if name == queue.name:
        yield PARENT_ITSELF.problem(_PARENT, "is the queue itself", "name another queue as parent", name)
        return
    above = [name, *(ancestor.parent for ancestor in queues.queue_and_ancestors(name) if ancestor.parent)]
    if queue.name in above:
        message = (
            "makes the queue its own ancestor, which Volcano accepts, but then its webhook does not answer when one of "
            "these queues changes"
        )
        yield PARENT_CYCLE.problem(_PARENT, message, "name a queue that is not below this one", name)
    elif len(above) + 1 > DEEPEST:
        yield too_deep_problem(name, len(above) + 1)
    elif name not in queues.all:
        yield _missing_parent_problem(name, queues, subject)
    else:
        yield from _check_parent_has_no_pods(queues.all[name], queues)


def _missing_parent_problem(name: str, queues: QueueTree, subject: Subject) -> Problem:
    if not queues.is_whole:
        return PARENT_EXISTS.problem(_PARENT, missing=queues.as_missing_object(name))
    fix = did_you_mean(subject.cluster_view().nearest(name, queues.all), "create the queue first")
    return PARENT_EXISTS.problem(_PARENT, "is a queue that does not exist", fix, name)


def _check_parent_has_no_pods(parent: Queue, queues: QueueTree) -> Iterator[Problem]:
    """Yield the problem of a parent that has pods, or may get jobs."""
    if not queues.children.get(parent.name) and parent.running_pod_count:
        message = f"runs {counted(parent.running_pod_count, 'pod')} now, but a queue with children must not run pods"
        fix = "wait until these pods end, or name another parent"
        yield PARENT_USED.problem(_PARENT, message, fix, parent.name)
    elif parent.name == "default":
        message = (
            "must not be a parent because jobs that name no queue use it, and Volcano would then refuse these jobs"
        )
        yield PARENT_DEFAULT.problem(_PARENT, message, "name another queue", parent.name)


def validate_hierarchical_queue_resources(queue: Queue, queues: QueueTree) -> Iterator[Problem]:
    """Yield the problems that validateHierarchicalQueueResources would report."""
    if queue.parent in queues.all:
        yield from validate_capability_ancestor(queue, queues)
        yield from _validate_siblings_sum(queues.all[queue.parent], queues.siblings(queue), queue)
    if children := queues.children_of(queue.name):
        yield from validate_capability_descendant(queue, queues)
        yield from _validate_siblings_sum(queue, children, queue)


def _validate_siblings_sum(parent: Queue, children: Items[Queue], queue: Queue) -> Iterator[Problem]:
    """Yield sums of children above what the parent has, which is 0 by default (validateSiblingsSum)."""
    yield from validate_guarantee_sum(parent, children, queue)
    yield from validate_deserved_sum(parent, children, queue)
