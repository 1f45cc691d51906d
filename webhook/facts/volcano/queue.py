"""The amounts of a Queue: by themselves, and against those of the queues above and below it.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/queues/validate/validate_queue.go
validateResourceQuantityOfQueue and validateHierarchicalQueueResources.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from webhook.facts.pods import amounts
from webhook.facts.pods.amounts import HUGE
from webhook.facts.pods.pod_resources import validate_resource_quantity_value
from webhook.facts.volcano.gang_resources import is_unknown_resource
from webhook.facts.volcano.groups import VOLCANO_QUEUE
from webhook.facts.volcano.queue_tree import Queues
from webhook.facts.volcano_objects.types import Queue
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.quantity import Quantity
from webhook.typed.collections import Items

CAPABILITY_ANCESTOR: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/capability-ancestor",
    title="A queue may not have more than the queues above it.",
    why="The nearest queue above that limits a resource counts.",
    function="validateChildAgainstAncestor",
)
CAPABILITY_DESCENDANT: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/capability-descendant",
    title="A queue may not have less than the queues below it.",
    why="They could not have what they say.",
    function="validateChildrenConstraints",
)
GUARANTEE_SUM: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/guarantee-sum",
    title="Queues below one are guaranteed no more than it together.",
    why="A queue without a guarantee has none to give.",
    function="validateSiblingsSum",
)
DESERVED_SUM: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/deserved-sum",
    title="Queues below one deserve no more than it together.",
    why="A queue that deserves nothing has nothing to share.",
    function="validateSiblingsSum",
)
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

Amounts: TypeAlias = Mapping[str, Quantity]
_NONE: Final = Quantity(0)


def validate_hierarchical_queue_resources(queue: Queue, queues: Queues) -> Iterator[Problem]:
    """Yield the problems that validateHierarchicalQueueResources would report."""
    if queue.parent in queues.all:
        yield from _capability_ancestor(queue, queues)
        yield from _validate_siblings_sum(queues.all[queue.parent], queues.siblings(queue), queue)
    if children := queues.below(queue.name):
        yield from _capability_descendant(queue, queues)
        yield from _validate_siblings_sum(queue, children, queue)


def _capability_ancestor(queue: Queue, queues: Queues) -> Iterator[Problem]:
    """As validateChildAgainstAncestor: the nearest queue above that limits a resource."""
    for name, most in _limits(queue):
        above = next((above for above in queues.upwards(queue.parent) if above.spec.capability.get(name)), None)
        limit = above.spec.capability[name] if above else most
        if above and most > limit:
            message = f"must not be more than {limit}, the capability of queue `{above.name}` above this queue"
            fix = f"lower the amount, or raise the capability of `{above.name}`"
            yield CAPABILITY_ANCESTOR.problem(queue.spec.path("capability", name), message, fix, str(most))


def _capability_descendant(queue: Queue, queues: Queues) -> Iterator[Problem]:
    """The first part of validateChildrenConstraints: what the topmost queues below allow."""
    for name, most in _limits(queue):
        limited = queues.limited_below(queue.name, name)
        below = next((below for below in limited if below.spec.capability[name] > most), None)
        if below:
            largest = below.spec.capability[name]
            message = f"must not be less than {largest}, the capability of queue `{below.name}` below this queue"
            fix = f"raise the amount, or lower the capability of `{below.name}`"
            yield CAPABILITY_DESCENDANT.problem(queue.spec.path("capability", name), message, fix, str(most))


def _limits(queue: Queue) -> Iterator[tuple[str, Quantity]]:
    """What the capability of a queue limits."""
    return ((name, most) for name, most in queue.spec.capability.items() if most and _is_scheduled(name))


def _validate_siblings_sum(parent: Queue, children: Items[Queue], queue: Queue) -> Iterator[Problem]:
    """As validateSiblingsSum: what the children have together is within what the parent has, which is 0 by default."""
    yield from _guarantee_sum(parent, children, queue)
    yield from _deserved_sum(parent, children, queue)


def _guarantee_sum(parent: Queue, children: Items[Queue], queue: Queue) -> Iterator[Problem]:
    shares = (child.spec.guarantee.resource for child in children)
    if excess := _excess("guarantee", shares, parent.spec.guarantee.resource):
        message, fix = excess.explain(parent, queue)
        yield GUARANTEE_SUM.problem(queue.spec.path("guarantee", "resource"), message, fix)


def _deserved_sum(parent: Queue, children: Items[Queue], queue: Queue) -> Iterator[Problem]:
    if excess := _excess("deserved", (child.spec.deserved for child in children), parent.spec.deserved):
        message, fix = excess.explain(parent, queue)
        yield DESERVED_SUM.problem(queue.spec.path("deserved"), message, fix)


@dataclass(frozen=True, slots=True)
class _Excess:
    """A resource of which the children of a queue have more in a field than the queue."""

    field: str
    resource: str
    total: Quantity
    limit: Quantity

    def explain(self, parent: Queue, queue: Queue) -> tuple[str, str]:
        """What is wrong, and what to do; `queue` is the one that changes: the parent or one of the children."""
        field, name = f"spec.{self.field}", self.resource
        if queue is parent:
            message = f"has {self.limit} {name}, but {field} of the queues below is {self.total} {name} together"
            return message, f"set at least {self.total}, or lower {field} of the queues below"
        message = (
            f"brings the queues below `{parent.name}` to {self.total} {name} together, but {field} of `{parent.name}` "
            f"is only {self.limit} {name}"
        )
        return message, f"lower the amount, or raise {field} of `{parent.name}`"


def _excess(field: str, shares: Iterable[Amounts], has: Amounts) -> _Excess | None:
    total = _sum(shares)
    name = next((name for name, amount in total.items() if _exceeds(name, amount, has)), None)
    return None if name is None else _Excess(field, name, total[name], has.get(name, _NONE))


def _sum(children: Iterable[Amounts]) -> Amounts:
    total: dict[str, Quantity] = {}
    for shares in children:
        for name, amount in shares.items():
            if _is_scheduled(name):
                total[name] = total[name].add(amount) if name in total else amount
    return total


def _exceeds(name: str, total: Quantity, has: Amounts) -> bool:
    """Function LessPartly with missing as 0; a device that the parent does not name is too much even where it is 0."""
    if name in has:
        return total > has[name]
    return bool(total) or name not in ("cpu", "memory")


def _is_scheduled(name: str) -> bool:
    """Resources that Volcano compares (pkg/scheduler/api/resource_info.go NewResource)."""
    return "/" in name or name in ("cpu", "memory", "pods", "ephemeral-storage") or name.startswith(HUGE)


def validate_quantity(queue: Queue) -> Iterator[Problem]:
    """As validateResourceQuantityOfQueue, of each amount by itself; names are not looked at."""
    for path, written in queue.spec.written_amounts():
        for name, value in written.items():
            text = amounts.text_of(value)
            broken = None if is_placeholder(text) else validate_resource_quantity_value(amounts.name_of(name), text)
            if broken is not None:
                yield QUANTITY.problem((*path, name), broken.message, broken.fix, shown=amounts.shown(value))


def validate_guarantee_deserved(queue: Queue) -> Iterator[Problem]:
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


def validate_deserved_capability(queue: Queue) -> Iterator[Problem]:
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


def advise_unknown_resource(queue: Queue) -> Iterator[Problem]:
    """Amounts of something that no node has."""
    for path, written in queue.spec.written_amounts():
        for name in written:
            if is_unknown_resource(name) and not is_placeholder(name):
                message = "is a resource that no node has because the name has no domain, so the amount limits nothing"
                fix = "write a full name such as nvidia.com/gpu"
                yield UNKNOWN_RESOURCE.problem((*path, name), message, fix, name)
