"""Features of JobSet that only some sites have turned on.

Source: kubernetes-sigs/jobset@08dfbdfd pkg/features: RestartJob and InPlaceRestart are alpha and off, unless a site
turns them on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.jobset.groups import JOB_SET
from webhook.facts.jobset.job_set import validate_replica_limit_for_restarts
from webhook.paths import FieldPath
from webhook.problem import Problem
from webhook.typed.job_sets import FailurePolicy, JobSetSpec

ALPHA_FEATURE: Final = JOB_SET.rule(
    "job-set/alpha-feature",
    title="Restarts of single jobs and in place are alpha features of JobSet.",
    why="Their feature gates are off by default, and JobSet then refuses the JobSet.",
    source="kubernetes-sigs/jobset@08dfbdfd pkg/features/features.go",
    level="warn",
)
_GATED: Final = ("RestartJob", "RestartJobAndIgnoreMaxRestarts")


def validate_alpha_features(policy: FailurePolicy, job_set: JobSetSpec) -> Iterator[Problem]:
    """Report features that only some sites have turned on, and what one of them is limited to."""
    if policy.restart_strategy == "InPlaceRestart":
        yield _alpha_feature_problem(policy.path("restartStrategy"), "InPlaceRestart", "InPlaceRestart", "Recreate")
    rule = next((rule for rule in policy.rules if rule.action in _GATED), None)
    if rule is not None:
        instead = rule.action.replace("Job", "JobSet", 1)
        yield _alpha_feature_problem(rule.path("action"), rule.action, "RestartJob", instead)
        yield from validate_replica_limit_for_restarts(job_set, rule.action)


def _alpha_feature_problem(path: FieldPath, name: str, gate: str, instead: str) -> Problem:
    message = f"is refused by JobSet unless its alpha feature gate {gate} is on, which is off by default"
    fix = f"use {instead}, or ask the administrator to turn on feature gate {gate} of JobSet"
    return ALPHA_FEATURE.problem(path, message, fix, name)
