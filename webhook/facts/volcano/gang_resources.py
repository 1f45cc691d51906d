"""What a gang needs at once, and whether its queue may ever give so much.

The scheduler lets a PodGroup in when its minResources are within the capability of the queue; above it, that is never.
Source: volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/job_controller_actions.go calcPGMinResources,
pkg/scheduler/plugins/{proportion,capacity}. What nodes and guarantees of other queues leave is not looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.pods import amounts
from webhook.facts.pods.pod_level_resources import together
from webhook.facts.pods.resource_validation import places_of
from webhook.facts.subject import Subject
from webhook.facts.volcano.job import Job, Task, problem
from webhook.facts.volcano.queues import Queues, read_queues
from webhook.paths import FieldPath
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.quantity import Quantity

Amounts = Mapping[str, int]
"""Amounts of resources in thousandths."""
_PLAIN = frozenset(("cpu", "memory", "ephemeral-storage", "storage", "pods"))


def advise_capability(job: Job, subject: Subject) -> Iterator[Problem]:
    """A queue that can never give what the pods of the gang ask for together."""
    queues = subject.once(read_queues)
    name = str(job.spec.get("queue", ""))
    if job.is_filled and name in queues.all:
        yield from above_capability(min_resources(job), name, (*job.at, "queue"), queues, problem)


def above_capability(
    needed: Amounts, name: str, path: FieldPath, queues: Queues, problem: Callable[..., Problem]
) -> Iterator[Problem]:
    """Amounts that a queue, or one above it, does not let in; the first of them is told."""
    for queue in (queues.all[name], *queues.ancestors(name)):
        capability = queue.spec.capability
        for resource, amount in needed.items():
            most = capability.get(resource)
            if most is not None and amount > most.milli_value() and _is_limit(resource, most):
                why = f"spec.capability of the queue is {most}"
                if queue.name != name:
                    where = "which counts if the capacity plugin has a hierarchy"
                    why = f"spec.capability of queue `{queue.name}` above this queue is {most}, {where}"
                asked = Quantity(amount, -3, most.format)
                message = f"can never give the {asked} {resource} that the pods need together because {why}"
                fix = "ask for less, or ask the administrator to raise the capability"
                yield problem("capability", path, message, fix, name)
                return


def written_amounts(written: Mapping[str, JSON], deadline: Deadline) -> Amounts:
    """Quantities as they are written; what is not one is left out."""
    read = ((name, amounts.read(amounts.text_of(value))) for name, value in deadline.each(written.items()))
    return {name: amount.milli_value() for name, amount in read if amount is not None}


def _is_limit(resource: str, most: Quantity) -> bool:
    """No cpu and no memory count as no limit."""
    return bool(most) or resource not in ("cpu", "memory")


def min_resources(job: Job) -> Amounts:
    """What the pods that have to be placed together ask for; with several priorities, the least that it may be."""
    tasks = [(task, pod_requests(task, job)) for task in job.deadline.each(job.tasks)]
    counts = _first(job) if job.min_available < sum(task.min_available for task in job.tasks) else _filled(job)
    if len({task.pod.get("priorityClassName") for task in job.tasks}) > 1:
        counts = [min(task.min_available, count) for task, count in zip(job.tasks, counts, strict=True)]
        if job.min_available < sum(task.min_available for task in job.tasks):
            return {}
    total: Counter[str] = Counter()
    for (_, requests), count in zip(tasks, counts, strict=True):
        for name, amount in requests.items():
            total[name] += amount * count
    return total


def _first(job: Job) -> Sequence[int]:
    """The first pods of all tasks, as many as the gang needs."""
    left, counts = job.min_available, []
    for task in job.tasks:
        counts.append(min(task.replicas, left))
        left -= counts[-1]
    return counts


def _filled(job: Job) -> Sequence[int]:
    """What each task needs, and then further pods until there are enough."""
    counts = [min(task.min_available, task.replicas) for task in job.tasks]
    left = job.min_available - sum(counts)
    for index, task in enumerate(job.tasks):
        more = min(task.replicas - counts[index], max(left, 0))
        counts[index] += more
        left -= more
    return counts


def pod_requests(task: Task, job: Job) -> Amounts:
    """What one pod of a task asks for, init containers and the pod as a whole among it."""
    places = places_of(task.pod, job.deadline)
    names = {name for place in places for name in (*place.limits, *place.requests) if not is_placeholder(name)}
    asked = dict(
        together(
            [each for each in places if each.part in ("containers", "initContainers")], names, "requests", job.deadline
        )
    )
    for place in places:
        if place.part == "pod":
            asked |= together([place], names, "requests", job.deadline)
    return asked


def is_unknown_resource(name: str) -> bool:
    """Whether no node can have a resource of this name: one without a domain that Kubernetes does not know."""
    return "/" not in name and "." not in name and name not in _PLAIN and amounts.name_of(name).page is None
