"""Jobs that Volcano takes and that do not run, or not as they are written.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job: createJobPod and the plugin svc, which makes host names of
pod names; k8s.io/kubernetes v1.36 validates those when a pod is created.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.check import Group
from webhook.facts.kinds import PRIORITY_CLASS
from webhook.facts.scheduling.priority_classes import ALWAYS_THERE
from webhook.facts.subject import Subject
from webhook.facts.volcano.queues import read_queues
from webhook.facts.volcano.types import Job, Task
from webhook.paths import render
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.wording import counted

problem: Final = Group("volcano-job").problem
_LONGEST_HOST: Final = 63


def advise_pods(job: Job) -> Iterator[Problem]:
    """Tasks without pods, and more successes than pods."""
    spec = job.spec
    if not spec.is_filled:
        return
    silent = [task for task in spec.tasks if not task.has("replicas")]
    for task in silent:
        message = "is not set, which means 0, so the task has no pods"
        yield problem("replicas", task.path("replicas"), message, "set a number")
    if spec.tasks and not spec.pods and not silent:
        message = "have no replicas, so the job has nothing to run"
        yield problem("no-pods", spec.path("tasks"), message, "set replicas of a task")
    yield from _min_success(job)


def _min_success(job: Job) -> Iterator[Problem]:
    wanted, pods = job.spec.min_success, job.spec.pods
    if wanted is not None and pods and wanted > pods:
        message = (
            f"must not be more than the {counted(pods, 'pod')} of all tasks because the job otherwise never completes"
        )
        yield problem("min-success", job.spec.path("minSuccess"), message, f"set {pods} or less", wanted)


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
        yield problem("task-minimum", task.path("minAvailable"), message, fix, task.min_available)


def advise_schedulers(job: Job) -> Iterator[Problem]:
    """Pods that another scheduler places are not part of the gang."""
    of_job = job.spec.scheduler_name
    for task in job.spec.tasks:
        other = task.pod.scheduler_name or of_job
        if other != of_job and not is_placeholder(other + of_job):
            message = (
                f"takes these pods from scheduler `{of_job}` of the job, which starts the pods of the job together"
            )
            yield problem("other-scheduler", task.pod.path("schedulerName"), message, "remove schedulerName", other)


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
    return problem("host-name", "metadata.name", message, fix, job.name)


def advise_priority(job: Job, subject: Subject) -> Iterator[Problem]:
    """The PriorityClass of the Job, which its pods get."""
    name = job.spec.priority_class_name
    if not name or name in ALWAYS_THERE or is_placeholder(name):
        return
    view, path = subject.view(), job.spec.path("priorityClassName")
    if view.get(PRIORITY_CLASS, name, namespaced=False) is not None:
        return
    if not (view.is_whole() or subject.once(read_queues).is_whole):
        yield problem("priority-class", path, missing=view.missing()[""])
        return
    message = "names a PriorityClass that does not exist, so Kubernetes refuses every pod"
    yield problem("priority-class", path, message, "create the class, or correct the name", name)
