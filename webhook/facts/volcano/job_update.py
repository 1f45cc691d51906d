"""What Volcano's webhook refuses when a Job is changed: it may be scaled, and nothing else.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/jobs/validate/admit_job.go validateJobUpdate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from webhook.facts.subject import Subject
from webhook.facts.volcano.field_changes import field_changes
from webhook.facts.volcano.groups import VOLCANO_JOB
from webhook.facts.volcano.job import (
    validate_min_available,
    validate_partition_policy,
    validate_task_min_available,
)
from webhook.facts.volcano.tiers_of_jobs_and_pod_groups import OF_JOBS, validate_network_topology
from webhook.facts.volcano_objects.types import Job, JobSpec
from webhook.problem import Problem
from webhook.wording import counted

TASKS_KEPT: Final = VOLCANO_JOB.rule(
    "volcano-job/tasks-kept",
    title="A Job keeps the number of its tasks.",
    why="Its pods and its PodGroup are made from them.",
    function="validateJobUpdate",
)
IMMUTABLE: Final = VOLCANO_JOB.rule(
    "volcano-job/immutable",
    title="A Job that exists is only scaled.",
    why="Volcano takes changes of minAvailable, of priorityClassName, and of replicas and minAvailable of tasks.",
    function="validateJobUpdate",
)

_SCALED: Final = ("minAvailable", "priorityClassName")
_TASK_SCALED: Final = ("replicas", "minAvailable")
_DEFAULTS: Final[Mapping[str, Any]] = {"queue": "default", "maxRetry": 3}
"""Those of the schema, which a stored Job has."""


def validate_update(job: Job, subject: Subject) -> Iterator[Problem]:
    """Numbers that fit, the same tasks, and no other field changed."""
    for task in job.spec.tasks:
        if job.spec.is_filled:
            yield from validate_task_min_available(task, "lower minAvailable of the task")
        if task.partition_policy:
            yield from validate_partition_policy(task, job)
    yield from validate_min_available(job)
    yield from validate_network_topology(job.spec.network_topology, OF_JOBS)
    old = subject.typed_old(Job)
    if len(old.spec.tasks) != len(job.spec.tasks):
        yield _tasks_kept(old, job)
    elif not subject.omitted:
        yield from _immutable(old, job)


def _tasks_kept(old: Job, job: Job) -> Problem:
    count = counted(len(job.spec.tasks), "task")
    message = f"cannot change from {len(old.spec.tasks)} to {count} because a Job keeps their number"
    return TASKS_KEPT.problem(job.spec.path("tasks"), message, "restore the tasks, or create a new Job")


def _immutable(old: Job, job: Job) -> Iterator[Problem]:
    before, after = _unscaled(old.spec, _DEFAULTS), _unscaled(job.spec, {})
    path = next(field_changes(before, after, job.spec, Job.gvk), None)
    if path is not None:
        message = (
            "cannot change because a Job keeps everything but minAvailable, priorityClassName, and replicas and "
            "minAvailable of its tasks"
        )
        yield IMMUTABLE.problem(path, message, "restore the old value, or create a new Job")


def _unscaled(spec: JobSpec, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """A spec as JSON without what may change, and without the claims that the controller names."""
    unscaled = _without({**defaults, **spec.json}, *_SCALED)
    unscaled["tasks"] = [_without(task.json, *_TASK_SCALED) for task in spec.tasks]
    unscaled["volumes"] = [
        _without(volume.json, "volumeClaimName") if volume.volume_claim else volume.json for volume in spec.volumes
    ]
    return unscaled


def _without(value: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: inner for name, inner in value.items() if name not in names}
