"""What Volcano's webhook refuses of the tasks of a new Job: names, numbers of pods, partitions and topology.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/jobs/validate/admit_job.go; functions are named like
those there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from webhook.facts.volcano.job import Job, Task, problem
from webhook.name_faults import key_fault
from webhook.names import qualified_name
from webhook.paths import FieldPath
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.wording import counted

_LONGEST = 63


def validate_tasks(job: Job) -> Iterator[Problem]:
    """There is a task, each has a name of its own, and none needs more pods than it has."""
    if not job.tasks:
        yield problem(
            "task-required",
            (*job.at, "tasks"),
            "must have a task because the job has nothing to run otherwise",
            "add a task",
        )
    seen: dict[str, int] = {}
    for task in job.deadline.each(job.tasks):
        if task.name in seen and not is_placeholder(task.name):
            yield _same_name(task, seen[task.name])
        seen.setdefault(task.name, task.index)
        if job.is_filled and task.min_available > task.replicas:
            message = f"must not be more than the {counted(task.replicas, 'replica')} of the task"
            fix = "lower minAvailable, or raise replicas"
            yield problem("task-min-available", (*task.at, "minAvailable"), message, fix, task.min_available)
        yield from validate_partition_policy(task, job)


def _same_name(task: Task, other: int) -> Problem:
    made = task.name in (f"default{task.index}", f"default{other}")
    message = f"is also the name of task {other}"
    if made:
        message = f"{message}; a task without a name is called `default` and its index"
    return problem("task-name-twice", (*task.at, "name"), message, "give each task its own name", task.name)


def validate_job_name(job: Job) -> Iterator[Problem]:
    """The name of the Job, and the names of its first pods, which begin with it."""
    if not job.name:
        return
    if qualified_name(job.name):
        message = f"cannot be used in labels of the pods because {key_fault(job.name)}"
        fix = "use only letters, digits, dashes and dots in the name"
        if len(job.name) > _LONGEST:
            message = f"must have at most {_LONGEST} characters because the name is used in labels"
            fix = f"remove {counted(len(job.name) - _LONGEST, 'character')}"
        yield problem("job-name", "metadata.name", message, fix, job.name)
    for task in job.deadline.each(job.tasks):
        pod = f"{job.name}-{task.name}-{task.index}"
        if len(pod) > _LONGEST and not is_placeholder(task.name):
            message = (
                f"is too long because the pods of task `{task.name}` are named after the job, with at most {_LONGEST} "
                "characters in all"
            )
            yield problem(
                "pod-name", "metadata.name", message, f"remove {counted(len(pod) - _LONGEST, 'character')}", job.name
            )
            return


def validate_min_available(job: Job) -> Iterator[Problem]:
    """The gang is not larger than the Job."""
    if job.is_filled and job.tasks and job.min_available > job.pods:
        message = f"must not be more than the {counted(job.pods, 'pod')} of all tasks"
        yield problem("min-available", (*job.at, "minAvailable"), message, f"set {job.pods} or less", job.min_available)


def validate_partition_policy(task: Task, job: Job) -> Iterator[Problem]:
    """Partitions of one size make up the task."""
    policy = task.value.get("partitionPolicy")
    if policy is None:
        return
    at = (*task.at, "partitionPolicy")
    total, size, least = (policy.get(name) or 0 for name in ("totalPartitions", "partitionSize", "minPartitions"))
    if job.is_filled and total > 0 and size > 0:
        if task.replicas != total * size:
            message = f"must be {total * size}, the product of totalPartitions {total} and partitionSize {size}"
            fix = f"set {total * size}, or change the partitions"
            yield problem("partition-replicas", (*task.at, "replicas"), message, fix, task.replicas)
        elif least > 0 and least * size != task.min_available:
            message = f"must be {least * size}, the product of minPartitions {least} and partitionSize {size}"
            path = (*task.at, "minAvailable")
            fix = f"set {least * size}, or remove minAvailable of the task"
            yield problem("partition-min-available", path, message, fix, task.min_available)
    yield from validate_network_topology(policy, at)


def validate_network_topology(holder: Mapping[str, Any], at: FieldPath) -> Iterator[Problem]:
    """The highest tier is given by its number or by its name."""
    topology = holder.get("networkTopology")
    if topology and topology.get("highestTierAllowed") is not None and topology.get("highestTierName"):
        message = "must not be set together with highestTierAllowed"
        path = (*at, "networkTopology", "highestTierName")
        yield problem("highest-tier", path, message, "remove one of the two", topology["highestTierName"])


def validate_job_topology(job: Job) -> Iterator[Problem]:
    """The network topology of the Job as a whole."""
    yield from validate_network_topology(job.spec, job.at)
