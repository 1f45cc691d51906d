"""Rules for the queue of a Job: it must exist, be open, have no queues below it, and be able to give what the gang
needs.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/jobs/validate/admit_job.go validateJobCreate. How a queue
is looked up is in `referenced_queue`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.subject import Subject
from webhook.facts.volcano.groups import VOLCANO_JOB, VOLCANO_JOB_ADVICE
from webhook.facts.volcano.queue_tree import OPEN, read_queues, vcctl_command_for_queue
from webhook.facts.volcano.referenced_queue import QueueRules
from webhook.facts.volcano_objects.types import Job
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

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
OF_JOBS: Final = QueueRules(JOB_QUEUE_EXISTS, JOB_QUEUE_OPEN, JOB_QUEUE_LEAF, JOB_CAPABILITY, is_of_jobs=True)


def warn_of_queue_name_or_closed_ancestor(job: Job, subject: Subject) -> Iterator[Problem]:
    """Yield a queue whose name is not a valid label, or that has a closed queue above it."""
    if not is_placeholder(job.spec.queue):
        yield from _check_queue_name_fits_label(job)
        yield from _check_closed_queue_ancestor(job, subject)


def _check_queue_name_fits_label(job: Job) -> Iterator[Problem]:
    if len(job.spec.queue) > _LONGEST_LABEL:
        message = (
            f"leads to pods that are refused because they carry the name in a label, with at most {_LONGEST_LABEL} "
            "characters"
        )
        fix = "name a queue with a shorter name"
        yield QUEUE_LABEL.problem(job.spec.path("queue"), message, fix, job.spec.queue)


def _check_closed_queue_ancestor(job: Job, subject: Subject) -> Iterator[Problem]:
    name, queues = job.spec.queue, subject.once(read_queues)
    closed = next((above for above in queues.ancestors(name) if above.state not in ("", OPEN)), None)
    if closed is not None:
        message = (
            f"is below queue `{closed.name}`, which is in state {closed.state}, but Volcano runs the job because it "
            f"looks only at the state of `{name}`"
        )
        fix = f"close queue `{name}` too ({vcctl_command_for_queue('close', name)}) if its jobs must not run"
        yield QUEUE_ANCESTOR.problem(job.spec.path("queue"), message, fix, name)
