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
from webhook.facts.volcano.job import Job, Task, problem
from webhook.facts.volcano.queues import read_queues
from webhook.paths import render
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.wording import counted

_LONGEST_HOST: Final = 63


def advise_pods(job: Job) -> Iterator[Problem]:
    """Tasks without pods, and more successes than pods."""
    if not job.is_filled:
        return
    silent = [task for task in job.tasks if task.value.get("replicas") is None]
    for task in silent:
        message = "is not set, which means 0, so the task has no pods"
        yield problem("replicas", (*task.at, "replicas"), message, "set a number")
    if job.tasks and not job.pods and not silent:
        message = "have no replicas, so the job has nothing to run"
        yield problem("no-pods", (*job.at, "tasks"), message, "set replicas of a task")
    wanted = job.spec.get("minSuccess")
    if wanted is not None and job.pods and wanted > job.pods:
        message = (
            f"must not be more than the {counted(job.pods, 'pod')} of all tasks because the job otherwise never "
            "completes"
        )
        yield problem("min-success", (*job.at, "minSuccess"), message, f"set {job.pods} or less", wanted)


def advise_minima(job: Job) -> Iterator[Problem]:
    """A task that is to start with fewer pods than it has, in a gang that starts with fewer than its tasks need."""
    needed = sum(task.min_available for task in job.tasks)
    if not job.is_filled or not 0 < job.min_available < needed:
        return
    for task in job.tasks:
        if 0 < task.min_available < task.replicas:
            of_job = render((*job.at, "minAvailable"))
            message = (
                f"has no effect because {of_job} `{job.min_available}` is less than the {counted(needed, 'pod')} that"
            )
            message = f"{message} the tasks need together"
            fix = f"set {of_job} to {needed}, or remove {of_job}"
            yield problem("task-minimum", (*task.at, "minAvailable"), message, fix, task.min_available)
            return


def advise_schedulers(job: Job) -> Iterator[Problem]:
    """Pods that another scheduler places are not part of the gang."""
    own = job.spec.get("schedulerName", "")
    for task in job.deadline.each(job.tasks):
        other = task.pod.get("schedulerName") or own
        if other != own and not is_placeholder(other + own):
            message = f"takes these pods from scheduler `{own}` of the job, which starts the pods of the job together"
            path = (*task.at, "template", "spec", "schedulerName")
            yield problem("other-scheduler", path, message, "remove schedulerName", other)


def advise_host_names(job: Job) -> Iterator[Problem]:
    """With the plugin svc, the names of pods are host names, and the name of the Job is a subdomain."""
    if "svc" not in job.plugins or not job.name:
        return
    for task in job.deadline.each(job.tasks):
        fields = [name for name in ("hostname", "subdomain") if not task.pod.get(name)]
        if "." in job.name and fields:
            what = " and ".join(fields)
            message = (
                f"leads to pods that are refused because plugin svc uses the name as their {what}, where dots are not "
                "allowed"
            )
            yield problem("host-name", "metadata.name", message, "use dashes instead of dots", job.name)
            return
        yield from _advise_length(task, job)


def _advise_length(task: Task, job: Job) -> Iterator[Problem]:
    last = f"{job.name}-{task.name}-{max(task.replicas - 1, 0)}"
    if len(last) <= _LONGEST_HOST or task.pod.get("hostname") or is_placeholder(task.name):
        return
    if len(f"{job.name}-{task.name}-{task.index}") > _LONGEST_HOST:
        return  # refused
    message = (
        f"leads to a pod `{last}` that is refused because plugin svc uses this name as hostname, with at most "
        f"{_LONGEST_HOST} characters"
    )
    fix = f"remove {counted(len(last) - _LONGEST_HOST, 'character')}"
    yield problem("host-name", "metadata.name", message, fix, job.name)


def advise_priority(job: Job, subject: Subject) -> Iterator[Problem]:
    """The PriorityClass of the Job, which its pods get."""
    name = job.spec.get("priorityClassName", "")
    if not name or name in ALWAYS_THERE or is_placeholder(name):
        return
    view, path = subject.view(), (*job.at, "priorityClassName")
    if view.get(PRIORITY_CLASS, name, namespaced=False) is not None:
        return
    if not (view.is_whole() or subject.once(read_queues).is_whole):
        yield problem("priority-class", path, missing=view.missing()[""])
        return
    message = "names a PriorityClass that does not exist, so Kubernetes refuses every pod"
    yield problem("priority-class", path, message, "create the class, or correct the name", name)
