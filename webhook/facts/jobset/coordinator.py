"""What JobSet's webhook refuses of the coordinator of a JobSet.

Source: kubernetes-sigs/jobset@08dfbdfd pkg/webhooks/jobset_webhook.go validateCoordinator.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.jobset.groups import JOB_SET
from webhook.facts.jobset.jobs_by_name import fix_for_unknown_job, jobs_by_name
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.typed.job_sets import Coordinator, JobSetSpec, ReplicatedJob

COORDINATOR_EXISTS: Final = JOB_SET.rule(
    "job-set/coordinator-exists",
    title="The coordinator is a replicated job that exists.",
    why="The other pods look for the coordinator by its name.",
    function="validateCoordinator",
)
COORDINATOR_INDEXED: Final = JOB_SET.rule(
    "job-set/coordinator-indexed",
    title="The replicated job of the coordinator counts its pods.",
    why="Only pods of an indexed Job with completions have names that are known before.",
    function="validateCoordinator",
)
COORDINATOR_INDEX: Final = JOB_SET.rule(
    "job-set/coordinator-index",
    title="The indexes of the coordinator are within its replicated job.",
    why="There is no pod with a higher index.",
    function="validateCoordinator",
)
_INDEXED: Final = "set completionMode Indexed"


def validate_coordinator(job_set: JobSetSpec, *, is_counted: bool) -> Iterator[Problem]:
    """Require as coordinator a pod of a replicated job that exists and counts its pods."""
    coordinator = job_set.coordinator
    name = coordinator.replicated_job
    if not coordinator or is_placeholder(name):
        return
    job = jobs_by_name(job_set).get(name)
    if job is None:
        message = "is not the name of a replicated job of this JobSet"
        path = coordinator.path("replicatedJob")
        yield COORDINATOR_EXISTS.problem(path, message, fix_for_unknown_job(job_set), name)
    elif is_counted:
        yield from _check_coordinator_indexed(coordinator, job)
        yield from _check_coordinator_index(coordinator, job)


def _check_coordinator_indexed(coordinator: Coordinator, job: ReplicatedJob) -> Iterator[Problem]:
    spec = job.template.spec
    if spec.completions is None or not spec.is_indexed:
        lacks = "is not Indexed" if spec.completions is not None else "has no completions"
        message = f"cannot be the job of the coordinator because its Job template {lacks}, so its pods have no index"
        fixes = ["set completions"] if spec.completions is None else []
        fixes += [] if spec.is_indexed else [_INDEXED]
        fix = f"{' and '.join(fixes)} in the Job template of `{job.name}`"
        yield COORDINATOR_INDEXED.problem(coordinator.path("replicatedJob"), message, fix, job.name)


def _check_coordinator_index(coordinator: Coordinator, job: ReplicatedJob) -> Iterator[Problem]:
    pods = job.template.spec.completions
    if pods is None or not job.template.spec.is_indexed:
        return
    indexes = (
        ("jobIndex", coordinator.job_index, job.replicas, "jobs"),
        ("podIndex", coordinator.pod_index, pods, "pods"),
    )
    for field, index, most, counts in indexes:
        if not 0 <= index < most:
            message = f"must be below {most}, the number of {counts} of replicated job `{job.name}`"
            fix = f"set {field} to {f'0 to {most - 1}' if most > 2 else '0 or 1' if most > 1 else 0}"
            yield COORDINATOR_INDEX.problem(coordinator.path(field), message, fix, index)
