"""Rules for a Queue by itself: its amounts, its depth, and the root queue.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/queues/validate/validate_queue.go
validateResourceQuantityOfQueue and validateQueueDepth.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.pods import amounts
from webhook.facts.pods.pod_resources import validate_resource_quantity_value
from webhook.facts.volcano.gang_resources import is_unknown_resource
from webhook.facts.volcano.groups import VOLCANO_QUEUE
from webhook.facts.volcano_objects.types import Queue
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

QUANTITY: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/quantity",
    title="The amounts of a queue are quantities, of devices whole ones.",
    why="Amounts are not negative, and a device is given whole.",
    function="validateResourceQuantityOfQueue",
)

VOLCANO_QUEUE_ROOT: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/root",
    title="The amounts of the root queue are not changed.",
    why="The root queue has what the cluster has. A flag of Volcano's webhook switches the protection off.",
    function="AdmitQueues",
    refused_on_updates="pkg/webhooks/admission/queues/validate/validate_queue.go AdmitQueues",
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


def validate_quantity(queue: Queue) -> Iterator[Problem]:
    """Yield invalid amounts (validateResourceQuantityOfQueue); names are not checked."""
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
    message = f"must not change {names} of the root queue because the root queue stands for the whole cluster"
    return VOLCANO_QUEUE_ROOT.problem("spec", message, f"undo the change of {names}")


def advise_unknown_resource(queue: Queue) -> Iterator[Problem]:
    """Yield amounts of a resource that no node has."""
    for path, written in queue.spec.amounts_with_paths():
        for name in written:
            if is_unknown_resource(name) and not is_placeholder(name):
                message = "is a resource that no node has because the name has no domain, so the amount limits nothing"
                fix = "write a full name such as nvidia.com/gpu"
                yield UNKNOWN_RESOURCE.problem((*path, name), message, fix, name)
