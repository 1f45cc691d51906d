"""The queues of the cluster, as a tree: what is known of each, its parent and its children.

Volcano makes the queues `root` and `default` itself. Only a view that has `root` with its state, or that is the whole
cluster, knows which queues there are and which states they have; files of manifests hold some of them, `root` too where
somebody sets its amounts, and no state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.pods import amounts
from webhook.facts.subject import Subject
from webhook.facts.values import mapping
from webhook.facts.volcano_objects import kinds
from webhook.paths import get
from webhook.problem import MissingObject
from webhook.quantity import Quantity

ROOT: Final = "root"
OPEN: Final = "Open"
ALWAYS_THERE: Final = (ROOT, "default")
"""Queues that Volcano makes, and that cannot be deleted."""


def operate(action: str, name: str) -> str:
    """The command that opens or closes a queue: its state is in the status, which no manifest sets."""
    return f"vcctl queue operate --action {action} --name {name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """One queue; its deadline is charged for the amounts that are read of it."""

    name: str
    value: Mapping[str, Any]
    deadline: Deadline = field(default_factory=Deadline, repr=False, compare=False)
    _amounts: dict[str, Mapping[str, Quantity]] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def spec(self) -> Mapping[str, Any]:
        """Its spec."""
        return mapping(get(self.value, ("spec",)))

    @property
    def parent(self) -> str:
        """The queue above it; "" for one below the root."""
        parent = str(get(self.spec, ("parent",), ""))
        return "" if parent == ROOT else parent

    @property
    def state(self) -> str:
        """Open, Closed, Closing or Unknown; "" until the controller has seen it."""
        return str(get(self.value, ("status", "state"), ""))

    @property
    def allocated(self) -> int:
        """How many pods run in it."""
        amount = amounts.read(amounts.text_of(get(self.value, ("status", "allocated", "pods"))))
        return amount.value() if amount else 0

    def amounts(self, field_name: str) -> Mapping[str, Quantity]:
        """Its capability, deserved or guarantee; what is not a quantity is left out. Read once: many queues ask."""
        if field_name not in self._amounts:
            path = ("guarantee", "resource") if field_name == "guarantee" else (field_name,)
            written = self.deadline.paced(mapping(get(self.spec, path)).items())
            read = ((name, amounts.read(amounts.text_of(value))) for name, value in written)
            self._amounts[field_name] = {name: amount for name, amount in read if amount is not None}
        return self._amounts[field_name]


@dataclass(frozen=True, slots=True)
class Queues:
    """The queues that are known. `is_whole`: others are known to be absent, and states to be what they are."""

    all: Mapping[str, Queue]
    is_whole: bool
    children: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def missing(self, name: str) -> tuple[MissingObject, ...]:
        """A queue that nobody can say anything about."""
        return (MissingObject(kind="Queue", name=name),)

    def ancestors(self, name: str) -> Iterator[Queue]:
        """The queues above one, the nearest first, without the root; a cycle ends where it begins."""
        seen = {name}
        queue = self.all.get(name)
        while queue is not None and queue.parent and queue.parent not in seen:
            seen.add(queue.parent)
            queue = self.all.get(queue.parent)
            if queue is not None:
                yield queue


def read_queues(subject: Subject) -> Queues:
    """The queues of the cluster, to be asked for with `Subject.once`."""
    view, until = subject.view(), subject.deadline
    listed = ((_name(each), each) for each in until.paced(view.objects(kinds.QUEUES)))
    queues = {name: Queue(name=name, value=each, deadline=until) for name, each in listed if name}
    children: dict[str, list[str]] = {}
    for queue in until.each(queues.values()):
        if queue.parent:
            children.setdefault(queue.parent, []).append(queue.name)
    is_whole = (ROOT in queues and bool(queues[ROOT].state)) or (bool(queues) and view.is_whole())
    return Queues(queues, is_whole, {name: tuple(each) for name, each in children.items()})


def _name(obj: JSON) -> str:
    return str(get(obj, ("metadata", "name"), ""))
