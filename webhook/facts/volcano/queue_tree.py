"""The queues of the cluster as a tree with their amounts, and why a queue accepts no jobs.

Volcano creates the queues `root` and `default` itself. A view knows all queues and their states only if it has `root`
with its state, or if it is the whole cluster. Files of manifests hold some queues, without state; they have `root` too
if a site sets its amounts. A queue can use at most its capability and the capability of every parent. Without a
capability it can use the whole cluster.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/plugins/capacity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from webhook.deadline import Deadline
from webhook.facts.queue_overview import QueueOverview, QueueResourceAmounts, QueueRow
from webhook.facts.resource_units import parse_amount_in_kueue_units
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.facts.volcano_objects.types import ROOT, Queue
from webhook.rules.problem import MissingObject
from webhook.typed.collections import Entries, Items

OPEN: Final = "Open"
ALWAYS_THERE: Final = (ROOT, "default")
"""Queues that Volcano creates, and that cannot be deleted."""


def vcctl_command_for_queue(action: str, name: str) -> str:
    """Return the command that opens or closes a queue, because its state is in the status."""
    return f"vcctl queue operate --action {action} --name {name}"


@dataclass(frozen=True, slots=True)
class QueueTree:
    """The queues of a view.

    Args:
        all: the queues by name.
        is_whole: whether these are all queues, with current states.
        children: the names of the queues below each queue that has some.
        deadline: is charged for the queues that are walked.
        view: where they were looked up.
    """

    all: Entries[Queue]
    is_whole: bool
    children: Mapping[str, Items[str]]
    deadline: Deadline
    view: ClusterView

    def describe_origin(self, name: str) -> str:
        """Return the file of a queue as part of a sentence, such as " in queues.yaml"; "" if it is not from a file."""
        return self.view.file_of_object_as_text(self.all[name].json) if name in self.all else ""

    def is_leaf(self, name: str) -> bool:
        """Return whether a queue has no known queues below it."""
        return name != ROOT and not self.children.get(name)

    def as_missing_object(self, name: str) -> tuple[MissingObject, ...]:
        """Return a queue as a missing object."""
        return (MissingObject(kind="Queue", name=name),)

    def children_of(self, name: str) -> Items[Queue]:
        """Return the children of a queue in the tree."""
        return Items([self.all[child] for child in self.children.get(name, ())], self.deadline)

    def siblings(self, queue: Queue) -> Items[Queue]:
        """Return the queues with the same parent, ending with this queue itself."""
        others = [other for other in self.children_of(queue.parent) if other.name != queue.name]
        return Items([*others, queue], self.deadline)

    def queue_and_ancestors(self, name: str, start: str = "") -> Iterator[Queue]:
        """Yield a queue and those above it, without the root; a cycle ends at the start, or where it begins."""
        seen = {start}
        while name in self.all and name not in seen:
            self.deadline.spend(1)
            seen.add(name)
            yield self.all[name]
            name = self.all[name].parent

    def ancestors(self, name: str) -> Iterator[Queue]:
        """Yield the queues above one, the nearest first, without the root."""
        if name in self.all:
            yield from self.queue_and_ancestors(self.all[name].parent, name)

    def topmost_descendants_with_limit(self, name: str, resource: str) -> Iterator[Queue]:
        """Yield the topmost child queues that limit a resource."""
        waiting, seen = [*self.children_of(name)], set[str]()
        while waiting:
            self.deadline.spend(1)
            queue = waiting.pop()
            if queue.name in seen:
                continue
            seen.add(queue.name)
            if queue.spec.capability.get(resource):
                yield queue
            else:
                waiting.extend(self.children_of(queue.name))


def read_queues(subject: Subject) -> QueueTree:
    """Return the queues of the cluster; call it through `Subject.once`."""
    view, deadline = subject.cluster_view(), subject.deadline
    queues = Entries({queue.name: queue for queue in view.list_visible(Queue) if queue.name}, deadline)
    children: dict[str, list[str]] = {}
    for queue in queues.values():
        if queue.parent:
            children.setdefault(queue.parent, []).append(queue.name)
    is_whole = (ROOT in queues and bool(queues[ROOT].state)) or (bool(queues) and view.is_whole(Queue.gvk))
    return QueueTree(
        queues, is_whole, {name: Items(names, deadline) for name, names in children.items()}, deadline, view
    )


def read_volcano_overview(view: ClusterView) -> QueueOverview:
    """Return the tree of the queues of Volcano in a cluster."""
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
        yield f"accepts no jobs because its state is {queue.state}"


def _row_of_queue_in_cycle(queue: Queue) -> QueueRow:
    told = "its parents lead back to a queue below them, so that nothing is scheduled"
    return QueueRow(kind="Queue", name=queue.name, parent=queue.parent, obstacles=(told,))
