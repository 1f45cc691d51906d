"""Computes what the pods of a gang request together, for the comparison with the capability of the queue.

The scheduler never admits a PodGroup with minResources above the capability. Free capacity of nodes and guarantees of
other queues are not considered.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/job_controller_actions.go calcPGMinResources,
pkg/scheduler/plugins/{proportion,capacity}.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from webhook.apimachinery import quantity
from webhook.facts.pods import amounts
from webhook.facts.pods.pod_resources import resources_in_json_spec, sum_requests_of_containers
from webhook.facts.volcano_objects.types import Job, Task
from webhook.typed.collections import Entries
from webhook.typed.fields import Amount
from webhook.yamltext.placeholders import is_placeholder

Amounts: TypeAlias = Mapping[str, int]
"""Amounts of resources in thousandths."""
_PLAIN: Final = frozenset(("cpu", "memory", "ephemeral-storage", "storage", "pods"))


def amounts_in_thousandths(written: Entries[Amount]) -> Amounts:
    """Return written quantities in thousandths; invalid quantities are left out."""
    read = ((name, quantity.read_quantity_or_none(value)) for name, value in written.items())
    return {name: amount.milli_value() for name, amount in read if amount is not None}


def requests_of_gang(job: Job) -> Amounts:
    """Return the sum of the requests of the gang's pods.

    If tasks have several priority classes, only pods that are certainly in the gang count.
    """
    tasks, is_below_minima = job.spec.tasks, job.spec.min_available < job.spec.needed_pod_count
    counts = _count_gang_pods_in_task_order(job) if is_below_minima else _count_gang_pods_after_task_minima(job)
    if len({task.pod_spec.priority_class_name for task in tasks}) > 1:
        if is_below_minima:
            return {}
        counts = [min(task.min_available, count) for task, count in zip(tasks, counts, strict=True)]
    total: Counter[str] = Counter()
    for task, count in zip(tasks, counts, strict=True):
        for name, amount in _requests_of_pod(task).items():
            total[name] += amount * count
    return total


def _count_gang_pods_in_task_order(job: Job) -> Sequence[int]:
    """Return the number of pods by task if the gang starts with the pods of the first tasks."""
    left, counts = job.spec.min_available, []
    for task in job.spec.tasks:
        counts.append(min(task.replicas, left))
        left -= counts[-1]
    return counts


def _count_gang_pods_after_task_minima(job: Job) -> Sequence[int]:
    """Return the number of pods by task: the minimum of each task, then more pods of the first tasks up to
    minAvailable.
    """
    counts = [min(task.min_available, task.replicas) for task in job.spec.tasks]
    left = job.spec.min_available - sum(counts)
    for index, task in enumerate(job.spec.tasks):
        more = min(task.replicas - counts[index], max(left, 0))
        counts[index] += more
        left -= more
    return counts


def _requests_of_pod(task: Task) -> Amounts:
    """Return what one pod of a task requests, including init containers and amounts of the pod as a whole."""
    deadline = task.reading.deadline
    places = resources_in_json_spec(task.pod_spec.json, deadline)
    names = {name for place in places for name in (*place.limits, *place.requests) if not is_placeholder(name)}
    containers = [place for place in places if place.part in ("containers", "initContainers")]
    requests = dict(sum_requests_of_containers(containers, names, "requests", deadline))
    for place in places:
        if place.part == "pod":
            requests |= sum_requests_of_containers([place], names, "requests", deadline)
    return requests


def is_unknown_resource(name: str) -> bool:
    """Return whether no node can have a resource of this name. The name has no domain, and Kubernetes does not define
    the name.
    """
    return "/" not in name and "." not in name and name not in _PLAIN and amounts.parse_resource_name(name).page is None
