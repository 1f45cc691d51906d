"""What JobSet's webhook refuses of the failure policy of a JobSet.

Sources: kubernetes-sigs/jobset@08dfbdfd pkg/webhooks/jobset_webhook.go validateFailurePolicy, and the
rules of its CustomResourceDefinition.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final

from webhook.facts.jobset.alpha_features import validate_alpha_features
from webhook.facts.jobset.groups import JOB_SET
from webhook.facts.jobset.job_set import validate_targets_exist
from webhook.paths import FieldPath
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.typed.job_sets import FailureRule, JobSetSpec

FAILURE_RULE_NAME: Final = JOB_SET.rule(
    "job-set/failure-rule-name",
    title="The name of a rule of the failure policy has letters, digits, underscores, commas and colons.",
    why="The name is written into the status of the JobSet.",
    function="validateFailurePolicy",
)
FAILURE_RULE_TWICE: Final = JOB_SET.rule(
    "job-set/failure-rule-twice",
    title="Each rule of the failure policy has a name of its own.",
    why="A rule without a name is called failurePolicyRule and its index.",
    function="validateFailurePolicy",
)
FAILURE_REASON: Final = JOB_SET.rule(
    "job-set/failure-reason",
    title="A rule of the failure policy names reasons why a Job fails.",
    why="A rule with another reason never applies.",
    function="validateFailurePolicy",
)

_RULE: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]{0,126}[A-Za-z0-9_])?")
_REASONS: Final = (
    *("BackoffLimitExceeded", "DeadlineExceeded", "FailedIndexes", "MaxFailedIndexesExceeded", "PodFailurePolicy"),
)


def validate_failure_policy(job_set: JobSetSpec) -> Iterator[Problem]:
    """Require rules of the failure policy to have names, targets and reasons that JobSet knows."""
    policy = job_set.failure_policy
    names: set[str] = set()
    for index, rule in enumerate(policy.rules):
        name = rule.name or f"failurePolicyRule{index}"
        yield from _validate_rule_name(name, names, rule.path("name"))
        names.add(name)
        yield from validate_targets_exist(rule.target_replicated_jobs, job_set, rule.path("targetReplicatedJobs"))
        yield from _check_failure_reason(rule)
    yield from validate_alpha_features(policy, job_set)


def _validate_rule_name(name: str, before: Collection[str], path: FieldPath) -> Iterator[Problem]:
    if not _RULE.fullmatch(name) and not is_placeholder(name):
        message = "must have at most 128 letters, digits, underscores, commas and colons"
        if not name[:1].isalpha():
            message = "must begin with a letter because it is the name of a rule"
        yield FAILURE_RULE_NAME.problem(path, message, "write a name such as restartOnHostFailure", name)
    if name in before:
        message = "is also the name of a rule before this one"
        yield FAILURE_RULE_TWICE.problem(path, message, "rename one of the two rules", name)


def _check_failure_reason(rule: FailureRule) -> Iterator[Problem]:
    for index, reason in enumerate(rule.on_job_failure_reasons):
        if reason not in _REASONS and not is_placeholder(reason):
            message = "must be a reason that Kubernetes gives for a failed Job"
            fix = f"use one of {', '.join(_REASONS)}"
            yield FAILURE_REASON.problem(rule.path("onJobFailureReasons", index), message, fix, reason)
