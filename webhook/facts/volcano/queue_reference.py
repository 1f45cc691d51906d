"""The queue that a Job, a PodGroup or a pod names: it exists, is open, and has no queues below it.

Each of these kinds has rules of its own about it: job_queue.py, pod_group.py, named_queue.py. Source:
volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/jobs/validate/admit_job.go and podgroups/validate. A PodGroup is
taken into a queue that is not a leaf; with the plugin capability and hierarchy, the scheduler then schedules nothing at
all (pkg/scheduler/plugins/capacity/capacity.go checkHierarchicalQueue).
"""

from __future__ import annotations

from webhook.facts.subject import Subject
from webhook.facts.volcano.explanation import Explanation
from webhook.facts.volcano.queues import ALWAYS_THERE, OPEN, Queues, operate, read_queues
from webhook.facts.volcano.types import ROOT
from webhook.paths import FieldPath
from webhook.wording import counted, did_you_mean

_CREATE = "create the queue, or correct the name"


def absent_queue(name: str, path: FieldPath | str, subject: Subject) -> Explanation | None:
    """A queue that does not exist, or of which nobody knows whether it does."""
    queues = subject.once(read_queues)
    if name in queues.all or name in ALWAYS_THERE:
        return None
    if not queues.is_whole:
        return Explanation(path, missing=queues.missing(name))
    fix = did_you_mean(subject.view().nearest(name, queues.all), _CREATE)
    return Explanation(path, "is a queue that does not exist", fix, name)


def closed_queue(name: str, path: FieldPath | str, queues: Queues) -> Explanation | None:
    """A queue that takes no work."""
    queue = queues.all.get(name)
    if queue is None or not queues.is_whole or queue.state == OPEN:
        return None
    if not queue.state:
        message = "is a new queue that is not open yet, which takes some seconds"
        return Explanation(path, message, "wait until the queue is open", name)
    message = f"is a queue in state {queue.state}, but only an open queue takes jobs"
    fix = f"name another queue, or ask the administrator to open this one ({operate('open', name)})"
    return Explanation(path, message, fix, name)


def inner_queue(name: str, path: FieldPath | str, queues: Queues) -> Explanation | None:
    """A queue with queues below it, which Volcano's webhook does not look at in a PodGroup."""
    children = queues.children.get(name)
    if name != ROOT and not children:
        return None
    below = "the root queue" if name == ROOT else f"a queue with {counted(len(children or ()), 'child', 'children')}"
    message = (
        f"is {below}, but Volcano places pods only of queues without children (with enableHierarchy in the plugin "
        "capacity, Volcano then schedules no job at all)"
    )
    fix = f"name a queue below `{name}`, such as `{min(children)}`" if children else "name a queue below the root"
    return Explanation(path, message, fix, name)
