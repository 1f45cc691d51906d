"""Pods of a Job that never end: Kubernetes restarts their containers whatever they return, unless it is told otherwise.

Volcano leaves restartPolicy as it is, so a pod without one gets Always (k8s.io/kubernetes v1.36 pkg/apis/core/v1/
defaults.go SetDefaults_PodSpec). It never succeeds and never fails, and no policy about that applies. A pod that is
meant to serve others, such as a worker with sshd, says so by Always; of one without a policy nobody knows what it is
for, unless its command starts a training.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from webhook.facts.command_lines.command import launch
from webhook.facts.pods.containers import containers
from webhook.facts.volcano.job import Job, Task, problem
from webhook.facts.volcano.lifecycle_policies import events_of
from webhook.problem import Problem

_ENDING: Final = frozenset(("CompleteJob", "TerminateJob", "AbortJob"))
_OF_THE_END: Final = frozenset(("TaskCompleted", "TaskFailed", "PodFailed"))
"""Events of pods that have ended."""
_FIX: Final = "set OnFailure or Never"


def advise_restarts(job: Job) -> Iterator[Problem]:
    """Pods that restart for ever, where nothing else ends the job."""
    lasting = [task for task in job.deadline.each(job.tasks) if task.pod.get("restartPolicy") in (None, "", "Always")]
    policies = list(_ending(job)) if lasting else []
    is_mixed = len(lasting) < len(job.tasks)
    ends = any(_may_apply(policy, owner, is_mixed=is_mixed) for policy, owner in policies)
    for task in lasting:
        policy, at = task.pod.get("restartPolicy"), (*task.at, "template", "spec", "restartPolicy")
        if policy and not policies:
            message = "restarts containers that have succeeded, so the job never completes by itself"
            yield problem("restart-policy", at, message, _FIX, policy)
        elif not policy and not ends and _trains(task, job):
            why = "so the training starts again when it has ended, and the job never completes"
            yield problem("restart-policy", at, f"is not set, which is Always, {why}", _FIX)


def _ending(job: Job) -> Iterator[tuple[Mapping[str, Any], Task | None]]:
    """Policies that end the job, each with its task."""
    owners = [(job.spec, None), *((task.value, task) for task in job.deadline.each(job.tasks))]
    for holder, owner in owners:
        for policy in job.deadline.paced(holder.get("policies", [])):
            if policy.get("action") in _ENDING:
                yield policy, owner


def _may_apply(policy: Mapping[str, Any], owner: Task | None, *, is_mixed: bool) -> bool:
    """Whether a policy may apply where some pods never end; `is_mixed` says that others do."""
    events = frozenset(events_of(policy))
    if events - _OF_THE_END:
        return True
    return is_mixed if owner is None else owner.pod.get("restartPolicy") in ("OnFailure", "Never")


def _trains(task: Task, job: Job) -> bool:
    """Whether a command of its pods starts a training, which ends."""
    if not task.replicas:
        return False
    launches = (launch(each.value, job.deadline) for each in containers(task.value.get("template"), job.deadline.each))
    return any(each.by not in ("", "python", "several") for each in launches)
