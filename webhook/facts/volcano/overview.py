"""Lists Volcano's queues as a tree with their amounts, and says why a queue takes no jobs.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/plugins/capacity: a queue has at most its capability, and at most
that of every queue above it; without one it has what the cluster has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from webhook.facts.queue_overview import QueueOverview, QueueResourceAmounts, QueueRow
from webhook.facts.resource_units import parse_amount_in_kueue_units
from webhook.facts.view import ClusterView
from webhook.facts.volcano.queue_tree import OPEN
from webhook.facts.volcano_objects.types import ROOT, Queue
from webhook.typed.collections import Items


def read_volcano_overview(view: ClusterView) -> QueueOverview:
    """Return the queues of Volcano in a cluster, below those that they name as parents."""
    queues = {queue.name: queue for queue in view.list_visible(Queue) if queue.name}
    children: dict[str, list[str]] = {}
    for name in Items(sorted(queues), view.deadline):
        parent = queues[name].parent
        if name != ROOT:
            children.setdefault(parent if parent in queues else "", []).append(name)
    below_root = children.pop("", [])
    first = [(ROOT, 0)] if ROOT in queues else []
    waiting = [*((name, len(first)) for name in reversed(below_root)), *first]
    rows: dict[str, QueueRow] = {}
    while waiting:
        view.deadline.spend(1)
        name, depth = waiting.pop()
        rows[name] = _row_of_queue(queues[name], depth, rows)
        waiting += [(child, depth + 1) for child in reversed(children.get(name, ()))]
    lost = [_row_of_queue_in_cycle(queues[name]) for name in sorted(queues) if name not in rows]
    return QueueOverview((*rows.values(), *lost))


def _row_of_queue(queue: Queue, depth: int, above: Mapping[str, QueueRow]) -> QueueRow:
    parent = queue.parent or (ROOT if ROOT in above and queue.name != ROOT else "")
    limits = {amount.resource: amount.most for amount in above[parent].amounts} if parent in above else {}
    return QueueRow(
        kind="Queue",
        name=queue.name,
        parent=parent,
        depth=depth,
        amounts=tuple(_limited_amounts_of_queue(queue, limits)),
        obstacles=tuple(_obstacles_of_queue(queue)),
    )


def _limited_amounts_of_queue(queue: Queue, limits: Mapping[str, int]) -> Iterator[QueueResourceAmounts]:
    """Yield the amounts of the resources that the queue, or one above it, limits."""
    spec = queue.spec
    written = {name: parse_amount_in_kueue_units(name, value) for name, value in spec.written_capability.items()}
    capability = {name: value for name, value in written.items() if value is not None}
    for resource in dict.fromkeys((*capability, *limits)):
        allocated = queue.status.allocated.get(resource)
        yield QueueResourceAmounts(
            flavor="",
            resource=resource,
            nominal=parse_amount_in_kueue_units(resource, spec.written_deserved.get(resource)) or 0,
            most=min(each[resource] for each in (capability, limits) if resource in each),
            used=parse_amount_in_kueue_units(resource, str(allocated)) or 0 if allocated else 0,
        )


def _obstacles_of_queue(queue: Queue) -> Iterator[str]:
    if queue.state not in ("", OPEN):
        yield f"takes no jobs because its state is {queue.state}"


def _row_of_queue_in_cycle(queue: Queue) -> QueueRow:
    told = "its parents lead back to a queue below them, so that nothing is scheduled"
    return QueueRow(kind="Queue", name=queue.name, parent=queue.parent, obstacles=(told,))
