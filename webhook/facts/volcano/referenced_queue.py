"""Checks a queue that an object names: it must exist, be open, have no queues below it, and be able to give enough.

The rules of Jobs, PodGroups and pods are in `job_queue_and_capability`, `pod_group_queue_and_capability` and
`pod_queue_and_capability`.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/jobs/validate/admit_job.go and podgroups/validate; the
scheduler admits a PodGroup if its minResources are within the capability of the queue. A queue that is not a leaf
accepts a PodGroup; with the plugin capability and hierarchy, the scheduler then schedules nothing at all
(pkg/scheduler/plugins/capacity/capacity.go checkHierarchicalQueue).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from webhook.apimachinery.paths import FieldPath
from webhook.apimachinery.quantity import Quantity
from webhook.facts.subject import Subject
from webhook.facts.volcano.gang_resources import Amounts
from webhook.facts.volcano.queue_tree import ALWAYS_THERE, OPEN, QueueTree, read_queues, vcctl_command_for_queue
from webhook.facts.volcano_objects.types import ROOT, Queue
from webhook.rules.problem import Problem
from webhook.rules.rule import Rule
from webhook.text.wording import counted, did_you_mean
from webhook.yamltext.placeholders import is_placeholder


class QueueRules(NamedTuple):
    """The rules of the queues that objects of one kind name."""

    exists: Rule
    open: Rule
    leaf: Rule
    capability: Rule
    is_of_jobs: bool = False
    """Whether Volcano's webhook rejects a named queue with child queues. It does so only for Jobs."""


def validate_queue(name: str, path: FieldPath | str, subject: Subject, rules: QueueRules) -> Iterator[Problem]:
    """Yield a named queue that does not exist, is closed, or has queues below it."""
    if name and not is_placeholder(name):
        yield from _check_queue_exists(name, path, subject, rules)
        yield from _check_queue_open(name, path, subject, rules)
        yield from _check_queue_leaf(name, path, subject.once(read_queues), rules)


def _check_queue_exists(name: str, path: FieldPath | str, subject: Subject, rules: QueueRules) -> Iterator[Problem]:
    """Yield a queue that does not exist, or that cannot be looked up."""
    queues = subject.once(read_queues)
    if name in queues.all or name in ALWAYS_THERE:
        return
    if not queues.is_whole:
        yield rules.exists.problem(path, missing=queues.as_missing_object(name))
        return
    fix = did_you_mean(subject.cluster_view().nearest(name, queues.all), "create the queue, or correct the name")
    yield rules.exists.problem(path, "is a queue that does not exist", fix, name)


def _check_queue_open(name: str, path: FieldPath | str, subject: Subject, rules: QueueRules) -> Iterator[Problem]:
    """Yield a queue that is closed and accepts no new work."""
    queues = subject.once(read_queues)
    queue = queues.all.get(name)
    if queue is None or not queues.is_whole or queue.state == OPEN:
        return
    if not queue.state and subject.cluster.is_of_file(queue.json):
        return
    message = "is a new queue that is not open yet, which takes some seconds"
    fix = "wait until the queue is open"
    if queue.state:
        message = f"is a queue in state {queue.state}, but only an open queue accepts jobs"
        fix = f"name another queue, or ask the administrator to open this one ({vcctl_command_for_queue('open', name)})"
    yield rules.open.problem(path, message, fix, name)


def _check_queue_leaf(name: str, path: FieldPath | str, queues: QueueTree, rules: QueueRules) -> Iterator[Problem]:
    """Yield a queue with queues below it, which Volcano's webhook rejects in a Job and ignores in a PodGroup."""
    if queues.is_leaf(name):
        return
    children = queues.children.get(name, ())
    below = "the root queue" if name == ROOT else f"a queue with {_children_as_text(children, queues)}"
    message = (
        f"is {below}, but Volcano places pods only of queues without children (with enableHierarchy in the plugin "
        "capacity, Volcano then schedules no job at all)"
    )
    is_named = bool(children)
    if rules.is_of_jobs:
        message, is_named = f"is {below}, but a job must be in a queue without children", name != ROOT
    fix = f"name a queue below `{name}`, such as `{min(children)}`" if is_named else "name a queue below the root"
    yield rules.leaf.problem(path, message, fix, name)


def _children_as_text(names: Sequence[str], queues: QueueTree) -> str:
    """Return a text with the number of children and the file of the first one."""
    origin = queues.describe_origin(min(names)) if names else ""
    said = counted(len(names), "child", "children")
    return f"{said}{f' (`{min(names)}`{origin})' if origin else ''}"


def warn_of_amounts_above_capability(
    needed: Amounts, name: str, path: FieldPath, queues: QueueTree, rules: QueueRules
) -> Iterator[Problem]:
    """Yield the first amount that an existing queue, or one above it, never admits."""
    for queue in (queues.all[name], *queues.ancestors(name)) if name in queues.all else ():
        for resource, amount, most in _amounts_above_capability(needed, queue):
            why = f"spec.capability of the queue{queues.describe_origin(name)} is {most}"
            if queue.name != name:
                where = "which counts if the capacity plugin has a hierarchy"
                above = f"queue `{queue.name}`{queues.describe_origin(queue.name)} above this queue"
                why = f"spec.capability of {above} is {most}, {where}"
            needs = Quantity(amount, -3, most.format)
            message = f"can never give the {needs} {resource} that the pods need together because {why}"
            fix = "ask for less, or ask the administrator to raise the capability"
            yield rules.capability.problem(path, message, fix, name)
            return


def _amounts_above_capability(needed: Amounts, queue: Queue) -> Iterator[tuple[str, int, Quantity]]:
    """Yield the amounts above the capability of a queue; cpu or memory of 0 count as no limit."""
    for resource, amount in needed.items():
        most = queue.spec.capability.get(resource)
        if most is not None and amount > most.milli_value() and (most or resource not in ("cpu", "memory")):
            yield resource, amount, most
