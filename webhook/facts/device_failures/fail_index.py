"""The action FailIndex of a failure policy.

Source: k8s.io/kubernetes v1.36 pkg/apis/batch/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.device_failures.groups import DEVICE_FAILURES
from webhook.problem import Problem
from webhook.typed.jobs import JobSpec

FAIL_INDEX: Final = DEVICE_FAILURES.rule(
    "device-failures/fail-index",
    title="FailIndex is used with backoffLimitPerIndex.",
    why="The API server refuses a Job that fails single indexes but has no limit for each of them.",
    refused_by="the API server, when the Job is created",
    source="k8s.io/kubernetes v1.36 pkg/apis/batch/validation/validation.go",
    function="validatePodFailurePolicyRule",
    fails="controller",
)


def validate_fail_index(job: JobSpec) -> Iterator[Problem]:
    """Require backoffLimitPerIndex where a rule has the action FailIndex."""
    for rule in job.pod_failure_policy.rules:
        if rule.action == "FailIndex" and job.backoff_limit_per_index is None:
            message = "needs backoffLimitPerIndex, without which the API server refuses the Job"
            fix = "set backoffLimitPerIndex, or use FailJob"
            yield FAIL_INDEX.problem(rule.path("action"), message, fix, "FailIndex")
