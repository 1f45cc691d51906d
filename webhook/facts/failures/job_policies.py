"""What a Job does about a failed pod: podFailurePolicy, restart policy and limits, which go together.

Source: k8s.io/kubernetes v1.36 pkg/apis/batch/validation/validation.go validatePodFailurePolicy, and
pkg/apis/batch/v1/defaults.go; for a JobSet kubernetes-sigs/jobset pkg/webhooks/jobset_webhook.go Default, which makes
the restart policy OnFailure. The Jobs of a JobSet are refused when they are created, long after it was stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.attributes import JSON
from webhook.facts.check import Group
from webhook.facts.gpu.device_pods import DevicePods, trains, workload
from webhook.facts.subject import Subject
from webhook.facts.values import items, mapping, text, whole
from webhook.paths import FieldPath, get
from webhook.problem import Problem
from webhook.wording import counted

problem: Final = Group("device-failures").problem
_JOB: Final = ("batch", "Job")
_CRON_JOB: Final = ("batch", "CronJob")
_JOB_SET: Final = ("jobset.x-k8s.io", "JobSet")
_BACKOFF_LIMIT: Final = 6
"""pkg/apis/batch/v1/defaults.go SetDefaults_Job, without backoffLimitPerIndex."""


def advise_job_policies(subject: Subject) -> Iterator[Problem]:
    """Each Job that an object is or makes, if its pods use devices."""
    by_path = {each.podset.path: each for each in subject.once(workload).device_pods}
    for path, spec in _jobs(subject) if by_path else ():
        pods = by_path.get((*path, "template"))
        if pods is None:
            continue
        if spec.get("podFailurePolicy"):
            yield from _restart_policy(path, pods, subject)
            yield from _fail_index(path, spec, subject)
        elif subject.group_kind != _JOB_SET and spec.get("backoffLimitPerIndex") is None:
            yield from _no_policy(path, spec, pods, subject)


def _jobs(subject: Subject) -> Iterator[tuple[FieldPath, JSON]]:
    """The specs of Jobs, each with where it stands."""
    if subject.group_kind == _JOB:
        yield ("spec",), mapping(subject.object.get("spec"))
    elif subject.group_kind == _CRON_JOB:
        path: FieldPath = ("spec", "jobTemplate", "spec")
        yield path, mapping(get(subject.object, path))
    elif subject.group_kind == _JOB_SET:
        listed = items(get(subject.object, ("spec", "replicatedJobs")))
        for index, job in enumerate(subject.deadline.paced(listed)):
            spec = get(job, ("template", "spec")) if isinstance(job, dict) else None
            yield ("spec", "replicatedJobs", index, "template", "spec"), mapping(spec)


def _is_costly(pods: DevicePods, subject: Subject) -> bool:
    """Whether a failure costs more than one pod with one device: several, or a training."""
    several = (pods.podset.pods or 0) > 1 or sum(pods.devices.values()) > 1
    return several or any(trains(each, subject) for each in pods.containers)


def _no_policy(path: FieldPath, spec: JSON, pods: DevicePods, subject: Subject) -> Iterator[Problem]:
    """A job that survives few evictions; whoever allows more failures than usual has thought of them."""
    limit = whole(spec.get("backoffLimit"))
    allowed = _BACKOFF_LIMIT if limit is None else limit
    is_one_pod = max(pods.podset.pods or 0, whole(spec.get("completions")) or 0) <= 1
    if allowed > _BACKOFF_LIMIT or (is_one_pod and allowed) or not _is_costly(pods, subject):
        return  # one pod is made again after an eviction, as often as failures are allowed
    often = f"the job allows {counted(allowed, 'failure')}" if allowed else "the first one ends the job"
    message = f"is not set, so an eviction counts as a failure, and {often}"
    never = " and set restartPolicy: Never" if pods.spec.get("restartPolicy") == "OnFailure" else ""
    fix = f"add a podFailurePolicy rule with action Ignore for the condition DisruptionTarget{never}"
    yield problem("pod-failure-policy", (*path, "podFailurePolicy"), message, fix)


def _restart_policy(path: FieldPath, pods: DevicePods, subject: Subject) -> Iterator[Problem]:
    written = text(pods.spec.get("restartPolicy"))
    policy = written or ("OnFailure" if subject.group_kind == _JOB_SET else "")
    if policy == "OnFailure":
        at = (*path, "template", "spec", "restartPolicy")
        message = "must be Never because the API server otherwise refuses a Job with a podFailurePolicy"
        yield problem("restart-policy", at, message, "set Never", written or None)


def _fail_index(path: FieldPath, spec: JSON, subject: Subject) -> Iterator[Problem]:
    rules = items(mapping(spec.get("podFailurePolicy")).get("rules"))
    for index, rule in enumerate(subject.deadline.paced(rules)):
        if mapping(rule).get("action") == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
            at = (*path, "podFailurePolicy", "rules", index, "action")
            message = "needs backoffLimitPerIndex, without which the API server refuses the Job"
            yield problem("fail-index", at, message, "set backoffLimitPerIndex, or use FailJob", "FailIndex")
