"""What Volcano's webhook refuses of the tasks of a Job: names, numbers of pods, partitions and topology.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/jobs/validate/admit_job.go; functions are named like
those there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.check import Group
from webhook.facts.volcano.job_topology import validate_network_topology
from webhook.facts.volcano.types import Job, Task
from webhook.name_faults import key_fault
from webhook.names import qualified_name
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.wording import counted

problem: Final = Group("volcano-job").problem
_LONGEST: Final = 63


def validate_tasks(job: Job) -> Iterator[Problem]:
    """There is a task, all have different names, and none needs more pods than it has."""
    tasks = job.spec.tasks
    if not tasks:
        message = "must have a task because the job has nothing to run otherwise"
        yield problem("task-required", job.spec.path("tasks"), message, "add a task")
    seen: dict[str, int] = {}
    for task in tasks:
        if task.name in seen and not is_placeholder(task.name):
            yield _task_name_twice(task, seen[task.name])
        seen.setdefault(task.name, task.index)
        if job.spec.is_filled:
            yield from validate_task_min_available(task, "lower minAvailable, or raise replicas")
        if task.partition_policy:
            yield from validate_partition_policy(task, job)


def _task_name_twice(task: Task, other: int) -> Problem:
    message = f"is also the name of task {other}"
    if task.name in (f"default{task.index}", f"default{other}"):
        message = f"{message}; a task without a name is called `default` and its index"
    return problem("task-name-twice", task.path("name"), message, "give each task its own name", task.name)


def validate_task_min_available(task: Task, fix: str) -> Iterator[Problem]:
    """No task needs more pods than it has."""
    if task.min_available > task.replicas:
        message = f"must not be more than the {counted(task.replicas, 'replica')} of the task"
        yield problem("task-min-available", task.path("minAvailable"), message, fix, task.min_available)


def validate_job_name(job: Job) -> Iterator[Problem]:
    """The name of the Job, and the names of its first pods, which begin with it."""
    if job.name and not is_placeholder(job.name):
        yield from _job_name(job)
        yield from _pod_name(job)


def _job_name(job: Job) -> Iterator[Problem]:
    if not qualified_name(job.name):
        return
    message = f"cannot be used in labels of the pods because {key_fault(job.name)}"
    fix = "use only letters, digits, dashes and dots in the name"
    if len(job.name) > _LONGEST:
        message = f"must have at most {_LONGEST} characters because the name is used in labels"
        fix = f"remove {counted(len(job.name) - _LONGEST, 'character')}"
    yield problem("job-name", "metadata.name", message, fix, job.name)


def _pod_name(job: Job) -> Iterator[Problem]:
    for task in job.spec.tasks:
        pod = f"{job.name}-{task.name}-{task.index}"
        if len(pod) > _LONGEST and not is_placeholder(task.name):
            message = (
                f"is too long because the pods of task `{task.name}` are named after the job, with at most {_LONGEST} "
                "characters in all"
            )
            fix = f"remove {counted(len(pod) - _LONGEST, 'character')}"
            yield problem("pod-name", "metadata.name", message, fix, job.name)
            return


def validate_min_available(job: Job) -> Iterator[Problem]:
    """The gang is not larger than the Job."""
    spec = job.spec
    if spec.is_filled and spec.min_available > spec.pods:
        message = f"must not be more than the {counted(spec.pods, 'pod')} of all tasks"
        yield problem(
            "min-available", spec.path("minAvailable"), message, f"set {spec.pods} or less", spec.min_available
        )


def validate_partition_policy(task: Task, job: Job) -> Iterator[Problem]:
    """Partitions of one size make up the task."""
    policy = task.partition_policy
    total, size, least = policy.total_partitions, policy.partition_size, policy.min_partitions
    if job.spec.is_filled and total > 0 and size > 0:
        if task.replicas != total * size:
            message = f"must be {total * size}, the product of totalPartitions {total} and partitionSize {size}"
            fix = f"set {total * size}, or change the partitions"
            yield problem("partition-replicas", task.path("replicas"), message, fix, task.replicas)
        elif least > 0 and least * size != task.min_available:
            message = f"must be {least * size}, the product of minPartitions {least} and partitionSize {size}"
            fix = f"set {least * size}, or remove minAvailable of the task"
            yield problem("partition-min-available", task.path("minAvailable"), message, fix, task.min_available)
    yield from validate_network_topology(policy.network_topology)
