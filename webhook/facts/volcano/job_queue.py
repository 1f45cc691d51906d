"""The queue of a Job: an open leaf that can give what the gang needs.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/jobs/validate/admit_job.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.check import Group
from webhook.facts.subject import Subject
from webhook.facts.volcano.gang_resources import above_capability, min_resources
from webhook.facts.volcano.queue_reference import absent_queue, closed_queue
from webhook.facts.volcano.queues import OPEN, operate, read_queues
from webhook.facts.volcano.types import ROOT, Job
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.wording import counted

problem: Final = Group("volcano-job").problem
_LONGEST_LABEL: Final = 63


def validate_queue(job: Job, subject: Subject) -> Iterator[Problem]:
    """The queue of a Job is an open leaf."""
    if job.spec.queue and not is_placeholder(job.spec.queue):
        yield from _queue_exists(job, subject)
        yield from _queue_open(job, subject)
        yield from _queue_leaf(job, subject)


def _queue_exists(job: Job, subject: Subject) -> Iterator[Problem]:
    if reason := absent_queue(job.spec.queue, job.spec.path("queue"), subject):
        yield problem("queue-exists", reason.path, reason.message, reason.fix, reason.found, missing=reason.missing)


def _queue_open(job: Job, subject: Subject) -> Iterator[Problem]:
    if reason := closed_queue(job.spec.queue, job.spec.path("queue"), subject.once(read_queues)):
        yield problem("queue-open", reason.path, reason.message, reason.fix, reason.found)


def _queue_leaf(job: Job, subject: Subject) -> Iterator[Problem]:
    name, path = job.spec.queue, job.spec.path("queue")
    children = subject.once(read_queues).children.get(name)
    if name == ROOT:
        message = "is the root queue, but a job must be in a queue without children"
        yield problem("queue-leaf", path, message, "name a queue below the root", name)
    elif children:
        below = counted(len(children), "child", "children")
        message = f"is a queue with {below}, but a job must be in a queue without children"
        yield problem("queue-leaf", path, message, f"name a queue below `{name}`, such as `{min(children)}`", name)


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
        yield problem("queue-label", job.spec.path("queue"), message, fix, job.spec.queue)


def _queue_ancestor(job: Job, subject: Subject) -> Iterator[Problem]:
    name, queues = job.spec.queue, subject.once(read_queues)
    closed = next((above for above in queues.ancestors(name) if above.state not in ("", OPEN)), None)
    if closed is not None:
        message = (
            f"is below queue `{closed.name}`, which is in state {closed.state}, but Volcano runs the job because it "
            f"looks only at the state of `{name}`"
        )
        fix = f"close queue `{name}` too ({operate('close', name)}) if its jobs must not run"
        yield problem("queue-ancestor", job.spec.path("queue"), message, fix, name)


def advise_capability(job: Job, subject: Subject) -> Iterator[Problem]:
    """A queue that can never give what the pods of the gang ask for together."""
    queues = subject.once(read_queues)
    if job.spec.is_filled and job.spec.queue in queues.all:
        reason = above_capability(min_resources(job), job.spec.queue, job.spec.path("queue"), queues)
        if reason:
            yield problem("capability", reason.path, reason.message, reason.fix, reason.found)
