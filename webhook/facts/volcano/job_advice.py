"""Jobs that Volcano takes and that do not run, or not as they are written.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job: createJobPod and the plugin svc, which makes host names of
pod names; k8s.io/kubernetes v1.36 validates those when a pod is created.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.kinds import PRIORITY_CLASS
from webhook.facts.scheduling.priority_classes import ALWAYS_THERE
from webhook.facts.subject import Subject
from webhook.facts.volcano.groups import VOLCANO_JOB_ADVICE
from webhook.facts.volcano.queues import read_queues
from webhook.facts.volcano.types import Job, Task
from webhook.paths import render
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.wording import counted

REPLICAS: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/replicas",
    title="A task says how many pods it has.",
    why="Unlike in a Deployment, no replicas means none, and nothing runs.",
    refused_by="nobody; the job has no pods",
)
NO_PODS: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/no-pods",
    title="A Job has pods.",
    why="A Job whose tasks have no replicas does nothing.",
    refused_by="nobody; the job has no pods",
)
MIN_SUCCESS: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/min-success",
    title="A Job needs no more successful pods than it has.",
    why="It would never complete.",
    refused_by="nobody; the job never completes",
    fails="waiting",
)
OTHER_SCHEDULER: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/other-scheduler",
    title="All pods of a Job are placed by its scheduler.",
    why=(
        "A pod template that names another scheduler takes its pods out of the gang, which then starts without them "
        "or never."
    ),
    refused_by="nobody; the gang is incomplete",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/job_controller_util.go",
    function="createJobPod",
    fails="pending",
)
HOST_NAME: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/host-name",
    title="With the plugin svc, names of pods are names of hosts.",
    why=(
        "The plugin makes the name of each pod its host name and that of the Job its subdomain. Both are DNS labels "
        "of at most 63 characters without dots."
    ),
    source="https://github.com/volcano-sh/volcano/issues/4691",
    fails="controller",
)
VOLCANO_JOB_PRIORITY_CLASS: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/priority-class",
    title="The PriorityClass of a Job exists.",
    why="Kubernetes refuses pods whose class does not exist.",
    source="k8s.io/kubernetes v1.36 plugin/pkg/admission/priority",
    fails="controller",
)
TASK_MINIMUM: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/task-minimum",
    title="A gang needs all that its tasks need.",
    why=(
        "The scheduler looks at minAvailable of tasks only where minAvailable of the Job is not less than their sum, "
        "to which a task without one adds all of its replicas. Otherwise any pods make up the gang."
    ),
    refused_by="nobody; minAvailable of the tasks has no effect",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/api/job_info.go",
    function="CheckTaskValid",
)

_LONGEST_HOST: Final = 63


def advise_pods(job: Job) -> Iterator[Problem]:
    """Tasks without pods, and more successes than pods."""
    spec = job.spec
    if not spec.is_filled:
        return
    silent = [task for task in spec.tasks if not task.has("replicas")]
    for task in silent:
        message = "is not set, which means 0, so the task has no pods"
        yield REPLICAS.problem(task.path("replicas"), message, "set a number")
    if spec.tasks and not spec.pods and not silent:
        message = "have no replicas, so the job has nothing to run"
        yield NO_PODS.problem(spec.path("tasks"), message, "set replicas of a task")
    yield from _min_success(job)


def _min_success(job: Job) -> Iterator[Problem]:
    wanted, pods = job.spec.min_success, job.spec.pods
    if wanted is not None and pods and wanted > pods:
        message = (
            f"must not be more than the {counted(pods, 'pod')} of all tasks because the job otherwise never completes"
        )
        yield MIN_SUCCESS.problem(job.spec.path("minSuccess"), message, f"set {pods} or less", wanted)


def advise_minima(job: Job) -> Iterator[Problem]:
    """A task that is to start with fewer pods than it has, in a gang that starts with fewer than its tasks need."""
    spec = job.spec
    if not spec.is_filled or not 0 < spec.min_available < spec.needed_pods:
        return
    task = next((task for task in spec.tasks if 0 < task.min_available < task.replicas), None)
    if task is not None:
        of_job, needed = render(spec.path("minAvailable")), spec.needed_pods
        message = (
            f"has no effect because {of_job} `{spec.min_available}` is less than the {counted(needed, 'pod')} that the "
            "tasks need together"
        )
        fix = f"set {of_job} to {needed}, or remove {of_job}"
        yield TASK_MINIMUM.problem(task.path("minAvailable"), message, fix, task.min_available)


def advise_schedulers(job: Job) -> Iterator[Problem]:
    """Pods that another scheduler places are not part of the gang."""
    of_job = job.spec.scheduler_name
    for task in job.spec.tasks:
        other = task.pod.scheduler_name or of_job
        if other != of_job and not is_placeholder(other + of_job):
            message = (
                f"takes these pods from scheduler `{of_job}` of the job, which starts the pods of the job together"
            )
            yield OTHER_SCHEDULER.problem(task.pod.path("schedulerName"), message, "remove schedulerName", other)


def advise_host_names(job: Job) -> Iterator[Problem]:
    """With the plugin svc, the names of pods are host names, and the name of the Job is a subdomain."""
    if "svc" not in job.spec.plugins or not job.name or is_placeholder(job.name):
        return
    for task in job.spec.tasks:
        fields = [] if task.pod.hostname else ["hostname"]
        fields += [] if task.pod.subdomain else ["subdomain"]
        if "." in job.name and fields:
            yield _host_with_dots(" and ".join(fields), job)
            return
        yield from _advise_length(task, job)


def _host_with_dots(fields: str, job: Job) -> Problem:
    message = (
        f"leads to pods that are refused because plugin svc uses the name as their {fields}, where dots are not allowed"
    )
    return _host_name(message, "use dashes instead of dots", job)


def _advise_length(task: Task, job: Job) -> Iterator[Problem]:
    last = f"{job.name}-{task.name}-{max(task.replicas - 1, 0)}"
    if len(last) <= _LONGEST_HOST or task.pod.hostname or is_placeholder(task.name):
        return
    if len(f"{job.name}-{task.name}-{task.index}") > _LONGEST_HOST:
        return  # refused
    message = (
        f"leads to a pod `{last}` that is refused because plugin svc uses this name as hostname, with at most "
        f"{_LONGEST_HOST} characters"
    )
    yield _host_name(message, f"remove {counted(len(last) - _LONGEST_HOST, 'character')}", job)


def _host_name(message: str, fix: str, job: Job) -> Problem:
    return HOST_NAME.problem("metadata.name", message, fix, job.name)


def advise_priority(job: Job, subject: Subject) -> Iterator[Problem]:
    """The PriorityClass of the Job, which its pods get."""
    name = job.spec.priority_class_name
    if not name or name in ALWAYS_THERE or is_placeholder(name):
        return
    view, path = subject.view(), job.spec.path("priorityClassName")
    if view.get(PRIORITY_CLASS, name, namespaced=False) is not None:
        return
    if not (view.is_whole() or subject.once(read_queues).is_whole):
        yield VOLCANO_JOB_PRIORITY_CLASS.problem(path, missing=view.missing()[""])
        return
    message = "names a PriorityClass that does not exist, so Kubernetes refuses every pod"
    yield VOLCANO_JOB_PRIORITY_CLASS.problem(path, message, "create the class, or correct the name", name)
