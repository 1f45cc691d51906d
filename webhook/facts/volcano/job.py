"""All rules of Volcano's webhook for a new or changed Job. The rules here are about tasks: their names, numbers of pods
and partitions, and the size of the gang.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/jobs/validate/admit_job.go validateJobCreate and
validateJobUpdate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from webhook.apimachinery.paths import path_as_text
from webhook.facts.subject import Subject
from webhook.facts.volcano.groups import VOLCANO_JOB, VOLCANO_JOB_ADVICE
from webhook.facts.volcano.hyper_node import validate_network_topology
from webhook.facts.volcano.job_dependencies_and_deadlocks import validate_dependencies
from webhook.facts.volcano.job_events_actions_and_exit_codes import validate_policies
from webhook.facts.volcano.job_names import task_name_twice_problem, validate_job_name
from webhook.facts.volcano.job_plugins import check_plugins_exist, validate_mpi_master
from webhook.facts.volcano.job_scheduling import JOB_QUEUE_RULES, JOB_TIER_RULES
from webhook.facts.volcano.job_template import validate_task_templates, validate_volumes
from webhook.facts.volcano.queue_tree import validate_queue
from webhook.facts.volcano.sent_job import paths_of_changed_fields
from webhook.facts.volcano_objects.types import Job, JobSpec, Task
from webhook.rules.problem import Problem
from webhook.text.wording import counted
from webhook.yamltext.placeholders import is_placeholder

TASK_REQUIRED: Final = VOLCANO_JOB.rule(
    "volcano-job/task-required",
    title="The Job has no task",
    why="A Job without tasks has no pods.",
    function="validateJobCreate",
)
TASK_MIN_AVAILABLE: Final = VOLCANO_JOB.rule(
    "volcano-job/task-min-available",
    title="The task's minAvailable is above its replicas",
    why="The gang would wait for pods that are never created.",
    function="validateJobCreate",
    refused_on_updates="pkg/webhooks/admission/jobs/validate/admit_job.go validateJobUpdate",
)
MIN_AVAILABLE: Final = VOLCANO_JOB.rule(
    "volcano-job/min-available",
    title="minAvailable of the Volcano Job is above the number of its pods",
    why="The gang would wait for pods that are never created.",
    function="validateJobCreate",
    refused_on_updates="pkg/webhooks/admission/jobs/validate/admit_job.go validateJobUpdate",
)
PARTITION_REPLICAS: Final = VOLCANO_JOB.rule(
    "volcano-job/partition-replicas",
    title="The replicas are not totalPartitions times partitionSize",
    why="Every pod belongs to a partition, and all partitions have the same size.",
    function="validatePartitionPolicy",
    refused_on_updates="pkg/webhooks/admission/jobs/validate/admit_job.go validateJobUpdate",
)
PARTITION_MIN_AVAILABLE: Final = VOLCANO_JOB.rule(
    "volcano-job/partition-min-available",
    title="minAvailable is not minPartitions times partitionSize",
    why="Volcano places a partition as a whole.",
    function="validatePartitionPolicy",
    refused_on_updates="pkg/webhooks/admission/jobs/validate/admit_job.go validateJobUpdate",
)
REPLICAS: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/replicas",
    title="The task does not set replicas",
    why="Unlike in a Deployment, the default is 0, so the task has no pods.",
    refused_by="nothing; the task has no pods",
)
NO_PODS: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/no-pods",
    title="No task of the Job has replicas",
    why="Volcano accepts the Job, but the Job has no pods, so nothing runs.",
    refused_by="nothing; the job has no pods",
)
MIN_SUCCESS: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/min-success",
    title="minSuccess is above the number of pods",
    why="The Job never reaches this number, so it never completes.",
    refused_by="nothing; the job never completes",
    fails="waiting",
)
TASK_MINIMUM: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/task-minimum",
    title="minAvailable is below the sum of minAvailable of the tasks",
    why=(
        "The scheduler reads minAvailable of tasks only if minAvailable of the Job is at least the sum over the tasks. "
        "Otherwise any pods can form the gang."
    ),
    refused_by="nothing; minAvailable of the tasks has no effect",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/api/job_info.go",
    function="CheckTaskValid",
)
TASKS_KEPT: Final = VOLCANO_JOB.rule(
    "volcano-job/tasks-kept",
    title="The number of tasks was changed",
    why="The pods and the PodGroup were created from the old tasks.",
    function="validateJobUpdate",
    refused_on_updates="pkg/webhooks/admission/jobs/validate/admit_job.go validateJobUpdate",
)
IMMUTABLE: Final = VOLCANO_JOB.rule(
    "volcano-job/immutable",
    title="An immutable field of the Volcano Job was changed",
    why="Volcano accepts only changes of minAvailable, priorityClassName, and replicas and minAvailable of tasks.",
    function="validateJobUpdate",
    refused_on_updates="pkg/webhooks/admission/jobs/validate/admit_job.go validateJobUpdate",
)
_SCALED: Final = ("minAvailable", "priorityClassName")
_TASK_SCALED: Final = ("replicas", "minAvailable")
_DEFAULTS: Final[Mapping[str, Any]] = {"queue": "default", "maxRetry": 3}
"""The defaults of the schema, which every stored Job has."""


def validate_create(job: Job, subject: Subject) -> Iterator[Problem]:
    """Yield the problems that the webhook would report about a Job, including its queue."""
    yield from validate_tasks(job)
    yield from check_plugins_exist(job)
    yield from validate_mpi_master(job)
    yield from validate_network_topology(job.spec.network_topology, JOB_TIER_RULES)
    yield from validate_policies(job)
    yield from validate_job_name(job)
    yield from validate_task_templates(job)
    if job.spec.tasks:
        yield from validate_min_available(job)
    yield from validate_volumes(job)
    yield from validate_dependencies(job)
    yield from validate_queue(job.spec.queue, job.spec.path("queue"), subject, JOB_QUEUE_RULES)


def validate_tasks(job: Job) -> Iterator[Problem]:
    """Yield the problems of missing tasks, repeated names, tasks that need more pods than they have, and partitions."""
    tasks = job.spec.tasks
    if not tasks:
        yield _missing_task_problem(job)
    seen: dict[str, int] = {}
    for task in tasks:
        if task.name in seen and not is_placeholder(task.name):
            yield task_name_twice_problem(task, seen[task.name])
        seen.setdefault(task.name, task.index)
        if job.spec.has_no_placeholders:
            yield from validate_task_min_available(task, "lower minAvailable, or raise replicas")
        if task.partition_policy:
            yield from validate_partition_policy(task, job)


def _missing_task_problem(job: Job) -> Problem:
    """Return the problem of a Job without tasks.

    The path is spec.template if the spec looks like a Job of Kubernetes.
    """
    if job.spec.has("template"):
        message = "is not a field of a Volcano Job, and spec.tasks has no task, so the job has nothing to run"
        return TASK_REQUIRED.problem(
            job.spec.path("template"), message, "move the template into an entry of spec.tasks"
        )
    return TASK_REQUIRED.problem(job.spec.path("tasks"), "has no task, so the job has nothing to run", "add a task")


def validate_task_min_available(task: Task, fix: str) -> Iterator[Problem]:
    """Yield the problem of a task that needs more pods than it has."""
    if task.min_available > task.replicas:
        message = f"must not be more than the {counted(task.replicas, 'replica')} of the task"
        yield TASK_MIN_AVAILABLE.problem(task.path("minAvailable"), message, fix, task.min_available)


def validate_min_available(job: Job) -> Iterator[Problem]:
    """Yield the problem of a gang that needs more pods than the Job has."""
    spec = job.spec
    if spec.has_no_placeholders and spec.min_available > spec.pod_count:
        message = f"must not be more than the {counted(spec.pod_count, 'pod')} of all tasks"
        yield MIN_AVAILABLE.problem(
            spec.path("minAvailable"), message, f"set {spec.pod_count} or less", spec.min_available
        )


def validate_partition_policy(task: Task, job: Job) -> Iterator[Problem]:
    """Yield the problems of a task's partitions: numbers that do not match the pods of the task, and the topology."""
    policy = task.partition_policy
    total, size, least = policy.total_partitions, policy.partition_size, policy.min_partitions
    if job.spec.has_no_placeholders and total > 0 and size > 0:
        if task.replicas != total * size:
            message = f"must be {total * size}, the product of totalPartitions {total} and partitionSize {size}"
            fix = f"set {total * size}, or change the partitions"
            yield PARTITION_REPLICAS.problem(task.path("replicas"), message, fix, task.replicas)
        elif least > 0 and least * size != task.min_available:
            message = f"must be {least * size}, the product of minPartitions {least} and partitionSize {size}"
            fix = f"set {least * size}, or remove minAvailable of the task"
            yield PARTITION_MIN_AVAILABLE.problem(task.path("minAvailable"), message, fix, task.min_available)
    yield from validate_network_topology(policy.network_topology, JOB_TIER_RULES)


def warn_of_tasks_without_pods(job: Job) -> Iterator[Problem]:
    """Report tasks without pods, and a minSuccess above the number of pods."""
    spec = job.spec
    if not spec.has_no_placeholders:
        return
    without_replicas = [task for task in spec.tasks if not task.has("replicas")]
    for task in without_replicas:
        message = "is not set, which means 0, so the task has no pods"
        yield REPLICAS.problem(task.path("replicas"), message, "set a number")
    if spec.tasks and not spec.pod_count and not without_replicas:
        message = "have no replicas, so the job has nothing to run"
        yield NO_PODS.problem(spec.path("tasks"), message, "set replicas of a task")
    yield from _check_min_success(job)


def _check_min_success(job: Job) -> Iterator[Problem]:
    wanted, pods = job.spec.min_success, job.spec.pod_count
    if wanted is not None and pods and wanted > pods:
        message = (
            f"must not be more than the {counted(pods, 'pod')} of all tasks because the job otherwise never completes"
        )
        yield MIN_SUCCESS.problem(job.spec.path("minSuccess"), message, f"set {pods} or less", wanted)


def warn_of_task_minima_above_gang(job: Job, sent: JobSpec) -> Iterator[Problem]:
    """Report a task with its own minAvailable, if minAvailable of the Job is below the sum over all tasks."""
    spec = job.spec
    if not spec.has_no_placeholders or not 0 < spec.min_available < spec.needed_pod_count:
        return
    task = next(_tasks_with_written_minimum(spec, sent), None)
    if task is not None:
        of_job, needed = path_as_text(spec.path("minAvailable")), spec.needed_pod_count
        message = (
            f"has no effect because {of_job} `{spec.min_available}` is less than {needed}, the sum of minAvailable of "
            "all tasks (replicas for a task without minAvailable)"
        )
        fix = f"set {of_job} to {needed}, or remove {of_job}"
        yield TASK_MINIMUM.problem(task.path("minAvailable"), message, fix, task.min_available)


def _tasks_with_written_minimum(spec: JobSpec, sent: JobSpec) -> Iterator[Task]:
    """Yield tasks with a minAvailable that a user wrote.

    Volcano's webhook sets a missing minAvailable to the replicas. So a minAvailable that equals the replicas counts as
    written only if another task has no minAvailable. The missing minAvailable shows that `sent` has no defaults.
    """
    written = [each.explicit_min_available for each in sent.tasks]
    has_no_defaults = None in written
    for task in spec.tasks:
        is_own = has_no_defaults and task.index < len(written) and written[task.index] == task.replicas > 0
        if 0 < task.min_available < task.replicas or is_own:
            yield task


def validate_update(job: Job, subject: Subject) -> Iterator[Problem]:
    """Yield the problems of an update: numbers of pods that do not fit together, and changes of immutable fields."""
    for task in job.spec.tasks:
        if job.spec.has_no_placeholders:
            yield from validate_task_min_available(task, "lower minAvailable of the task")
        if task.partition_policy:
            yield from validate_partition_policy(task, job)
    yield from validate_min_available(job)
    yield from validate_network_topology(job.spec.network_topology, JOB_TIER_RULES)
    old = subject.typed_old(Job)
    if len(old.spec.tasks) != len(job.spec.tasks):
        yield _changed_task_count_problem(old, job)
    elif not subject.omitted:
        yield from _check_immutable_fields(old, job)


def _changed_task_count_problem(old: Job, job: Job) -> Problem:
    count = counted(len(job.spec.tasks), "task")
    message = f"cannot change from {len(old.spec.tasks)} to {count} because a Job keeps the number of its tasks"
    return TASKS_KEPT.problem(job.spec.path("tasks"), message, "restore the tasks, or create a new Job")


def _check_immutable_fields(old: Job, job: Job) -> Iterator[Problem]:
    before, after = _spec_without_changeable_fields(old.spec, _DEFAULTS), _spec_without_changeable_fields(job.spec, {})
    path = next(paths_of_changed_fields(before, after, job.spec, Job.gvk), None)
    if path is not None:
        message = (
            "cannot change because in a Job only minAvailable, priorityClassName, and minAvailable and replicas of "
            "tasks may change"
        )
        yield IMMUTABLE.problem(path, message, "restore the old value, or create a new Job")


def _spec_without_changeable_fields(spec: JobSpec, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return a spec as JSON, without the fields that may change, and without claim names, which the controller sets."""
    unscaled = _without_fields({**defaults, **spec.json}, *_SCALED)
    unscaled["tasks"] = [_without_fields(task.json, *_TASK_SCALED) for task in spec.tasks]
    unscaled["volumes"] = [
        _without_fields(volume.json, "volumeClaimName") if volume.volume_claim else volume.json
        for volume in spec.volumes
    ]
    return unscaled


def _without_fields(value: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: inner for name, inner in value.items() if name not in names}
