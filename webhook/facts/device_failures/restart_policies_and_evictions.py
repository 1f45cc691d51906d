"""What a Job does about a failed pod: podFailurePolicy, restart policy and limits, which go together.

Source: k8s.io/kubernetes v1.36 pkg/apis/batch/validation/validation.go validatePodFailurePolicy, and
pkg/apis/batch/v1/defaults.go; for a JobSet kubernetes-sigs/jobset pkg/webhooks/jobset_webhook.go Default, which makes
the restart policy OnFailure. The Jobs of a JobSet are refused when they are created, long after it was stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhook.facts.device_failures.fail_index import validate_fail_index
from webhook.facts.device_failures.groups import DEVICE_FAILURES
from webhook.facts.gpu.device_pods import DevicePods, is_training_container, read_device_workload
from webhook.facts.subject import Subject
from webhook.problem import Problem
from webhook.typed.job_sets import JobSet
from webhook.typed.jobs import CronJob, Job, JobSpec
from webhook.typed.objects import Object
from webhook.wording import counted

RESTART_POLICY: Final = DEVICE_FAILURES.rule(
    "device-failures/restart-policy",
    title="A Job with a podFailurePolicy never restarts its containers in place.",
    why=(
        "The API server refuses such a Job; of a JobSet, which restarts containers unless told otherwise, no pod is "
        "made."
    ),
    refused_by="the API server, when the Job is created",
    source="k8s.io/kubernetes v1.36 pkg/apis/batch/validation/validation.go",
    function="validateJobSpec",
    fails="controller",
)
POD_FAILURE_POLICY: Final = DEVICE_FAILURES.rule(
    "device-failures/pod-failure-policy",
    title="A training of several pods, or without retries, tells evictions from failures of its program.",
    why=(
        "Without a podFailurePolicy a drained node counts as a failure of the program, and a replacement is made "
        "while the terminating pod still holds its devices."
    ),
    source="https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-failure-policy",
)
EVICTIONS_COUNT: Final = DEVICE_FAILURES.rule(
    "device-failures/evictions-count",
    title="A Job of several pods, or without retries, tells evictions from failures of its program.",
    why=(
        "Without a podFailurePolicy a drained node counts as a failure of the program. Tests and benchmarks are "
        "started again by hand."
    ),
    source="https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-failure-policy",
    level="advice",
)

_JOB: Final = ("batch", "Job")
_CRON_JOB: Final = ("batch", "CronJob")
_JOB_SET: Final = ("jobset.x-k8s.io", "JobSet")
_SAYS_TRAINING: Final = re.compile(r"(?i)(?<![a-z])(pre)?train(ing|er)?(?![a-z])|fine[-_]?tun|\baccelerate launch\b")
_BACKOFF_LIMIT: Final = 6
"""pkg/apis/batch/v1/defaults.go SetDefaults_Job, without backoffLimitPerIndex."""


def advise_job_policies(subject: Subject) -> Iterator[Problem]:
    """Advise on each Job that an object is or makes, if its pods use devices."""
    by_path = {pods.podset.path: pods for pods in subject.once(read_device_workload).device_pods}
    for job in _job_specs(subject) if by_path else ():
        pods = by_path.get(job.path("template"))
        if pods is None:
            continue
        if job.pod_failure_policy.json:
            yield from _check_restart_policy(job, pods, subject)
            yield from validate_fail_index(job)
        elif subject.group_kind != _JOB_SET and job.backoff_limit_per_index is None:
            yield from _check_pod_failure_policy(job, pods, subject)


def _job_specs(subject: Subject) -> Iterator[JobSpec]:
    if subject.group_kind == _JOB:
        yield subject.typed(Job).spec
    elif subject.group_kind == _CRON_JOB:
        yield subject.typed(CronJob).spec.job_template.spec
    elif subject.group_kind == _JOB_SET:
        yield from (job.template.spec for job in subject.typed(JobSet).spec.replicated_jobs)


def _is_failure_costly(pods: DevicePods, subject: Subject) -> bool:
    """Return whether a failure costs more than one pod with one device: several, or a training."""
    return pods.pod_count > 1 or sum(pods.devices.values()) > 1 or _looks_like_training(pods, subject)


def _looks_like_training(pods: DevicePods, subject: Subject) -> bool:
    """Return whether a launcher starts the program, or a name, image or command says that it trains."""
    if any(is_training_container(container, subject) for container in pods.containers):
        return True
    return _SAYS_TRAINING.search(subject.typed(Object).name) is not None or any(
        container.is_found_in(_SAYS_TRAINING, (container.image, *container.words)) for container in pods.containers
    )


def _check_pod_failure_policy(job: JobSpec, pods: DevicePods, subject: Subject) -> Iterator[Problem]:
    """Warn of a job that survives few evictions; whoever allows more failures than usual has thought of them."""
    allowed = _BACKOFF_LIMIT if job.backoff_limit is None else job.backoff_limit
    is_one_pod = max(pods.pod_count, job.completions or 0) <= 1
    if allowed > _BACKOFF_LIMIT or (is_one_pod and allowed) or not _is_failure_costly(pods, subject):
        return  # one pod is made again after an eviction, as often as failures are allowed
    often = f"the job allows {counted(allowed, 'failure')}" if allowed else "the first one ends the job"
    message = f"is not set, so an eviction counts as a failure, and {often}"
    never = " and set restartPolicy: Never" if pods.spec.restart_policy == "OnFailure" else ""
    fix = f"add a podFailurePolicy rule with action Ignore for the condition DisruptionTarget{never}"
    rule = POD_FAILURE_POLICY if _looks_like_training(pods, subject) else EVICTIONS_COUNT
    yield rule.problem(job.path("podFailurePolicy"), message, fix)


def _check_restart_policy(job: JobSpec, pods: DevicePods, subject: Subject) -> Iterator[Problem]:
    written = pods.spec.restart_policy
    policy = written or ("OnFailure" if subject.group_kind == _JOB_SET else "")
    if policy == "OnFailure":
        at = job.path("template", "spec", "restartPolicy")
        message = "must be Never because the API server otherwise refuses a Job with a podFailurePolicy"
        yield RESTART_POLICY.problem(at, message, "set Never", written or None)
