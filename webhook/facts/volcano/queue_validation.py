"""What Volcano's webhook refuses of a Queue by itself, and queues that do something else than they say.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/queues/validate/validate_queue.go; functions are named
like those there. Where a queue stands among others is queue_tree.py's. The status is dropped when a queue is created.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final

from webhook.attributes import JSON
from webhook.facts.pods import amounts
from webhook.facts.pods.resource_validation import validate_resource_quantity_value
from webhook.facts.subject import Subject
from webhook.facts.volcano import queue_tree
from webhook.facts.volcano.gang_resources import is_unknown_resource
from webhook.facts.volcano.job import is_created
from webhook.facts.volcano.queue_tree import problem
from webhook.facts.volcano.queues import ALWAYS_THERE, OPEN, Queue, operate, read_queues
from webhook.facts.volcano_objects.defaults import defaulted
from webhook.facts.volcano_objects.kinds import HIERARCHY, HIERARCHY_WEIGHTS
from webhook.paths import FieldPath, get
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.wording import counted

_AMOUNTS: Final[Mapping[str, FieldPath]] = {
    "capability": ("spec", "capability"),
    "deserved": ("spec", "deserved"),
    "guarantee": ("spec", "guarantee", "resource"),
}
_ANNOTATIONS: Final = ("metadata", "annotations")
_SHOWN: Final = 3
"""Queues that a message names."""


def queue(subject: Subject) -> Iterator[Problem]:
    """A queue that is created or changed."""
    own = Queue(
        name=get(subject.object, ("metadata", "name"), ""), value=subject.once(defaulted), deadline=subject.deadline
    )
    yield from _validate_quantities(own, subject)
    yield from _validate_order(own, subject)
    yield from _validate_hierarchy(own, subject)
    yield from queue_tree.validate_place(own, subject)
    yield from _advise_resources(own, subject)
    if is_created(subject) and own.state not in ("", OPEN):
        message = "has no effect on a new queue because the API server drops the status, so the queue opens"
        fix = f"remove status, and close the queue once it exists ({operate('close', own.name)})"
        yield problem("status", ("status", "state"), message, fix, own.state)


def queue_deletion(subject: Subject) -> Iterator[Problem]:
    """As validateQueueDeleting; that pods lose their queue is refused only with a flag that is off by default."""
    name = get(subject.old_object, ("metadata", "name"), "") or subject.attributes.name
    queues = subject.once(read_queues)
    if name in ALWAYS_THERE:
        message = "must not be deleted because Volcano needs it"
        yield problem("deletion", "metadata.name", message, "keep the queue", name)
    elif children := sorted(queues.children.get(name, ())):
        shown = ", ".join(children[:_SHOWN]) + (", …" if len(children) > _SHOWN else "")
        message = f"must not be deleted while it has {counted(len(children), 'queue')} below ({shown})"
        yield problem(
            "deletion",
            "metadata.name",
            message,
            f"delete {'that queue' if len(children) == 1 else 'those queues'} first",
            name,
        )
    elif pods := Queue(name=name, value=subject.old_object).allocated:
        message = f"should not be deleted while {counted(pods, 'pod')} run in it because these pods lose their queue"
        yield problem(
            "deletion-of-used",
            "metadata.name",
            message,
            f"close the queue ({operate('close', name)}), wait until the pods end, then delete the queue",
            name,
        )


def _validate_quantities(own: Queue, subject: Subject) -> Iterator[Problem]:
    """As validateResourceQuantityOfQueue, of each amount by itself; names are not looked at."""
    for path in _AMOUNTS.values():
        for name, value in subject.deadline.each(get(own.value, path, {}).items()):
            text = amounts.text_of(value)
            broken = None if is_placeholder(text) else validate_resource_quantity_value(amounts.name_of(name), text)
            if broken is not None:
                yield problem("quantity", (*path, name), broken.message, broken.fix, shown=amounts.shown(value))


def _validate_order(own: Queue, subject: Subject) -> Iterator[Problem]:
    """The rest of validateResourceQuantityOfQueue: guarantee, deserved and capability in this order."""
    capability, deserved, guarantee = (own.amounts(each) for each in _AMOUNTS)
    for name, least in subject.deadline.each(guarantee.items()):
        path = (*_AMOUNTS["deserved"], name)
        if name not in get(own.spec, ("deserved",), {}):
            message = f"must be set because the guarantee has {least} of this resource, and deserved must not be less"
            yield problem("guarantee-deserved", path, message, f"set {least} or more")
        elif name in deserved and deserved[name] < least:
            message = f"must not be less than the guarantee of {least}"
            yield problem(
                "guarantee-deserved", path, message, "raise the amount, or lower the guarantee", str(deserved[name])
            )
    for name, share in subject.deadline.each(deserved.items()):
        if name in capability and share > capability[name]:
            message = f"must not be more than the capability of {capability[name]}"
            path = (*_AMOUNTS["deserved"], name)
            yield problem("deserved-capability", path, message, "lower the amount, or raise the capability", str(share))


def _validate_hierarchy(own: Queue, subject: Subject) -> Iterator[Problem]:
    """As validateHierarchicalAttributes: a path of the plugin drf with a weight for each step."""
    annotations = get(own.value, _ANNOTATIONS, {})
    path, weights = str(annotations.get(HIERARCHY, "")), str(annotations.get(HIERARCHY_WEIGHTS, ""))
    if not (path or weights) or is_placeholder(path + weights):
        return
    at = (*_ANNOTATIONS, HIERARCHY_WEIGHTS)
    steps, numbers = path.split("/"), weights.split("/")
    if len(steps) != len(numbers):
        message = f"must have {counted(len(steps), 'weight')}, one for each step of {HIERARCHY}"
        yield problem("hierarchy-weights", at, message, "write a weight for each step", weights)
        return
    for text in subject.deadline.each(numbers):
        weight = _weight(text)
        if weight is None or weight <= 0:
            message = f"must be numbers above 0, but one is `{text}`"
            yield problem("hierarchy-weights", at, message, "write a number above 0", weights)
            return
        if not math.isfinite(weight):
            message = f"has the weight `{text}`, which Volcano accepts, although no share can be computed with it"
            yield problem("hierarchy-weight-finite", at, message, "write a finite number, such as 1", weights)
    yield from _validate_sub_path(own, path, subject)


def _weight(text: str) -> float | None:
    """A number as Go's strconv.ParseFloat reads it, which Python's reading is close to."""
    try:
        return None if text != text.strip() else float(text)
    except ValueError:
        return None


def _validate_sub_path(own: Queue, path: str, subject: Subject) -> Iterator[Problem]:
    for other in subject.deadline.each(subject.once(read_queues).all.values()):
        theirs = str(get(other.value, (*_ANNOTATIONS, HIERARCHY), ""))
        if other.name != own.name and theirs.startswith(f"{path}/"):
            message = (
                f"must not be the beginning of the path of another queue, but the path of queue `{other.name}` is "
                f"`{theirs}`"
            )
            fix = f"end the path with the name of this queue, such as {path}/{own.name}"
            if path.endswith(f"/{own.name}"):
                fix = "write a path that no other path begins with"
            yield problem("hierarchy-path", (*_ANNOTATIONS, HIERARCHY), message, fix, path)
            return


def _advise_resources(own: Queue, subject: Subject) -> Iterator[Problem]:
    """Amounts of something that no node has."""
    for path in _AMOUNTS.values():
        written: Mapping[str, JSON] = get(own.value, path, {})
        for name in subject.deadline.each(written):
            if is_unknown_resource(name) and not is_placeholder(name):
                message = "is a resource that no node has because the name has no domain, so the amount limits nothing"
                fix = "write a full name such as nvidia.com/gpu"
                yield problem("unknown-resource", (*path, name), message, fix, name)
