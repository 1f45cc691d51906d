"""The queue of a Job: an open leaf that can give what the gang needs.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/jobs/validate/admit_job.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.subject import Subject
from webhook.facts.volcano.gang_resources import above_capability, min_resources
from webhook.facts.volcano.groups import VOLCANO_JOB, VOLCANO_JOB_ADVICE
from webhook.facts.volcano.queue_reference import absent_queue, closed_queue
from webhook.facts.volcano.queues import OPEN, operate, read_queues
from webhook.facts.volcano.types import ROOT, Job
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.wording import counted

QUEUE_EXISTS: Final = VOLCANO_JOB.rule(
    "volcano-job/queue-exists",
    title="The queue of a Job exists.",
    why="A Job is stored only for a queue that is there.",
    function="validateJobCreate",
    issues=("https://github.com/volcano-sh/volcano/issues/195",),
)
QUEUE_OPEN: Final = VOLCANO_JOB.rule(
    "volcano-job/queue-open",
    title="The queue of a Job is open.",
    why="A queue that is closed, or that its controller has not seen yet, takes no Jobs.",
    function="validateJobCreate",
    issues=("https://github.com/volcano-sh/volcano/issues/3173",),
)
QUEUE_LEAF: Final = VOLCANO_JOB.rule(
    "volcano-job/queue-leaf",
    title="The queue of a Job has no queues below it.",
    why="Queues with children share what they have among them and hold no Jobs.",
    function="validateJobCreate",
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
CAPABILITY: Final = VOLCANO_JOB_ADVICE.rule(
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

_LONGEST_LABEL: Final = 63


def validate_queue(job: Job, subject: Subject) -> Iterator[Problem]:
    """The queue of a Job is an open leaf."""
    if job.spec.queue and not is_placeholder(job.spec.queue):
        yield from _queue_exists(job, subject)
        yield from _queue_open(job, subject)
        yield from _queue_leaf(job, subject)


def _queue_exists(job: Job, subject: Subject) -> Iterator[Problem]:
    if reason := absent_queue(job.spec.queue, job.spec.path("queue"), subject):
        yield QUEUE_EXISTS.problem(reason.path, reason.message, reason.fix, reason.found, missing=reason.missing)


def _queue_open(job: Job, subject: Subject) -> Iterator[Problem]:
    if reason := closed_queue(job.spec.queue, job.spec.path("queue"), subject.once(read_queues)):
        yield QUEUE_OPEN.problem(reason.path, reason.message, reason.fix, reason.found)


def _queue_leaf(job: Job, subject: Subject) -> Iterator[Problem]:
    name, path = job.spec.queue, job.spec.path("queue")
    children = subject.once(read_queues).children.get(name)
    if name == ROOT:
        message = "is the root queue, but a job must be in a queue without children"
        yield QUEUE_LEAF.problem(path, message, "name a queue below the root", name)
    elif children:
        below = counted(len(children), "child", "children")
        message = f"is a queue with {below}, but a job must be in a queue without children"
        yield QUEUE_LEAF.problem(path, message, f"name a queue below `{name}`, such as `{min(children)}`", name)


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


def advise_capability(job: Job, subject: Subject) -> Iterator[Problem]:
    """A queue that can never give what the pods of the gang ask for together."""
    queues = subject.once(read_queues)
    if job.spec.is_filled and job.spec.queue in queues.all:
        reason = above_capability(min_resources(job), job.spec.queue, job.spec.path("queue"), queues)
        if reason:
            yield CAPABILITY.problem(reason.path, reason.message, reason.fix, reason.found)
