"""The queue that a Job, a PodGroup or a pod names: it exists, is open, has no queues below it, and can give enough.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/jobs/validate/admit_job.go and podgroups/validate; the
scheduler lets a PodGroup in when its minResources are within the capability of the queue. A PodGroup
is taken into a queue that is not a leaf; with the plugin capability and hierarchy, the scheduler then schedules nothing
at all (pkg/scheduler/plugins/capacity/capacity.go checkHierarchicalQueue).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from webhook.facts.subject import Subject
from webhook.facts.volcano.gang_resources import Amounts
from webhook.facts.volcano.groups import (
    VOLCANO_JOB,
    VOLCANO_JOB_ADVICE,
    VOLCANO_POD,
    VOLCANO_POD_GROUP,
    VOLCANO_POD_GROUP_ADVICE,
)
from webhook.facts.volcano.queue_tree import ALWAYS_THERE, OPEN, Queues, operate, read_queues
from webhook.facts.volcano_objects.types import ROOT, Job, Queue
from webhook.paths import FieldPath
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.problems.rule import Rule
from webhook.quantity import Quantity
from webhook.wording import counted, did_you_mean

JOB_QUEUE_EXISTS: Final = VOLCANO_JOB.rule(
    "volcano-job/queue-exists",
    title="The queue of a Job exists.",
    why="A Job is stored only for a queue that is there.",
    function="validateJobCreate",
    issues=("https://github.com/volcano-sh/volcano/issues/195",),
)
JOB_QUEUE_OPEN: Final = VOLCANO_JOB.rule(
    "volcano-job/queue-open",
    title="The queue of a Job is open.",
    why="A queue that is closed, or that its controller has not seen yet, takes no Jobs.",
    function="validateJobCreate",
    issues=("https://github.com/volcano-sh/volcano/issues/3173",),
)
JOB_QUEUE_LEAF: Final = VOLCANO_JOB.rule(
    "volcano-job/queue-leaf",
    title="The queue of a Job has no queues below it.",
    why="Queues with children share what they have among them and hold no Jobs.",
    function="validateJobCreate",
)
JOB_CAPABILITY: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/capability",
    title="The queue of a Job may give what its gang needs.",
    why=(
        "The scheduler lets a gang in when its minimum is within the capability of the queue, and with the hierarchy "
        "of the capacity plugin also of every queue above it. Above that it waits for ever."
    ),
    refused_by="nobody; the job stays pending",
    source="https://github.com/volcano-sh/volcano/issues/4479",
    severity="high",
    fails="pending",
    issues=("https://github.com/volcano-sh/volcano/issues/3910",),
)
POD_GROUP_QUEUE_EXISTS: Final = VOLCANO_POD_GROUP.rule(
    "volcano-pod-group/queue-exists",
    title="The queue of a PodGroup exists.",
    why="A PodGroup is stored only for a queue that is there. The default queue may be another one in its namespace.",
    function="checkQueueState",
    issues=(
        "https://github.com/volcano-sh/volcano/issues/452",
        "https://github.com/volcano-sh/volcano/issues/1863",
    ),
)
POD_GROUP_QUEUE_OPEN: Final = VOLCANO_POD_GROUP.rule(
    "volcano-pod-group/queue-open",
    title="The queue of a PodGroup is open.",
    why="A queue that is closed, or that its controller has not seen yet, takes no gangs.",
    function="checkQueueState",
)
POD_GROUP_QUEUE_LEAF: Final = VOLCANO_POD_GROUP_ADVICE.rule(
    "volcano-pod-group/queue-leaf",
    title="The queue of a PodGroup has no queues below it.",
    why=(
        "Volcano's webhook looks only at the queues of Jobs. With the hierarchy of the capacity plugin, one gang in a "
        "queue with children stops the scheduler for everybody."
    ),
    refused_by="nobody; the scheduler stops",
    source="https://github.com/volcano-sh/volcano/issues/4227",
    severity="high",
    issues=("https://github.com/volcano-sh/volcano/pull/5590",),
)
POD_GROUP_CAPABILITY: Final = VOLCANO_POD_GROUP_ADVICE.rule(
    "volcano-pod-group/capability",
    title="The queue of a PodGroup may give what the gang needs.",
    why="A gang is let in when its minResources are within the capability of the queue. Above that it waits for ever.",
    source="https://github.com/volcano-sh/volcano/issues/3220",
    severity="high",
    issues=(
        "https://github.com/volcano-sh/volcano/issues/452",
        "https://github.com/volcano-sh/volcano/issues/1863",
    ),
)
POD_QUEUE_EXISTS: Final = VOLCANO_POD.rule(
    "volcano-pod/queue-exists",
    title="The queue that a workload of another project names exists.",
    why="Volcano's webhook refuses the PodGroup that is made of the workload, and the pods wait for it.",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/podgroup",
    issues=(
        "https://github.com/volcano-sh/volcano/issues/452",
        "https://github.com/volcano-sh/volcano/issues/1863",
    ),
)
POD_QUEUE_OPEN: Final = VOLCANO_POD.rule(
    "volcano-pod/queue-open",
    title="The queue that a workload of another project names is open.",
    why="Volcano's webhook refuses the PodGroup that is made of the workload, and the pods wait for it.",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/podgroup",
)
POD_QUEUE_LEAF: Final = VOLCANO_POD.rule(
    "volcano-pod/queue-leaf",
    title="The queue that a workload of another project names has no queues below it.",
    why=(
        "Volcano takes the PodGroup and places no pod of it. With the hierarchy of the capacity plugin, one gang in a "
        "queue with children stops the scheduler for everybody."
    ),
    refused_by="nobody; the scheduler stops",
    source="https://github.com/volcano-sh/volcano/issues/4227",
    severity="high",
)
POD_CAPABILITY: Final = VOLCANO_POD.rule(
    "volcano-pod/capability",
    title="The queue of a training job may give what its gang needs.",
    why=(
        "The operator writes minResources of a schedulingPolicy into the PodGroup, which is let in when they are "
        "within the capability of the queue. Above that it waits for ever."
    ),
    refused_by="nobody; the gang stays pending",
    source="https://github.com/volcano-sh/volcano/issues/3220",
    severity="high",
    issues=(
        "https://github.com/volcano-sh/volcano/issues/452",
        "https://github.com/volcano-sh/volcano/issues/1863",
    ),
)
QUEUE_LABEL: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/queue-label",
    title="The name of a queue fits into a label.",
    why=(
        "The pods of a Job carry the name of its queue as a label, of at most 63 characters, while queues may have "
        "longer names."
    ),
    fails="controller",
)
QUEUE_ANCESTOR: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/queue-ancestor",
    title="The queues above that of a Job are open.",
    why="Volcano looks only at the state of the Job's own queue, so closing a queue does not stop those below it.",
    refused_by="nobody; the job runs",
)
_LONGEST_LABEL: Final = 63


class QueueRules(NamedTuple):
    """The rules of the queues that objects of one kind name."""

    exists: Rule
    open: Rule
    leaf: Rule
    capability: Rule


OF_JOBS: Final = QueueRules(JOB_QUEUE_EXISTS, JOB_QUEUE_OPEN, JOB_QUEUE_LEAF, JOB_CAPABILITY)
OF_POD_GROUPS: Final = QueueRules(
    POD_GROUP_QUEUE_EXISTS, POD_GROUP_QUEUE_OPEN, POD_GROUP_QUEUE_LEAF, POD_GROUP_CAPABILITY
)
OF_PODS: Final = QueueRules(POD_QUEUE_EXISTS, POD_QUEUE_OPEN, POD_QUEUE_LEAF, POD_CAPABILITY)


def validate_queue(name: str, path: FieldPath | str, subject: Subject, rules: QueueRules) -> Iterator[Problem]:
    """A queue that is named exists, is open, and has no queues below it."""
    if name and not is_placeholder(name):
        yield from _queue_exists(name, path, subject, rules)
        yield from _queue_open(name, path, subject, rules)
        yield from _queue_leaf(name, path, subject.once(read_queues), rules)


def _queue_exists(name: str, path: FieldPath | str, subject: Subject, rules: QueueRules) -> Iterator[Problem]:
    """A queue that does not exist, or of which nobody knows whether it does."""
    queues = subject.once(read_queues)
    if name in queues.all or name in ALWAYS_THERE:
        return
    if not queues.is_whole:
        yield rules.exists.problem(path, missing=queues.missing(name))
        return
    fix = did_you_mean(subject.view().nearest(name, queues.all), "create the queue, or correct the name")
    yield rules.exists.problem(path, "is a queue that does not exist", fix, name)


def _queue_open(name: str, path: FieldPath | str, subject: Subject, rules: QueueRules) -> Iterator[Problem]:
    """Report a queue that is closed and takes no new work."""
    queues = subject.once(read_queues)
    queue = queues.all.get(name)
    if queue is None or not queues.is_whole or queue.state == OPEN:
        return
    message = "is a new queue that is not open yet, which takes some seconds"
    fix = "wait until the queue is open"
    if queue.state:
        message = f"is a queue in state {queue.state}, but only an open queue takes jobs"
        fix = f"name another queue, or ask the administrator to open this one ({operate('open', name)})"
    yield rules.open.problem(path, message, fix, name)


def _queue_leaf(name: str, path: FieldPath | str, queues: Queues, rules: QueueRules) -> Iterator[Problem]:
    """A queue with queues below it, which Volcano's webhook refuses in a Job and does not look at in a PodGroup."""
    if queues.is_leaf(name):
        return
    children = queues.children.get(name, ())
    below = "the root queue" if name == ROOT else f"a queue with {_children(children, queues)}"
    message = (
        f"is {below}, but Volcano places pods only of queues without children (with enableHierarchy in the plugin "
        "capacity, Volcano then schedules no job at all)"
    )
    is_named = bool(children)
    if rules is OF_JOBS:
        message, is_named = f"is {below}, but a job must be in a queue without children", name != ROOT
    fix = f"name a queue below `{name}`, such as `{min(children)}`" if is_named else "name a queue below the root"
    yield rules.leaf.problem(path, message, fix, name)


def _children(names: Sequence[str], queues: Queues) -> str:
    """How many there are, and where the first of them stands."""
    origin = queues.origin(min(names)) if names else ""
    said = counted(len(names), "child", "children")
    return f"{said}{f' (`{min(names)}`{origin})' if origin else ''}"


def advise_capability(
    needed: Amounts, name: str, path: FieldPath, queues: Queues, rules: QueueRules
) -> Iterator[Problem]:
    """The first amount that a queue which there is, or one above it, never lets in."""
    for queue in (queues.all[name], *queues.ancestors(name)) if name in queues.all else ():
        for resource, amount, most in _above(needed, queue):
            why = f"spec.capability of the queue{queues.origin(name)} is {most}"
            if queue.name != name:
                where = "which counts if the capacity plugin has a hierarchy"
                above = f"queue `{queue.name}`{queues.origin(queue.name)} above this queue"
                why = f"spec.capability of {above} is {most}, {where}"
            needs = Quantity(amount, -3, most.format)
            message = f"can never give the {needs} {resource} that the pods need together because {why}"
            fix = "ask for less, or ask the administrator to raise the capability"
            yield rules.capability.problem(path, message, fix, name)
            return


def _above(needed: Amounts, queue: Queue) -> Iterator[tuple[str, int, Quantity]]:
    """The amounts that are above the capability of a queue, where no cpu and no memory count as no limit."""
    for resource, amount in needed.items():
        most = queue.spec.capability.get(resource)
        if most is not None and amount > most.milli_value() and (most or resource not in ("cpu", "memory")):
            yield resource, amount, most


def advise_queue(job: Job, subject: Subject) -> Iterator[Problem]:
    """A queue whose name no label can hold, or that has a closed queue above it."""
    if not is_placeholder(job.spec.queue):
        yield from _queue_label(job)
        yield from _queue_ancestor(job, subject)


def _queue_label(job: Job) -> Iterator[Problem]:
    if len(job.spec.queue) > _LONGEST_LABEL:
        message = (
            f"leads to pods that are refused because they carry the name in a label, with at most {_LONGEST_LABEL} "
            "characters"
        )
        fix = "name a queue with a shorter name"
        yield QUEUE_LABEL.problem(job.spec.path("queue"), message, fix, job.spec.queue)


def _queue_ancestor(job: Job, subject: Subject) -> Iterator[Problem]:
    name, queues = job.spec.queue, subject.once(read_queues)
    closed = next((above for above in queues.ancestors(name) if above.state not in ("", OPEN)), None)
    if closed is not None:
        message = (
            f"is below queue `{closed.name}`, which is in state {closed.state}, but Volcano runs the job because it "
            f"looks only at the state of `{name}`"
        )
        fix = f"close queue `{name}` too ({operate('close', name)}) if its jobs must not run"
        yield QUEUE_ANCESTOR.problem(job.spec.path("queue"), message, fix, name)
