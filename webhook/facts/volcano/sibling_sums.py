"""Compares what the queues below one queue have together with what that queue has.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/queues/validate/validate_queue.go
validateHierarchicalQueueResources.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from webhook.facts.pods.amounts import HUGE
from webhook.facts.volcano_objects.types import Queue
from webhook.quantity import Quantity

Amounts: TypeAlias = Mapping[str, Quantity]
_NONE: Final = Quantity(0)


@dataclass(frozen=True, slots=True)
class SiblingExcess:
    """A resource of which the children of a queue have more in a field than the queue."""

    field: str
    resource: str
    total: Quantity
    limit: Quantity

    def explain(self, parent: Queue, queue: Queue) -> tuple[str, str]:
        """Return the message and the fix; `queue` is the one that changes: the parent or one of the children."""
        field, name = f"spec.{self.field}", self.resource
        if queue is parent:
            message = f"has {self.limit} {name}, but {field} of the queues below is {self.total} {name} together"
            return message, f"set at least {self.total}, or lower {field} of the queues below"
        message = (
            f"brings the queues below `{parent.name}` to {self.total} {name} together, but {field} of `{parent.name}` "
            f"is only {self.limit} {name}"
        )
        return message, f"lower the amount, or raise {field} of `{parent.name}`"


def first_excess(field: str, shares: Iterable[Amounts], has: Amounts) -> SiblingExcess | None:
    """Return the first resource of which the children have more in a field than their queue; None if there is none."""
    total = _sum_of_shares(shares)
    name = next((name for name, amount in total.items() if _exceeds_share(name, amount, has)), None)
    return None if name is None else SiblingExcess(field, name, total[name], has.get(name, _NONE))


def _sum_of_shares(children: Iterable[Amounts]) -> Amounts:
    total: dict[str, Quantity] = {}
    for shares in children:
        for name, amount in shares.items():
            if is_resource_compared_by_scheduler(name):
                total[name] = total[name].add(amount) if name in total else amount
    return total


def _exceeds_share(name: str, total: Quantity, has: Amounts) -> bool:
    """Return whether a sum is too large (LessPartly); a device that the parent does not name is too much even as 0."""
    if name in has:
        return total > has[name]
    return bool(total) or name not in ("cpu", "memory")


def is_resource_compared_by_scheduler(name: str) -> bool:
    """Return whether Volcano compares a resource (pkg/scheduler/api/resource_info.go NewResource)."""
    return "/" in name or name in ("cpu", "memory", "pods", "ephemeral-storage") or name.startswith(HUGE)
