"""Compares capability, deserved amounts and guarantee of a queue with its ancestors, siblings and children.

The children of a queue together may not have more than the queue.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/queues/validate/validate_queue.go
validateHierarchicalQueueResources.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from webhook.apimachinery.quantity import Quantity
from webhook.facts.pods.amounts import HUGE
from webhook.facts.volcano.groups import VOLCANO_QUEUE
from webhook.facts.volcano.queue_tree import QueueTree
from webhook.facts.volcano_objects.types import Queue
from webhook.rules.problem import Problem
from webhook.typed.collections import Items

CAPABILITY_ANCESTOR: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/capability-ancestor",
    title="The capability is above the capability of a parent queue",
    why="A queue can never use more than the queue above it.",
    function="validateChildAgainstAncestor",
    refused_on_updates="",
)
CAPABILITY_DESCENDANT: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/capability-descendant",
    title="The capability is below the capability of a child queue",
    why="The queues below could never use the capability that they declare.",
    function="validateChildrenConstraints",
    refused_on_updates="",
)
DESERVED_SUM: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/deserved-sum",
    title="The child queues deserve more than their parent",
    why="A parent queue can divide only its own deserved amount among its children.",
    function="validateSiblingsSum",
    refused_on_updates="",
)
DESERVED_CAPABILITY: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/deserved-capability",
    title="deserved is above capability",
    why="The queue can never use more than its capability.",
    function="validateResourceQuantityOfQueue",
)
GUARANTEE_SUM: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/guarantee-sum",
    title="The child queues are guaranteed more than their parent",
    why="A parent queue can pass on only its own guarantee.",
    function="validateSiblingsSum",
    refused_on_updates="",
)
GUARANTEE_DESERVED: Final = VOLCANO_QUEUE.rule(
    "volcano-queue/guarantee-deserved",
    title="guarantee is above deserved",
    why="The guarantee is a part of the share that the queue deserves.",
    function="validateResourceQuantityOfQueue",
)
Amounts: TypeAlias = Mapping[str, Quantity]


@dataclass(frozen=True, slots=True)
class SiblingExcess:
    """A resource for which the children of a queue together exceed the amount of the queue, in one field.

    Args:
        field: the field with the amounts, such as `deserved`.
        resource: the resource.
        total: the amount of the children together.
        limit: the amount of the queue; None if the field does not name the resource.
        is_unset: whether the queue does not set the field. Volcano before 1.15 allows such a queue.
    """

    field: str
    resource: str
    total: Quantity
    limit: Quantity | None
    is_unset: bool

    def explain(self, parent: Queue, queue: Queue) -> tuple[str, str]:
        """Return the message and the fix; `queue` is the queue that changes: the parent or one of the children."""
        field, name = f"spec.{self.field}", self.resource
        has = "no" if self.limit is None else self.limit
        since = ", which Volcano refuses since 1.15" if self.is_unset else ""
        if queue is parent:
            message = f"has {has} {name}, but {field} of the queues below is {self.total} {name} together{since}"
            return message, f"set at least {self.total}, or lower {field} of the queues below"
        message = (
            f"brings the queues below `{parent.name}` to {self.total} {name} together, but {field} of `{parent.name}` "
            f"has {has if self.limit is None else f'only {has}'} {name}{since}"
        )
        excess = self.total if self.limit is None else self.total.sub(self.limit)
        lower = f"lower {field} of these queues by {excess} {name} in all"
        return message, f"{lower}, or raise {field} of `{parent.name}`"


def first_excess(field: str, shares: Iterable[Amounts], limits: Amounts) -> SiblingExcess | None:
    """Return the first resource for which the children of a queue together exceed the queue, or None.

    Args:
        field: the field with the amounts, such as `deserved`.
        shares: the amounts of each child.
        limits: the amounts of the queue.
    """
    total = _sum_of_shares(shares)
    name = next((name for name, amount in total.items() if _exceeds_share(name, amount, limits)), None)
    return None if name is None else SiblingExcess(field, name, total[name], limits.get(name), not limits)


def _sum_of_shares(children: Iterable[Amounts]) -> Amounts:
    total: dict[str, Quantity] = {}
    for shares in children:
        for name, amount in shares.items():
            if is_resource_compared_by_scheduler(name):
                total[name] = total[name].add(amount) if name in total else amount
    return total


def _exceeds_share(name: str, total: Quantity, limits: Amounts) -> bool:
    """Return whether a sum is too large (LessPartly). A device that the parent does not name is too much, even with
    the amount 0.
    """
    if name in limits:
        return total > limits[name]
    return bool(total) or name not in ("cpu", "memory")


def is_resource_compared_by_scheduler(name: str) -> bool:
    """Return whether Volcano compares a resource (pkg/scheduler/api/resource_info.go NewResource)."""
    return "/" in name or name in ("cpu", "memory", "pods", "ephemeral-storage") or name.startswith(HUGE)


def validate_capability_ancestor(queue: Queue, queues: QueueTree) -> Iterator[Problem]:
    """Yield a capability above the capability of the nearest ancestor with a limit (validateChildAgainstAncestor)."""
    for name, most in _limits_of_capability(queue):
        above = next(
            (above for above in queues.queue_and_ancestors(queue.parent) if above.spec.capability.get(name)), None
        )
        limit = above.spec.capability[name] if above else most
        if above and most > limit:
            message = f"must not be more than {limit}, the capability of queue `{above.name}` above this queue"
            fix = f"lower the amount, or raise the capability of `{above.name}`"
            yield CAPABILITY_ANCESTOR.problem(queue.spec.path("capability", name), message, fix, str(most))


def validate_capability_descendant(queue: Queue, queues: QueueTree) -> Iterator[Problem]:
    """Yield a capability below the capability of the topmost descendants with a limit (validateChildrenConstraints)."""
    for name, most in _limits_of_capability(queue):
        limited = queues.topmost_descendants_with_limit(queue.name, name)
        below = next((below for below in limited if below.spec.capability[name] > most), None)
        if below:
            largest = below.spec.capability[name]
            message = f"must not be less than {largest}, the capability of queue `{below.name}` below this queue"
            fix = f"raise the amount, or lower the capability of `{below.name}`"
            yield CAPABILITY_DESCENDANT.problem(queue.spec.path("capability", name), message, fix, str(most))


def _limits_of_capability(queue: Queue) -> Iterator[tuple[str, Quantity]]:
    """Yield the resources that the capability of a queue limits, each with its limit."""
    return (
        (name, most) for name, most in queue.spec.capability.items() if most and is_resource_compared_by_scheduler(name)
    )


def validate_deserved_sum(parent: Queue, children: Items[Queue], queue: Queue) -> Iterator[Problem]:
    """Yield deserved amounts of children that together exceed the amount of their parent (validateSiblingsSum)."""
    if excess := first_excess("deserved", (child.spec.deserved for child in children), parent.spec.deserved):
        message, fix = excess.explain(parent, queue)
        yield DESERVED_SUM.problem(queue.spec.path("deserved"), message, fix)


def validate_deserved_capability(queue: Queue) -> Iterator[Problem]:
    """Yield resources with a deserved amount above the capability (validateResourceQuantityOfQueue)."""
    spec = queue.spec
    for name, share in spec.deserved.items():
        most = spec.capability.get(name, share)
        if share > most:
            message, fix = (
                f"must not be more than the capability of {most}",
                "lower the amount, or raise the capability",
            )
            yield DESERVED_CAPABILITY.problem(spec.path("deserved", name), message, fix, str(share))


def validate_guarantee_sum(parent: Queue, children: Items[Queue], queue: Queue) -> Iterator[Problem]:
    """Yield guarantees of children that together exceed the guarantee of their parent (validateSiblingsSum)."""
    shares = (child.spec.guarantee.resource for child in children)
    if excess := first_excess("guarantee", shares, parent.spec.guarantee.resource):
        message, fix = excess.explain(parent, queue)
        yield GUARANTEE_SUM.problem(queue.spec.path("guarantee", "resource"), message, fix)


def validate_guarantee_deserved(queue: Queue) -> Iterator[Problem]:
    """Yield resources with a guarantee above the deserved amount (validateResourceQuantityOfQueue). Releases of Volcano
    before 1.14 allow a guarantee without a deserved amount.
    """
    spec = queue.spec
    for name, least in spec.guarantee.resource.items():
        path = spec.path("deserved", name)
        if name not in spec.written_deserved:
            message = f"is not set, but must be at least the guarantee of {least} since Volcano 1.14"
            yield GUARANTEE_DESERVED.problem(path, message, f"set {least} or more")
        elif (share := spec.deserved.get(name, least)) < least:
            message, fix = f"must not be less than the guarantee of {least}", "raise the amount, or lower the guarantee"
            yield GUARANTEE_DESERVED.problem(path, message, fix, str(share))
