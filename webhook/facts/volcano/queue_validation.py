"""What Volcano's webhook refuses of a Queue by itself, and queues that do something else than they say.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/queues/validate/validate_queue.go. Where a queue stands
among others is queue_parent.py's, its annotations are queue_hierarchy.py's. The status is dropped when a queue is
created.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.pods import amounts
from webhook.facts.pods.resource_validation import validate_resource_quantity_value
from webhook.facts.subject import Subject
from webhook.facts.volcano.gang_resources import is_unknown_resource
from webhook.facts.volcano.groups import VOLCANO_QUEUE
from webhook.facts.volcano.job import is_created
from webhook.facts.volcano.queue_hierarchy import validate_hierarchical_attributes
from webhook.facts.volcano.queue_parent import validate_parent
from webhook.facts.volcano.queues import OPEN, operate
from webhook.facts.volcano.types import Queue
from webhook.facts.volcano_objects.defaults import defaulted
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

QUANTITY: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/quantity",
    title="The amounts of a queue are quantities, of devices whole ones.",
    why="Amounts are not negative, and a device is given whole.",
    function="validateResourceQuantityOfQueue",
)
GUARANTEE_DESERVED: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/guarantee-deserved",
    title="What a queue is guaranteed, it deserves.",
    why="The guarantee is a part of the share that the queue deserves.",
    function="validateResourceQuantityOfQueue",
)
DESERVED_CAPABILITY: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/deserved-capability",
    title="A queue deserves no more than its capability.",
    why="It could never have the rest.",
    function="validateResourceQuantityOfQueue",
)
UNKNOWN_RESOURCE: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/unknown-resource",
    title="The amounts of a queue are of resources that nodes have.",
    why="A limit of a name that no pod can ask for limits nothing. A device has the domain of its vendor.",
    refused_by="nobody; the amount has no effect",
    level="warn",
    fails="silent",
    issues=(
        "https://github.com/volcano-sh/volcano/issues/1330",
        "https://github.com/volcano-sh/volcano/pull/1331",
    ),
)
STATUS: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/status",
    title="A new queue has no status.",
    why="The API server drops it, so a queue is open when it is created, whatever it says.",
    refused_by="nobody; the queue is open",
    level="warn",
    fails="silent",
)


def queue(subject: Subject) -> Iterator[Problem]:
    """A queue that is created or changed."""
    queue = Queue.of(subject.once(defaulted), (), subject.reading)
    yield from _quantity(queue)
    yield from _guarantee_deserved(queue)
    yield from _deserved_capability(queue)
    yield from validate_hierarchical_attributes(queue, subject)
    yield from validate_parent(queue, subject)
    yield from _unknown_resource(queue)
    if is_created(subject):
        yield from _status(queue)


def _quantity(queue: Queue) -> Iterator[Problem]:
    """As validateResourceQuantityOfQueue, of each amount by itself; names are not looked at."""
    for path, written in queue.spec.written_amounts():
        for name, value in written.items():
            text = amounts.text_of(value)
            broken = None if is_placeholder(text) else validate_resource_quantity_value(amounts.name_of(name), text)
            if broken is not None:
                yield QUANTITY.problem((*path, name), broken.message, broken.fix, shown=amounts.shown(value))


def _guarantee_deserved(queue: Queue) -> Iterator[Problem]:
    """A further part of validateResourceQuantityOfQueue: a queue deserves what it is guaranteed."""
    spec = queue.spec
    for name, least in spec.guarantee.resource.items():
        path = spec.path("deserved", name)
        if name not in spec.written_deserved:
            message = f"must be set because the guarantee has {least} of this resource, and deserved must not be less"
            yield GUARANTEE_DESERVED.problem(path, message, f"set {least} or more")
        elif (share := spec.deserved.get(name, least)) < least:
            message, fix = f"must not be less than the guarantee of {least}", "raise the amount, or lower the guarantee"
            yield GUARANTEE_DESERVED.problem(path, message, fix, str(share))


def _deserved_capability(queue: Queue) -> Iterator[Problem]:
    """The rest of validateResourceQuantityOfQueue: a queue deserves no more than its capability."""
    spec = queue.spec
    for name, share in spec.deserved.items():
        most = spec.capability.get(name, share)
        if share > most:
            message, fix = (
                f"must not be more than the capability of {most}",
                "lower the amount, or raise the capability",
            )
            yield DESERVED_CAPABILITY.problem(spec.path("deserved", name), message, fix, str(share))


def _unknown_resource(queue: Queue) -> Iterator[Problem]:
    """Amounts of something that no node has."""
    for path, written in queue.spec.written_amounts():
        for name in written:
            if is_unknown_resource(name) and not is_placeholder(name):
                message = "is a resource that no node has because the name has no domain, so the amount limits nothing"
                fix = "write a full name such as nvidia.com/gpu"
                yield UNKNOWN_RESOURCE.problem((*path, name), message, fix, name)


def _status(queue: Queue) -> Iterator[Problem]:
    if queue.state not in ("", OPEN):
        message = "has no effect on a new queue because the API server drops the status, so the queue opens"
        fix = f"remove status, and close the queue once it exists ({operate('close', queue.name)})"
        yield STATUS.problem(queue.status.path("state"), message, fix, queue.state)
