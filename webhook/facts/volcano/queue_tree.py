"""Where a Queue stands among others: its parent, how deep it is, and that amounts fit those above and below it.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/queues/validate/validate_queue.go
validateHierarchicalQueue, validateHierarchicalQueueResources. On UPDATE the webhook does not see that a queue becomes
its own ancestor; afterwards it loops for ever when one of them changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from webhook.facts.check import Group
from webhook.facts.pods.amounts import HUGE
from webhook.facts.subject import Subject
from webhook.facts.volcano.job import is_created
from webhook.facts.volcano.queues import ROOT, Queue, Queues, read_queues
from webhook.paths import get
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.quantity import Quantity
from webhook.wording import counted, did_you_mean

problem: Final = Group("volcano-queue").problem
_DEEPEST: Final = 5
"""`--max-queue-depth` by default."""
_PARENT: Final = ("spec", "parent")
_RESOURCES: Final = (("spec", "capability"), ("spec", "deserved"), ("spec", "guarantee", "resource"))
_SHARES: Final = ("guarantee", "deserved")
_NONE: Final = Quantity(0)


def validate_place(own: Queue, subject: Subject) -> Iterator[Problem]:
    """A queue with a parent, and one with children."""
    queues, is_new = subject.once(read_queues), is_created(subject)
    is_moved = is_new or Queue(name=own.name, value=subject.old_object).parent != own.parent
    differing = [path[1] for path in _RESOURCES if get(subject.old_object, path) != get(subject.object, path)]
    changed = is_moved or bool(differing)
    if own.name == ROOT and not is_new and changed and not is_moved:
        names = " and ".join(differing)
        message = f"must not change {names} of the root queue because the root queue stands for the whole cluster"
        yield problem("root", "spec", message, f"undo the change of {names}")
    is_lost = False
    if own.parent and is_moved and not is_placeholder(own.parent):
        for each in _validate_parent(own, queues, subject):
            is_lost = True
            yield each
    if changed and own.name != ROOT and not is_lost:
        yield from _validate_amounts(own, queues, subject)


def _validate_parent(own: Queue, queues: Queues, subject: Subject) -> Iterator[Problem]:
    """As validateHierarchicalQueue and validateQueueDepth."""
    if own.parent == own.name:
        yield problem("parent-itself", _PARENT, "is the queue itself", "name another queue as parent", own.parent)
        return
    above = [own.parent, *(each.parent for each in _upwards(own, queues, subject) if each.parent)]
    parent = queues.all.get(own.parent)
    if own.name in above:
        message = (
            "makes the queue its own ancestor, which Volcano accepts, but then its webhook does not answer when one of "
            "these queues changes"
        )
        yield problem("parent-cycle", _PARENT, message, "name a queue that is not below this one", own.parent)
    elif len(above) + 1 > _DEEPEST:
        message = f"puts the queue on level {len(above) + 1}, but queues can have at most {_DEEPEST} levels"
        yield problem("depth", _PARENT, message, "choose a parent nearer to the root", own.parent)
    elif parent is None and not queues.is_whole:
        yield problem("parent-exists", _PARENT, missing=queues.missing(own.parent))
    elif parent is None:
        near = subject.view().nearest(own.parent, queues.all)
        fix = did_you_mean(near, "create the queue first")
        yield problem("parent-exists", _PARENT, "is a queue that does not exist", fix, own.parent)
    elif not queues.children.get(parent.name) and parent.allocated:
        pods = counted(parent.allocated, "pod")
        message = f"runs {pods} now, but a queue with children must not run pods"
        yield problem("parent-used", _PARENT, message, "wait until these pods end, or name another parent", own.parent)
    elif own.parent == "default":
        message = (
            "must not be a parent because jobs that name no queue use it, and Volcano would then refuse these jobs"
        )
        yield problem("parent-default", _PARENT, message, "name another queue", own.parent)


def _upwards(own: Queue, queues: Queues, subject: Subject) -> Iterator[Queue]:
    """The queues above one that is created or moved."""
    seen: set[str] = set()
    name = own.parent
    while name in queues.all and name not in seen:
        subject.deadline.spend(1)
        seen.add(name)
        yield queues.all[name]
        name = queues.all[name].parent


def _validate_amounts(own: Queue, queues: Queues, subject: Subject) -> Iterator[Problem]:
    """As validateHierarchicalQueueResources."""
    parent = queues.all.get(own.parent) if own.parent else None
    if parent is not None:
        yield from _below_ancestors(own, queues, subject)
        siblings = [queues.all[name] for name in queues.children.get(parent.name, ()) if name != own.name]
        yield from _within(parent, [*siblings, own], own, subject)
    children = [queues.all[name] for name in queues.children.get(own.name, ())]
    if children:
        yield from _above_descendants(own, children, queues, subject)
        yield from _within(own, children, own, subject)


def _below_ancestors(own: Queue, queues: Queues, subject: Subject) -> Iterator[Problem]:
    """As validateChildAgainstAncestor: the nearest queue above that limits a resource."""
    for name, most in own.amounts("capability").items():
        for above in _upwards(own, queues, subject) if most and _is_scheduled(name) else ():
            limit = above.amounts("capability").get(name)
            if limit:
                if most > limit:
                    message = f"must not be more than {limit}, the capability of queue `{above.name}` above this queue"
                    path = ("spec", "capability", name)
                    yield problem(
                        "capability-ancestor",
                        path,
                        message,
                        f"lower the amount, or raise the capability of `{above.name}`",
                        str(most),
                    )
                break


def _above_descendants(own: Queue, children: Iterable[Queue], queues: Queues, subject: Subject) -> Iterator[Problem]:
    """The first part of validateChildrenConstraints: what the topmost queues below allow."""
    limits = [(name, most) for name, most in own.amounts("capability").items() if most and _is_scheduled(name)]
    for name, most in subject.deadline.each(limits):
        for below in _limited(name, children, queues, subject):
            largest = below.amounts("capability")[name]
            if largest > most:
                message = f"must not be less than {largest}, the capability of queue `{below.name}` below this queue"
                yield problem(
                    "capability-descendant",
                    ("spec", "capability", name),
                    message,
                    f"raise the amount, or lower the capability of `{below.name}`",
                    str(most),
                )
                break


def _limited(name: str, queues: Iterable[Queue], known: Queues, subject: Subject) -> Iterator[Queue]:
    """The topmost queues below that limit a resource."""
    waiting, seen = list(queues), set[str]()
    while waiting:
        subject.deadline.spend(1)
        queue = waiting.pop()
        if queue.name in seen:
            continue
        seen.add(queue.name)
        if queue.amounts("capability").get(name):
            yield queue
        else:
            waiting.extend(known.all[each] for each in known.children.get(queue.name, ()))


def _within(parent: Queue, children: Iterable[Queue], own: Queue, subject: Subject) -> Iterator[Problem]:
    """As validateSiblingsSum: what the children have together is within what the parent has, which is 0 by default."""
    listed = list(children)
    for kind in _SHARES:
        has, total = parent.amounts(kind), _sum(kind, listed, subject)
        name = next((each for each in total if _exceeds(each, total[each], has)), None)
        if name is None:
            continue
        path = ("spec", *(("guarantee", "resource") if kind == "guarantee" else (kind,)))
        if own is parent:
            own_amount = has.get(name, _NONE)
            message = f"has {own_amount} {name}, but spec.{kind} of the queues below is {total[name]} {name} together"
            fix = f"set at least {total[name]}, or lower spec.{kind} of the queues below"
        else:
            message = (
                f"brings the queues below `{parent.name}` to {total[name]} {name} together, but spec.{kind} of "
                f"`{parent.name}` is only {has.get(name, _NONE)} {name}"
            )
            fix = f"lower the amount, or raise spec.{kind} of `{parent.name}`"
        yield problem(f"{kind}-sum", path, message, fix)


def _sum(kind: str, queues: Iterable[Queue], subject: Subject) -> Mapping[str, Quantity]:
    total: dict[str, Quantity] = {}
    for queue in subject.deadline.paced(queues):
        for name, amount in queue.amounts(kind).items():
            if _is_scheduled(name):
                total[name] = total[name].add(amount) if name in total else amount
    return total


def _exceeds(name: str, total: Quantity, has: Mapping[str, Quantity]) -> bool:
    """Function LessPartly with missing as 0; a device that the parent does not name is too much even where it is 0."""
    if name in has:
        return total > has[name]
    return bool(total) or name not in ("cpu", "memory")


def _is_scheduled(name: str) -> bool:
    """Resources that Volcano compares (pkg/scheduler/api/resource_info.go NewResource)."""
    return "/" in name or name in ("cpu", "memory", "pods", "ephemeral-storage") or name.startswith(HUGE)
