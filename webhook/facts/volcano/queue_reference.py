"""The queue of a Job or a PodGroup: it exists, is open, and has no queues below it.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/jobs/validate/admit_job.go and podgroups/validate. A
PodGroup is taken into a queue that is not a leaf; with the plugin capability and hierarchy, the scheduler then
schedules nothing at all (pkg/scheduler/plugins/capacity/capacity.go checkHierarchicalQueue).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from webhook.facts.subject import Subject
from webhook.facts.volcano.job import Job, problem
from webhook.facts.volcano.queues import ALWAYS_THERE, OPEN, Queues, operate, read_queues
from webhook.facts.volcano.types import ROOT
from webhook.paths import FieldPath
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.wording import counted, did_you_mean

_LONGEST_LABEL = 63
_CREATE = "create the queue, or correct the name"


def validate_queue(job: Job, subject: Subject) -> Iterator[Problem]:
    """The queue of a Job is an open leaf."""
    name, path = str(job.spec.get("queue", "")), (*job.at, "queue")
    if not name or is_placeholder(name):
        return
    queues = subject.once(read_queues)
    yield from exists_and_is_open(name, path, queues, subject, problem)
    if name == ROOT:
        message = "is the root queue, but a job must be in a queue without children"
        yield problem("queue-leaf", path, message, "name a queue below the root", name)
    elif children := queues.children.get(name):
        below = counted(len(children), "child", "children")
        message = f"is a queue with {below}, but a job must be in a queue without children"
        yield problem("queue-leaf", path, message, f"name a queue below `{name}`, such as `{min(children)}`", name)


def holds_gangs(name: str, path: FieldPath | str, queues: Queues, problem: Callable[..., Problem]) -> Iterator[Problem]:
    """A queue that a PodGroup names has no queues below it, which Volcano's webhook does not look at."""
    children = queues.children.get(name)
    if name == ROOT or children:
        below = (
            "the root queue" if name == ROOT else f"a queue with {counted(len(children or ()), 'child', 'children')}"
        )
        message = (
            f"is {below}, but Volcano places pods only of queues without children (with enableHierarchy in the plugin "
            "capacity, Volcano then schedules no job at all)"
        )
        fix = f"name a queue below `{name}`, such as `{min(children)}`" if children else "name a queue below the root"
        yield problem("queue-leaf", path, message, fix, name)


def exists_and_is_open(
    name: str, path: FieldPath | str, queues: Queues, subject: Subject, problem: Callable[..., Problem]
) -> Iterator[Problem]:
    """A queue is there and takes work."""
    queue = queues.all.get(name)
    if queue is None and name in ALWAYS_THERE:
        return
    if queue is None:
        if not queues.is_whole:
            yield problem("queue-exists", path, missing=queues.missing(name))
            return
        near = subject.view().nearest(name, queues.all)
        fix = did_you_mean(near, _CREATE)
        yield problem("queue-exists", path, "is a queue that does not exist", fix, name)
    elif queues.is_whole and queue.state != OPEN:
        message = (
            f"is a queue in state {queue.state}, but only an open queue takes jobs"
            if queue.state
            else "is a new queue that is not open yet, which takes some seconds"
        )
        fix = f"name another queue, or ask the administrator to open this one ({operate('open', name)})"
        if not queue.state:
            fix = "wait until the queue is open"
        yield problem("queue-open", path, message, fix, name)


def advise_queue(job: Job, subject: Subject) -> Iterator[Problem]:
    """A queue whose name no label can hold, or that has a closed queue above it."""
    name, path = str(job.spec.get("queue", "")), (*job.at, "queue")
    if is_placeholder(name):
        return
    if len(name) > _LONGEST_LABEL:
        message = (
            f"leads to pods that are refused because they carry the name in a label, with at most {_LONGEST_LABEL} "
            "characters"
        )
        yield problem("queue-label", path, message, "name a queue with a shorter name", name)
    queues = subject.once(read_queues)
    closed = next((each for each in queues.ancestors(name) if each.state not in ("", OPEN)), None)
    if closed is not None:
        message = (
            f"is below queue `{closed.name}`, which is in state {closed.state}, but Volcano runs the job because it "
            f"looks only at the state of `{name}`"
        )
        fix = f"close queue `{name}` too ({operate('close', name)}) if its jobs must not run"
        yield problem("queue-ancestor", path, message, fix, name)
