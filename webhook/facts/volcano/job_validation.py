"""What Volcano's webhook refuses of the tasks of a Job: names, numbers of pods, partitions and topology.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/jobs/validate/admit_job.go; functions are named like
those there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.volcano.groups import VOLCANO_JOB
from webhook.facts.volcano.network_topology import OF_JOBS, validate_network_topology
from webhook.facts.volcano.types import Job, Task
from webhook.name_faults import key_fault
from webhook.names import qualified_name
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.wording import counted

TASK_REQUIRED: Final = VOLCANO_JOB.rule(
    "volcano-job/task-required",
    title="A Job has a task.",
    why="Without tasks there are no pods.",
    function="validateJobCreate",
)
TASK_NAME_TWICE: Final = VOLCANO_JOB.rule(
    "volcano-job/task-name-twice",
    title="Tasks have different names.",
    why=(
        "Pods, dependencies and plugins find a task by its name. A task without a name is called default and its index."
    ),
    function="validateJobCreate",
)
TASK_MIN_AVAILABLE: Final = VOLCANO_JOB.rule(
    "volcano-job/task-min-available",
    title="A task needs no more pods than it has.",
    why="The gang would wait for pods that are never created.",
    function="validateJobCreate",
)
MIN_AVAILABLE: Final = VOLCANO_JOB.rule(
    "volcano-job/min-available",
    title="A Job needs no more pods than its tasks have together.",
    why="The gang would wait for pods that are never created.",
    function="validateJobCreate",
)
PARTITION_REPLICAS: Final = VOLCANO_JOB.rule(
    "volcano-job/partition-replicas",
    title="The replicas of a task are its partitions times their size.",
    why="Every pod belongs to a partition, and partitions have one size.",
    function="validatePartitionPolicy",
)
PARTITION_MIN_AVAILABLE: Final = VOLCANO_JOB.rule(
    "volcano-job/partition-min-available",
    title="minAvailable of a task with partitions is minPartitions times their size.",
    why="Partitions are placed as a whole.",
    function="validatePartitionPolicy",
)
JOB_NAME: Final = VOLCANO_JOB.rule(
    "volcano-job/job-name",
    title="The name of a Job fits into a label.",
    why="Its pods carry the name of the Job as a label, of at most 63 characters.",
    function="validateJobName",
)
POD_NAME: Final = VOLCANO_JOB.rule(
    "volcano-job/pod-name",
    title="The name of a Job leaves room for the names of its pods.",
    why="Pods are named after Job, task and index, with at most 63 characters.",
    function="validateK8sPodNameLength",
    issues=("https://github.com/volcano-sh/volcano/issues/4691",),
)

_LONGEST: Final = 63


def validate_tasks(job: Job) -> Iterator[Problem]:
    """There is a task, all have different names, and none needs more pods than it has."""
    tasks = job.spec.tasks
    if not tasks:
        message = "must have a task because the job has nothing to run otherwise"
        yield TASK_REQUIRED.problem(job.spec.path("tasks"), message, "add a task")
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
    return TASK_NAME_TWICE.problem(task.path("name"), message, "give each task its own name", task.name)


def validate_task_min_available(task: Task, fix: str) -> Iterator[Problem]:
    """No task needs more pods than it has."""
    if task.min_available > task.replicas:
        message = f"must not be more than the {counted(task.replicas, 'replica')} of the task"
        yield TASK_MIN_AVAILABLE.problem(task.path("minAvailable"), message, fix, task.min_available)


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
    yield JOB_NAME.problem("metadata.name", message, fix, job.name)


def _pod_name(job: Job) -> Iterator[Problem]:
    for task in job.spec.tasks:
        pod = f"{job.name}-{task.name}-{task.index}"
        if len(pod) > _LONGEST and not is_placeholder(task.name):
            message = (
                f"is too long because the pods of task `{task.name}` are named after the job, with at most {_LONGEST} "
                "characters in all"
            )
            fix = f"remove {counted(len(pod) - _LONGEST, 'character')}"
            yield POD_NAME.problem("metadata.name", message, fix, job.name)
            return


def validate_min_available(job: Job) -> Iterator[Problem]:
    """The gang is not larger than the Job."""
    spec = job.spec
    if spec.is_filled and spec.min_available > spec.pods:
        message = f"must not be more than the {counted(spec.pods, 'pod')} of all tasks"
        yield MIN_AVAILABLE.problem(spec.path("minAvailable"), message, f"set {spec.pods} or less", spec.min_available)


def validate_partition_policy(task: Task, job: Job) -> Iterator[Problem]:
    """Partitions of one size make up the task."""
    policy = task.partition_policy
    total, size, least = policy.total_partitions, policy.partition_size, policy.min_partitions
    if job.spec.is_filled and total > 0 and size > 0:
        if task.replicas != total * size:
            message = f"must be {total * size}, the product of totalPartitions {total} and partitionSize {size}"
            fix = f"set {total * size}, or change the partitions"
            yield PARTITION_REPLICAS.problem(task.path("replicas"), message, fix, task.replicas)
        elif least > 0 and least * size != task.min_available:
            message = f"must be {least * size}, the product of minPartitions {least} and partitionSize {size}"
            fix = f"set {least * size}, or remove minAvailable of the task"
            yield PARTITION_MIN_AVAILABLE.problem(task.path("minAvailable"), message, fix, task.min_available)
    yield from validate_network_topology(policy.network_topology, OF_JOBS)
