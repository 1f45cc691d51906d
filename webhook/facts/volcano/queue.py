"""Rules for a Queue: its amounts, its parent and depth, the annotations for the plugin drf, and its deletion.

The parent must exist, must not run pods, and must not be below the queue. On UPDATE the webhook accepts a queue that
becomes its own ancestor. Afterwards, if a queue in this cycle changes, the webhook loops for ever. Annotations hold the
path of the queue in the hierarchy, and a weight for each step of the path. The API server drops the status of a new
queue. The webhook refuses to delete `root`, `default`, and a queue with children. If a flag is on, the webhook also
refuses to delete a queue with pods. The flag is off by default.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/queues/validate/validate_queue.go
validateResourceQuantityOfQueue, validateQueueDepth, validateHierarchicalQueue, validateHierarchicalAttributes and
validateQueueDeleting.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from webhook.facts.pods import amounts
from webhook.facts.pods.pod_resources import validate_resource_quantity_value
from webhook.facts.subject import Subject
from webhook.facts.volcano.gang_resources import is_unknown_resource
from webhook.facts.volcano.groups import VOLCANO_QUEUE
from webhook.facts.volcano.queue_amounts import (
    validate_capability_ancestor,
    validate_capability_descendant,
    validate_deserved_sum,
    validate_guarantee_sum,
)
from webhook.facts.volcano.queue_tree import ALWAYS_THERE, OPEN, QueueTree, read_queues, vcctl_command_for_queue
from webhook.facts.volcano.sent_job import is_create_request
from webhook.facts.volcano_objects.types import HIERARCHY, HIERARCHY_WEIGHTS, ROOT, Queue
from webhook.rules.problem import Problem
from webhook.text.wording import counted, did_you_mean
from webhook.typed.collections import Items
from webhook.yamltext.placeholders import is_placeholder

QUANTITY: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/quantity",
    title="An amount of the queue is not a valid quantity",
    why="An amount must not be negative, and a number of devices must be whole.",
    function="validateResourceQuantityOfQueue",
)
VOLCANO_QUEUE_ROOT: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/root",
    title="The amounts of the root queue were changed",
    why=(
        "The root queue has the capacity of the whole cluster. Volcano's webhook refuses the change unless a flag "
        "turns this protection off."
    ),
    function="AdmitQueues",
    refused_on_updates="pkg/webhooks/admission/queues/validate/validate_queue.go AdmitQueues",
)
UNKNOWN_RESOURCE: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/unknown-resource",
    title="An amount of the queue is for a resource that no node can have",
    why=(
        "No pod can request a resource of this name, so the amount limits nothing. The name of a device begins with "
        "the domain of its vendor."
    ),
    refused_by="nothing; the amount has no effect",
    level="warn",
    fails="silent",
    issues=(
        "https://github.com/volcano-sh/volcano/issues/1330",
        "https://github.com/volcano-sh/volcano/pull/1331",
    ),
)
DEPTH: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/depth",
    title="The queue is more than 5 levels deep",
    why="Volcano refuses deeper queues unless its flag max-queue-depth allows them.",
    function="validateQueueDepth",
    refused_on_updates="",
)
PARENT_ITSELF: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/parent-itself",
    title="The queue is its own parent",
    why="The queue would have no place in the tree of queues.",
    function="validateHierarchicalQueue",
    refused_on_updates="",
)
PARENT_CYCLE: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/parent-cycle",
    title="The parents of the queue form a cycle",
    why=(
        "Volcano accepts the change. From then on its webhook loops for ever when one of these queues changes. The "
        "queues cannot be deleted, and no queue can be created below them."
    ),
    refused_by="nothing; Volcano's webhook fails afterwards",
    level="warn",
    severity="high",
    fails="waiting",
)
PARENT_EXISTS: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/parent-exists",
    title="The parent queue does not exist",
    why="The queue would have no place in the tree of queues, so Volcano's webhook refuses the queue.",
    function="validateHierarchicalQueue",
    refused_on_updates="",
)
PARENT_USED: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/parent-used",
    title="The parent queue still has pods",
    why="A queue with children cannot run pods itself.",
    function="validateHierarchicalQueue",
    refused_on_updates="",
)
PARENT_DEFAULT: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/parent-default",
    title="The default queue cannot be a parent",
    why="Volcano puts Jobs that name no queue into the default queue, and refuses Jobs in a queue that has children.",
    refused_by="Volcano's webhook, for every job that names no queue",
    level="warn",
    severity="high",
    fails="controller",
)
VOLCANO_QUEUE_HIERARCHY_WEIGHTS: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/hierarchy-weights",
    title="The path of the queue has a missing or invalid weight",
    why="Volcano computes the shares of queues from these weights.",
    function="validateHierarchicalAttributes",
)
HIERARCHY_PATH: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/hierarchy-path",
    title="The path of another queue begins with the path of this queue",
    why="A step of the path that has queues below it cannot be a queue itself.",
    function="validateHierarchicalAttributes",
)
HIERARCHY_WEIGHT_FINITE: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/hierarchy-weight-finite",
    title="A weight in hierarchy-weights is not a finite number",
    why="Volcano accepts NaN and Inf but cannot compute shares from them.",
    refused_by="nothing; shares are undefined",
    level="warn",
    fails="silent",
)
STATUS: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/status",
    title="A new queue sets status",
    why="The API server drops status on creation, so the queue opens with the default state.",
    refused_by="nothing; the queue is open",
    level="warn",
    fails="silent",
)
DELETION: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/deletion",
    title="A queue that Volcano needs, or a queue with child queues, is deleted",
    why="Jobs and other queues refer to this queue, so Volcano refuses the deletion.",
    function="validateQueueDeleting",
    refused_on_updates="pkg/webhooks/admission/queues/validate/validate_queue.go validateQueueDeleting",
)
DELETION_OF_USED: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/deletion-of-used",
    title="A queue with pods is deleted",
    why="Volcano allows the deletion unless a flag of its webhook is on, and the running pods lose their queue.",
    refused_by="nothing; pods lose their queue",
    function="validateQueueDeleting",
    level="warn",
    fails="disruption",
)
DEEPEST_QUEUE: Final = 5
"""The default of `--max-queue-depth`."""
_PARENT: Final = ("spec", "parent")
_ANNOTATIONS: Final = ("metadata", "annotations")
_WEIGHTS: Final = (*_ANNOTATIONS, HIERARCHY_WEIGHTS)
_SHOWN: Final = 3
"""The most queues that a message names."""


def validate_quantity(queue: Queue) -> Iterator[Problem]:
    """Yield invalid amounts (validateResourceQuantityOfQueue). The names of resources are not checked."""
    for path, written in queue.spec.amounts_with_paths():
        for name, value in written.items():
            text = amounts.amount_as_string(value)
            broken = (
                None
                if is_placeholder(text)
                else validate_resource_quantity_value(amounts.parse_resource_name(name), text)
            )
            if broken is not None:
                yield QUANTITY.problem(
                    (*path, name), broken.message, broken.fix, shown=amounts.amount_for_message(value)
                )


def changed_root_queue_problem(differing: list[str]) -> Problem:
    """Return the problem of changed amounts of the root queue."""
    names = " and ".join(differing)
    message = f"must not change {names} of the root queue because the root queue is the whole cluster"
    return VOLCANO_QUEUE_ROOT.problem("spec", message, f"undo the change of {names}")


def advise_unknown_resource(queue: Queue) -> Iterator[Problem]:
    """Yield amounts of a resource that no node has."""
    for path, written in queue.spec.amounts_with_paths():
        for name in written:
            if is_unknown_resource(name) and not is_placeholder(name):
                message = "is a resource that no node has because the name has no domain, so the amount limits nothing"
                fix = "write a full name such as nvidia.com/gpu"
                yield UNKNOWN_RESOURCE.problem((*path, name), message, fix, name)


def too_deep_problem(parent: str, level: int) -> Problem:
    """Return the problem of a parent that puts a queue below the last level (validateQueueDepth)."""
    message = f"puts the queue on level {level}, but queues can have at most {DEEPEST_QUEUE} levels"
    return DEPTH.problem("spec.parent", message, "choose a parent nearer to the root", parent)


def validate_parent(queue: Queue, subject: Subject) -> Iterator[Problem]:
    """Yield the problems of a queue's parent, and of amounts that do not fit the parent or the children."""
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
    spec = queue.spec
    differing = [name for name in ("capability", "deserved") if spec.differs(old.spec, name)]
    if spec.guarantee.differs(old.spec.guarantee, "resource"):
        differing.append("guarantee")
    return differing


def _validate_hierarchical_queue(queue: Queue, queues: QueueTree, subject: Subject) -> Iterator[Problem]:
    """Yield the problems that validateHierarchicalQueue and validateQueueDepth would report, and a cycle of parents,
    which Volcano accepts.
    """
    name = queue.parent
    if name == queue.name:
        yield PARENT_ITSELF.problem(_PARENT, "is the queue itself", "name another queue as parent", name)
        return
    above = [name, *(ancestor.parent for ancestor in queues.queue_and_ancestors(name) if ancestor.parent)]
    if queue.name in above:
        message = (
            "makes the queue its own ancestor, which Volcano accepts, but its webhook then hangs when one of "
            "these queues changes"
        )
        yield PARENT_CYCLE.problem(_PARENT, message, "name a queue that is not below this queue", name)
    elif len(above) + 1 > DEEPEST_QUEUE:
        yield too_deep_problem(name, len(above) + 1)
    elif name not in queues.all:
        yield _missing_parent_problem(name, queues, subject)
    else:
        yield from _check_parent_has_no_pods(queues.all[name], queues)


def _missing_parent_problem(name: str, queues: QueueTree, subject: Subject) -> Problem:
    if not queues.is_whole:
        return PARENT_EXISTS.problem(_PARENT, missing=queues.as_missing_object(name))
    fix = did_you_mean(subject.cluster_view().nearest(name, queues.all), "create the queue first, or correct the name")
    return PARENT_EXISTS.problem(_PARENT, "is a queue that does not exist", fix, name)


def _check_parent_has_no_pods(parent: Queue, queues: QueueTree) -> Iterator[Problem]:
    """Yield the problem of a parent that has pods, or that is the default queue."""
    if not queues.children.get(parent.name) and parent.running_pod_count:
        message = f"runs {counted(parent.running_pod_count, 'pod')} now, but a queue with children must not run pods"
        fix = "wait until these pods end, or name another parent"
        yield PARENT_USED.problem(_PARENT, message, fix, parent.name)
    elif parent.name == "default":
        message = (
            "must not be a parent because jobs that name no queue use this queue, and Volcano would then refuse these "
            "jobs"
        )
        yield PARENT_DEFAULT.problem(_PARENT, message, "name another queue, such as `root`", parent.name)


def validate_hierarchical_queue_resources(queue: Queue, queues: QueueTree) -> Iterator[Problem]:
    """Yield the problems that validateHierarchicalQueueResources would report."""
    if queue.parent in queues.all:
        yield from validate_capability_ancestor(queue, queues)
        yield from _validate_siblings_sum(queues.all[queue.parent], queues.siblings(queue), queue)
    if children := queues.children_of(queue.name):
        yield from validate_capability_descendant(queue, queues)
        yield from _validate_siblings_sum(queue, children, queue)


def _validate_siblings_sum(parent: Queue, children: Items[Queue], queue: Queue) -> Iterator[Problem]:
    """Yield amounts of children that together exceed the amount of the parent (validateSiblingsSum)."""
    yield from validate_guarantee_sum(parent, children, queue)
    yield from validate_deserved_sum(parent, children, queue)


def validate_hierarchical_attributes(queue: Queue, subject: Subject) -> Iterator[Problem]:
    """Yield a path without a weight for each step, and a path that is the beginning of another path."""
    path, weights = _annotation_value(queue, HIERARCHY), _annotation_value(queue, HIERARCHY_WEIGHTS)
    if not (path or weights) or is_placeholder(path + weights):
        return
    steps, numbers = path.count("/") + 1, queue.charged_list(weights.split("/"))
    if steps != len(numbers):
        message = f"must have {counted(steps, 'weight')}, one for each step of {HIERARCHY}"
        yield VOLCANO_QUEUE_HIERARCHY_WEIGHTS.problem(_WEIGHTS, message, "write a weight for each step", weights)
        return
    wrong = next((index for index, text in enumerate(numbers) if not _is_positive_weight(text)), None)
    yield from _check_hierarchy_weight_finite(numbers[:wrong], weights)
    if wrong is None:
        yield from _check_hierarchy_path_is_no_prefix(queue, path, subject)
    else:
        message = f"must be numbers above 0, but one weight is `{numbers[wrong]}`"
        yield VOLCANO_QUEUE_HIERARCHY_WEIGHTS.problem(_WEIGHTS, message, "write a number above 0", weights)


def _annotation_value(queue: Queue, name: str) -> str:
    return queue.metadata.annotations.get(name, "")


def _check_hierarchy_weight_finite(numbers: Items[str], weights: str) -> Iterator[Problem]:
    for text in numbers:
        if not math.isfinite(_parse_weight(text)):
            message = f"has the weight `{text}`, which Volcano accepts but cannot compute shares from"
            yield HIERARCHY_WEIGHT_FINITE.problem(_WEIGHTS, message, "write a finite number, such as 1", weights)


def _is_positive_weight(text: str) -> bool:
    return not _parse_weight(text) <= 0


def _parse_weight(text: str) -> float:
    """Return a number as Go's strconv.ParseFloat reads it; 0 for other texts."""
    try:
        return 0 if text != text.strip() else float(text)
    except ValueError:
        return 0


def _check_hierarchy_path_is_no_prefix(queue: Queue, path: str, subject: Subject) -> Iterator[Problem]:
    """Yield a path that is the beginning of another queue's path, as validateHierarchicalAttributes does."""
    queues = subject.once(read_queues)
    below = (other for other in queues.all.values() if _annotation_value(other, HIERARCHY).startswith(f"{path}/"))
    other = next((other for other in below if other.name != queue.name), None)
    if other is None:
        return
    message = (
        f"must not be the beginning of the path of another queue, but the path of queue `{other.name}` is "
        f"`{_annotation_value(other, HIERARCHY)}`"
    )
    fix = f"write {path}/{queue.name}, and add a weight to volcano.sh/hierarchy-weights"
    if path.endswith(f"/{queue.name}"):
        fix = "write a path that no other path begins with"
    yield HIERARCHY_PATH.problem((*_ANNOTATIONS, HIERARCHY), message, fix, path)


def warn_of_dropped_status(queue: Queue) -> Iterator[Problem]:
    """Yield the status of a new queue, which the API server drops."""
    if queue.state not in ("", OPEN):
        message = "has no effect on a new queue because the API server drops the status, so the queue opens"
        fix = f"remove status, and close the queue after it is created ({vcctl_command_for_queue('close', queue.name)})"
        yield STATUS.problem(queue.status.path("state"), message, fix, queue.state)


def check_queue_deletion(subject: Subject) -> Iterator[Problem]:
    """Yield the reasons why a queue cannot or should not be deleted."""
    queue = subject.typed_old(Queue)
    name = queue.name or subject.attributes.name
    children = sorted(subject.once(read_queues).children.get(name, ()))
    if name in ALWAYS_THERE:
        yield _deletion_problem(name, "because Volcano needs this queue", "keep the queue")
    elif children:
        shown = ", ".join(children[:_SHOWN]) + (", …" if len(children) > _SHOWN else "")
        fix = f"delete {'that queue' if len(children) == 1 else 'those queues'} first"
        yield _deletion_problem(name, f"while it has {counted(len(children), 'queue')} below ({shown})", fix)
    elif queue.running_pod_count:
        yield _deletion_of_used_queue_problem(name, queue.running_pod_count)


def _deletion_problem(name: str, why: str, fix: str) -> Problem:
    return DELETION.problem("metadata.name", f"must not be deleted {why}", fix, name)


def _deletion_of_used_queue_problem(name: str, pods: int) -> Problem:
    message = f"should not be deleted while the queue has {counted(pods, 'pod')} because running pods lose their queue"
    fix = f"close the queue ({vcctl_command_for_queue('close', name)}), wait until the pods end, then delete the queue"
    return DELETION_OF_USED.problem("metadata.name", message, fix, name)
