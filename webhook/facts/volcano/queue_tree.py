"""The queues of the cluster as a tree with their amounts, and whether a queue accepts an object that names the queue.

Volcano creates the queues `root` and `default` itself. A view knows all queues and their states only if it has `root`
with its state, or if it is the whole cluster. Manifests have only some queues, without states. Manifests have `root`
only if a site sets the amounts of `root`. A queue can use at most its capability and the capability of every parent. A
queue without a capability can use the whole cluster. The scheduler counts parents only with the plugin capacity and
enableHierarchy. Volcano's own configuration has the plugin proportion. A problem is conditional if no file shows the
configuration.

A queue that an object names must exist, be open, have no queues below it, and have enough capacity. The modules of
Jobs, PodGroups and pods declare these rules.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/jobs/validate/admit_job.go and podgroups/validate; the
scheduler admits a PodGroup if its minResources are within the capability of the queue. Volcano also accepts a PodGroup
in a queue with children. With enableHierarchy in the plugin capacity, the scheduler then schedules nothing at all
(pkg/scheduler/plugins/capacity/capacity.go checkHierarchicalQueue).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from webhook.apimachinery.paths import FieldPath
from webhook.apimachinery.quantity import Quantity
from webhook.deadline import Deadline
from webhook.facts.queue_overview import QueueOverview, QueueResourceAmounts, QueueRow
from webhook.facts.resource_units import parse_amount_in_kueue_units
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.facts.volcano.gang_resources import Amounts
from webhook.facts.volcano.scheduler import counts_parents
from webhook.facts.volcano_objects.types import ROOT, Queue
from webhook.rules.problem import MissingObject, Problem
from webhook.rules.rule import Rule
from webhook.text.wording import counted, did_you_mean
from webhook.typed.collections import Entries, Items
from webhook.yamltext.placeholders import is_placeholder

OPEN: Final = "Open"
ALWAYS_THERE: Final = (ROOT, "default")
"""Queues that Volcano creates, and that cannot be deleted."""


def vcctl_command_for_queue(action: str, name: str) -> str:
    """Return the command that opens or closes a queue; users cannot write the state, which is in the status."""
    return f"vcctl queue operate --action {action} --name {name}"


@dataclass(frozen=True, slots=True)
class QueueTree:
    """The queues of a view.

    Args:
        all: the queues by name.
        is_whole: whether the view has all queues of the cluster, with current states.
        children: for each queue with children, the names of its children.
        deadline: the deadline that loops over queues are charged to.
        view: the view of the cluster that has the queues.
    """

    all: Entries[Queue]
    is_whole: bool
    children: Mapping[str, Items[str]]
    deadline: Deadline
    view: ClusterView

    def describe_origin(self, name: str) -> str:
        """Return the file of a queue as part of a sentence, such as " in queues.yaml"; "" without a file."""
        return self.view.file_of_object_as_text(self.all[name].json) if name in self.all else ""

    def is_leaf(self, name: str) -> bool:
        """Return whether a queue is not the root and no child of the queue is known."""
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
        """Yield a queue and the queues above it, without the root; stop at `start`, and in a cycle after one round."""
        seen = {start}
        while name in self.all and name not in seen:
            self.deadline.spend(1)
            seen.add(name)
            yield self.all[name]
            name = self.all[name].parent

    def ancestors(self, name: str) -> Iterator[Queue]:
        """Yield the queues above a queue, the nearest first, without the root."""
        if name in self.all:
            yield from self.queue_and_ancestors(self.all[name].parent, name)

    def topmost_descendants_with_limit(self, name: str, resource: str) -> Iterator[Queue]:
        """Yield the first queue with a limit for a resource on each path down from a queue."""
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
    """Return the queues of the cluster. Call this function through `Subject.once`."""
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
    """Yield the amounts of the resources that the queue or a queue above it limits."""
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
    obstacle = "its parents form a cycle, so nothing is scheduled"
    return QueueRow(kind="Queue", name=queue.name, parent=queue.parent, obstacles=(obstacle,))


class QueueRules(NamedTuple):
    """The rules about the queue of an object, for the objects of one kind."""

    exists: Rule
    open: Rule
    leaf: Rule
    capability: Rule
    is_of_jobs: bool = False
    """Whether the objects are Jobs. Only in Jobs, Volcano's webhook refuses a queue with child queues."""


def validate_queue(name: str, path: FieldPath | str, subject: Subject, rules: QueueRules) -> Iterator[Problem]:
    """Report a named queue that does not exist, is closed, or has queues below it."""
    if name and not is_placeholder(name):
        yield from _check_queue_exists(name, path, subject, rules)
        yield from _check_queue_open(name, path, subject, rules)
        yield from _check_queue_leaf(name, path, subject.once(read_queues), rules)


def _check_queue_exists(name: str, path: FieldPath | str, subject: Subject, rules: QueueRules) -> Iterator[Problem]:
    """Report a queue that does not exist, or that cannot be looked up."""
    queues = subject.once(read_queues)
    if name in queues.all or name in ALWAYS_THERE:
        return
    if not queues.is_whole:
        yield rules.exists.problem(path, missing=queues.as_missing_object(name))
        return
    fix = did_you_mean(
        subject.cluster_view().nearest(name, queues.all),
        "correct the name, or ask the administrator to create the queue",
    )
    yield rules.exists.problem(path, "is a queue that does not exist", fix, name)


def _check_queue_open(name: str, path: FieldPath | str, subject: Subject, rules: QueueRules) -> Iterator[Problem]:
    """Report a queue that accepts no jobs because it is closed or not yet open."""
    queues = subject.once(read_queues)
    queue = queues.all.get(name)
    if queue is None or not queues.is_whole or queue.state == OPEN:
        return
    if not queue.state and subject.cluster.is_of_file(queue.json):
        return
    message = "is a new queue, which Volcano opens after some seconds"
    fix = "wait until the queue is open"
    if queue.state:
        message = f"is a queue in state {queue.state}, but only an open queue accepts jobs"
        command = vcctl_command_for_queue("open", name)
        fix = f"name another queue, or ask the administrator to open this queue ({command})"
    yield rules.open.problem(path, message, fix, name)


def _check_queue_leaf(name: str, path: FieldPath | str, queues: QueueTree, rules: QueueRules) -> Iterator[Problem]:
    """Report a queue with queues below it, which Volcano's webhook rejects in a Job and accepts in a PodGroup."""
    is_counted = True if rules.is_of_jobs else counts_parents(queues.view)
    if queues.is_leaf(name) or is_counted is False:
        return
    children = queues.children.get(name, ())
    below = "the root queue" if name == ROOT else f"a queue with {_children_as_text(children, queues)}"
    message = (
        f"is {below}, and with enableHierarchy in the plugin capacity, one gang in such a queue stops the scheduler "
        "for all jobs"
    )
    is_named = bool(children)
    if rules.is_of_jobs:
        message, is_named = f"is {below}, but a job must be in a queue without children", name != ROOT
    fix = f"name a queue below `{name}`, such as `{min(children)}`" if is_named else "name a queue below the root"
    yield rules.leaf.problem(path, message, fix, name, is_conditional=is_counted is None)


def _children_as_text(names: Sequence[str], queues: QueueTree) -> str:
    """Return a text with the number of children and the file of the first child."""
    origin = queues.describe_origin(min(names)) if names else ""
    number = counted(len(names), "child", "children")
    return f"{number}{f' (`{min(names)}`{origin})' if origin else ''}"


def warn_of_amounts_above_capability(
    needed: Amounts, name: str, path: FieldPath, queues: QueueTree, rules: QueueRules
) -> Iterator[Problem]:
    """Report the first amount that is above the capability of an existing queue or of a queue above it."""
    is_counted = counts_parents(queues.view)
    above = () if is_counted is False else queues.ancestors(name)
    for queue in (queues.all[name], *above) if name in queues.all else ():
        for resource, amount, most in _amounts_above_capability(needed, queue):
            why = f"spec.capability of the queue{queues.describe_origin(name)} is {most}"
            if queue.name != name:
                where = f"which counts {'because' if is_counted else 'if'} the capacity plugin has enableHierarchy"
                its_parent = f"queue `{queue.name}`{queues.describe_origin(queue.name)} above this queue"
                why = f"spec.capability of {its_parent} is {most}, {where}"
            needs = Quantity(amount, -3, most.format)
            message = f"can never give the {needs} {resource} that the pods need together because {why}"
            fix = "ask for less, or ask the administrator to raise the capability"
            is_conditional = queue.name != name and not is_counted
            yield rules.capability.problem(path, message, fix, name, is_conditional=is_conditional)
            return


def _amounts_above_capability(needed: Amounts, queue: Queue) -> Iterator[tuple[str, int, Quantity]]:
    """Yield the amounts above the capability of a queue; cpu or memory of 0 count as no limit."""
    for resource, amount in needed.items():
        most = queue.spec.capability.get(resource)
        if most is not None and amount > most.milli_value() and (most or resource not in ("cpu", "memory")):
            yield resource, amount, most
