"""The queue of a Job: an open leaf that can give what the gang needs.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/jobs/validate/admit_job.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.subject import Subject
from webhook.facts.volcano.groups import VOLCANO_JOB_ADVICE
from webhook.facts.volcano.queue_tree import OPEN, operate, read_queues
from webhook.facts.volcano_objects.types import Job
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

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
