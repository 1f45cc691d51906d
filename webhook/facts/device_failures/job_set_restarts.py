"""How often a JobSet starts again after a failure.

Source: kubernetes-sigs/jobset@08dfbdfd.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.device_failures.groups import DEVICE_FAILURES
from webhook.facts.subject import Subject
from webhook.problem import Problem
from webhook.typed.job_sets import JobSet

JOB_SET_RESTARTS: Final = DEVICE_FAILURES.rule(
    "device-failures/job-set-restarts",
    level="advice",
    title="A JobSet whose pods train together may be restarted.",
    why=(
        "Without maxRestarts the first Job that fails ends the JobSet, so a device that breaks ends a training of "
        "many nodes."
    ),
    source="kubernetes-sigs/jobset@08dfbdfd pkg/controllers/failure_policy.go",
    function="executeFailurePolicy",
)


def advise_job_set_restarts(subject: Subject) -> Iterator[Problem]:
    """Warn of a JobSet that fails for good after its first failure."""
    spec = subject.typed(JobSet).spec
    policy = spec.failure_policy
    if policy.max_restarts or any("Restart" in rule.action for rule in policy.rules):
        return
    path = policy.path("maxRestarts") if policy else spec.path("failurePolicy")
    is_written = policy.max_restarts is not None
    message = f"is {'0' if is_written else 'not set'}, so the first Job that fails ends the JobSet and all of its pods"
    yield JOB_SET_RESTARTS.problem(path, message, "set spec.failurePolicy.maxRestarts, such as to 3")
