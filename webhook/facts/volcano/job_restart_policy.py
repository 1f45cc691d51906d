"""Finds pods of a Job that never end, because Kubernetes restarts their containers by default.

Volcano leaves restartPolicy as it is, so a pod without one gets Always (k8s.io/kubernetes v1.36 pkg/apis/core/v1/
defaults.go SetDefaults_PodSpec). It never succeeds and never fails, and no policy about that applies. A pod that is
meant to serve others, such as a worker with sshd, says so by Always; of one without a policy nobody knows what it is
for, unless its command starts a training.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.command_lines.command import cached_launch_of_json
from webhook.facts.subject import Subject
from webhook.facts.volcano.groups import VOLCANO_JOB_ADVICE
from webhook.facts.volcano_objects.types import Job, LifecyclePolicy, Task
from webhook.problem import Problem

RESTART_POLICY: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/restart-policy",
    title="The pods of a Job end.",
    why="With restartPolicy Always a container that succeeds is started again, and the Job never completes.",
    refused_by="nobody; the job never completes",
    source="https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#restart-policy",
    fails="waiting",
)

_ENDING: Final = frozenset(("CompleteJob", "TerminateJob", "AbortJob"))
_OF_THE_END: Final = frozenset(("TaskCompleted", "TaskFailed", "PodFailed"))
"""Events of pods that have ended."""
_FIX: Final = "set OnFailure or Never"


def warn_of_endless_restarts(job: Job, subject: Subject) -> Iterator[Problem]:
    """Yield pods that restart for ever, if nothing else ends the job."""
    lasting = [task for task in job.spec.tasks if task.pod_spec.restart_policy in ("", "Always")]
    policies = list(_policies_that_end_job(job)) if lasting else []
    is_mixed = len(lasting) < len(job.spec.tasks)
    ends = any(_may_policy_apply(policy, owner, is_mixed=is_mixed) for policy, owner in policies)
    for task in lasting:
        yield from _check_restart_policy(task, subject, ends=ends, has_policies=bool(policies))


def _check_restart_policy(task: Task, subject: Subject, *, ends: bool, has_policies: bool) -> Iterator[Problem]:
    policy, path = task.pod_spec.restart_policy, task.pod_spec.path("restartPolicy")
    if policy and not has_policies:
        message = "restarts containers that have succeeded, so the job never completes by itself"
        yield RESTART_POLICY.problem(path, message, _FIX, policy)
    elif not policy and not ends and _starts_training(task, subject):
        why = "so the training starts again when it has ended, and the job never completes"
        yield RESTART_POLICY.problem(path, f"is not set, which is Always, {why}", _FIX)


def _policies_that_end_job(job: Job) -> Iterator[tuple[LifecyclePolicy, Task | None]]:
    """Yield policies that end the job; those of tasks with their tasks."""
    for policy in job.spec.policies:
        if policy.action in _ENDING:
            yield policy, None
    for task in job.spec.tasks:
        for policy in task.policies:
            if policy.action in _ENDING:
                yield policy, task


def _may_policy_apply(policy: LifecyclePolicy, owner: Task | None, *, is_mixed: bool) -> bool:
    """Return whether a policy may apply if some pods never end; `is_mixed` if others do."""
    if frozenset(policy.distinct_events) - _OF_THE_END:
        return True
    return is_mixed if owner is None else owner.pod_spec.restart_policy in ("OnFailure", "Never")


def _starts_training(task: Task, subject: Subject) -> bool:
    """Return whether a command of the task's pods starts a training, which ends."""
    if not task.replicas:
        return False
    launches = (cached_launch_of_json(container.json, subject) for container in task.pod_spec.all_containers())
    return any(launch.by not in ("", "python", "several") for launch in launches)
