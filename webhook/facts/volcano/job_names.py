"""Rules for the names of a Job and its tasks, which become parts of pod names, labels and host names.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/jobs/validate/admit_job.go validateJobName; the plugin
svc makes host names of pod names, which k8s.io/kubernetes v1.36 validates when a pod is created.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.apimachinery.names import (
    qualified_name_errors,
    qualified_name_fault,
    subdomain_fix,
)
from webhook.facts.volcano.groups import VOLCANO_JOB, VOLCANO_JOB_ADVICE
from webhook.facts.volcano_objects.types import Job, Task
from webhook.rules.problem import Problem
from webhook.rules.rule import Rule
from webhook.text.wording import counted
from webhook.yamltext.placeholders import is_placeholder

JOB_NAME: Final = VOLCANO_JOB.rule(
    "volcano-job/job-name",
    title="The name of the Job is too long or has an invalid character",
    why="The name is a label value of the pods, so it has at most 63 letters, digits, dashes, underscores and dots.",
    function="validateJobName",
)
POD_NAME: Final = VOLCANO_JOB.rule(
    "volcano-job/pod-name",
    title="The names of the pods are too long",
    why="The name of a pod joins the names of Job and task with an index, and has at most 63 characters.",
    function="validateK8sPodNameLength",
    issues=("https://github.com/volcano-sh/volcano/issues/4691",),
)
HOST_NAME: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/host-name",
    title="The names of the pods are not valid host names",
    why=(
        "The plugin svc uses the name of a pod as its host name, and the name of the Job as its subdomain. Both must "
        "be DNS labels, with at most 63 characters and no dots."
    ),
    source="https://github.com/volcano-sh/volcano/issues/4691",
    fails="controller",
)
TASK_NAME_TWICE: Final = VOLCANO_JOB.rule(
    "volcano-job/task-name-twice",
    title="Two tasks have the same name",
    why=(
        "Pods, dependencies and plugins find a task by its name. The default name of a task is `default` with its "
        "index, such as default0."
    ),
    function="validateJobCreate",
)
_LONGEST_HOST: Final = 63
_LONGEST: Final = 63


def validate_job_name(job: Job) -> Iterator[Problem]:
    """Yield problems of the name of the Job, and of the names of its first pods, which begin with the Job's name."""
    if _longest_job_name(job) and not is_placeholder(_longest_job_name(job)):
        if job.name:
            yield from _check_job_name(job)
        yield from _check_pod_name_length(job)


def _longest_job_name(job: Job) -> str:
    """Return the longest name that the API server may give the Job."""
    return job.metadata.longest_name


def _problem_of_name(rule: Rule, job: Job, message: str, fix: str) -> Problem:
    """Return the problem of a name, or of the generateName that the name is created from."""
    field = "name" if job.name else "generateName"
    return rule.problem(f"metadata.{field}", message, fix, job.name or job.metadata.generate_name)


def _fix_for_long_name(count: int, job: Job) -> str:
    """Return the fix for a name that is too long by this number of characters."""
    ignored = 0 if job.name else max(0, len(job.metadata.generate_name) - (len(_longest_job_name(job)) - 5))
    return f"remove {counted(count + ignored, 'character')}"


def _check_job_name(job: Job) -> Iterator[Problem]:
    if not qualified_name_errors(job.name):
        return
    message = f"cannot be used in labels of the pods because {qualified_name_fault(job.name)}"
    fix = subdomain_fix(job.name)
    if len(job.name) > _LONGEST:
        message = f"must have at most {_LONGEST} characters because the name is used in labels"
        fix = f"remove {counted(len(job.name) - _LONGEST, 'character')}"
    yield JOB_NAME.problem("metadata.name", message, fix, job.name)


def _check_pod_name_length(job: Job) -> Iterator[Problem]:
    for task in job.spec.tasks:
        pod = f"{_longest_job_name(job)}-{task.name}-{task.index}"
        if len(pod) > _LONGEST and not is_placeholder(task.name):
            message = (
                f"is too long because the names of the pods of task `{task.name}` begin with this name and have at "
                f"most {_LONGEST} characters"
            )
            yield _problem_of_name(POD_NAME, job, message, _fix_for_long_name(len(pod) - _LONGEST, job))
            return


def warn_of_invalid_host_names(job: Job) -> Iterator[Problem]:
    """Report names that the plugin svc uses as host name or subdomain, but that are invalid there."""
    if "svc" not in job.spec.plugins or not _longest_job_name(job) or is_placeholder(_longest_job_name(job)):
        return
    for task in job.spec.tasks:
        fields = [] if task.pod_spec.hostname else ["hostname"]
        fields += [] if task.pod_spec.subdomain else ["subdomain"]
        if "." in _longest_job_name(job) and fields:
            yield _host_name_problem(job, fields=" and ".join(fields))
            return
        if pod := _pod_with_long_host_name(task, job):
            yield _host_name_problem(job, pod=pod)


def _pod_with_long_host_name(task: Task, job: Job) -> str:
    """Return the name of a task's last pod if only this rule reports the name as too long for a host name, else ""."""
    last = f"{_longest_job_name(job)}-{task.name}-{max(task.replicas - 1, 0)}"
    is_refused = len(f"{_longest_job_name(job)}-{task.name}-{task.index}") > _LONGEST_HOST
    if len(last) <= _LONGEST_HOST or task.pod_spec.hostname or is_placeholder(task.name) or is_refused:
        return ""
    return last


def _host_name_problem(job: Job, fields: str = "", pod: str = "") -> Problem:
    """Return the problem of a Job's name with dots, or of a pod's name that is too long for a host name. The plugin svc
    uses the Job's name as `fields` of the pods.
    """
    message = f"contains dots, but plugin svc uses the name as {fields} of the pods, so Kubernetes refuses the pods"
    fix = "use dashes instead of dots"
    if pod:
        message = (
            f"leads to a pod `{pod}` that is refused because plugin svc uses this name as hostname, which has at most "
            f"{_LONGEST_HOST} characters"
        )
        fix = _fix_for_long_name(len(pod) - _LONGEST_HOST, job)
    return _problem_of_name(HOST_NAME, job, message, fix)


def task_name_twice_problem(task: Task, other: int) -> Problem:
    """Return the problem of a task with the name of an earlier task; `other` is the index of the earlier task."""
    message = f"is also the name of task {other}"
    if task.name in (f"default{task.index}", f"default{other}"):
        message = f"{message}; the default name of a task is `default` with its index"
    return TASK_NAME_TWICE.problem(task.path("name"), message, "give each task its own name", task.name)
