"""What JobSet's webhook refuses of a JobSet's policies of success, failure and startup, and of its coordinator.

Sources: kubernetes-sigs/jobset@08dfbdfd pkg/webhooks/jobset_webhook.go ValidateCreate, validateFailurePolicy and
validateCoordinator; the rules of its CustomResourceDefinition; pkg/features: RestartJob and InPlaceRestart are alpha
and off, unless a site turns them on.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from webhook.attributes import JSON
from webhook.facts.jobset.job_set import JobSet, problem
from webhook.paths import FieldPath, get
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

_RULE: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]{0,126}[A-Za-z0-9_])?")
_REASONS: Final = (
    *("BackoffLimitExceeded", "DeadlineExceeded", "FailedIndexes", "MaxFailedIndexesExceeded", "PodFailurePolicy"),
)
_GATED: Final = ("RestartJob", "RestartJobAndIgnoreMaxRestarts")
_MOST_RESTARTED: Final = 1024
_INDEXED: Final = "set completionMode Indexed"


def validate_success_policy(job_set: JobSet) -> Iterator[Problem]:
    """Its targets are replicated jobs."""
    at = ("successPolicy", "targetReplicatedJobs")
    yield from _validate_targets(get(job_set.spec, at, []), job_set, (*job_set.at, *at))


def _validate_targets(targets: Sequence[str], job_set: JobSet, at: FieldPath) -> Iterator[Problem]:
    known: Collection[str] = job_set.places() if targets else ()
    for index, target in enumerate(job_set.deadline.paced(targets)):
        if target not in known and not is_placeholder(target):
            message = "is not the name of a replicated job of this JobSet"
            yield problem("target-exists", (*at, index), message, job_set.choice(), target)


def validate_startup_policy(job_set: JobSet) -> Iterator[Problem]:
    """An order of starting excludes dependencies."""
    in_order = get(job_set.spec, ("startupPolicy", "startupPolicyOrder")) == "InOrder"
    if in_order and any(job.get("dependsOn") for job in job_set.deadline.paced(job_set.jobs)):
        message = "must not be InOrder because a replicated job has dependsOn, and JobSet refuses both together"
        fix = "remove startupPolicy, or every dependsOn"
        yield problem("startup-order", (*job_set.at, "startupPolicy"), message, fix)


def validate_failure_policy(job_set: JobSet) -> Iterator[Problem]:
    """Rules with names, targets and reasons that JobSet knows."""
    policy, at = job_set.spec.get("failurePolicy", {}), (*job_set.at, "failurePolicy")
    rules = policy.get("rules", [])
    called: set[str] = set()
    for index, rule in enumerate(job_set.deadline.paced(rules)):
        place = (*at, "rules", index)
        name = rule.get("name", "") or f"failurePolicyRule{index}"
        yield from _validate_rule_name(name, called, (*place, "name"))
        called.add(name)
        targets = rule.get("targetReplicatedJobs", [])
        yield from _validate_targets(targets, job_set, (*place, "targetReplicatedJobs"))
        yield from _validate_reasons(rule, job_set, (*place, "onJobFailureReasons"))
    yield from _validate_alpha_features(policy, rules, job_set, at)


def _validate_rule_name(name: str, called: Collection[str], path: FieldPath) -> Iterator[Problem]:
    if not _RULE.fullmatch(name) and not is_placeholder(name):
        message = "must have at most 128 letters, digits, underscores, commas and colons"
        if not name[:1].isalpha():
            message = "must begin with a letter because it is the name of a rule"
        yield problem("failure-rule-name", path, message, "write a name such as restartOnHostFailure", name)
    if name in called:
        message = "is also the name of a rule before this one"
        yield problem("failure-rule-twice", path, message, "rename one of the two rules", name)


def _validate_reasons(rule: JSON, job_set: JobSet, at: FieldPath) -> Iterator[Problem]:
    for index, reason in enumerate(job_set.deadline.paced(rule.get("onJobFailureReasons", []))):
        if reason not in _REASONS and not is_placeholder(reason):
            message = "must be a reason that Kubernetes gives for a failed Job"
            fix = f"use one of {', '.join(_REASONS)}"
            yield problem("failure-reason", (*at, index), message, fix, reason)


def _validate_alpha_features(policy: JSON, rules: Sequence[JSON], job_set: JobSet, at: FieldPath) -> Iterator[Problem]:
    """Features that only some sites have turned on, and what one of them is limited to."""
    if policy.get("restartStrategy") == "InPlaceRestart":
        yield _alpha((*at, "restartStrategy"), "InPlaceRestart", "InPlaceRestart", "Recreate")
    for index, rule in enumerate(rules):
        action = rule.get("action", "")
        if action in _GATED:
            yield _alpha((*at, "rules", index, "action"), action, "RestartJob", action.replace("Job", "JobSet", 1))
            yield from _validate_restarts(job_set, action)
            return


def _alpha(path: FieldPath, name: str, gate: str, instead: str) -> Problem:
    message = f"is refused by JobSet unless its alpha feature gate {gate} is on, which is off by default"
    fix = f"use {instead}, or ask the administrator to turn on feature gate {gate} of JobSet"
    return problem("alpha-feature", path, message, fix, name)


def _validate_restarts(job_set: JobSet, action: str) -> Iterator[Problem]:
    for index, job in enumerate(job_set.deadline.paced(job_set.jobs)):
        replicas = job.get("replicas") or 1
        if replicas > _MOST_RESTARTED:
            message = f"must not be above {_MOST_RESTARTED} because {action} counts the restarts of each replica"
            path = (*job_set.at, "replicatedJobs", index, "replicas")
            yield problem("restarted-replicas", path, message, f"set at most {_MOST_RESTARTED} replicas", replicas)


def validate_coordinator(job_set: JobSet) -> Iterator[Problem]:
    """It is a pod of a replicated job that counts its pods."""
    coordinator, at = job_set.spec.get("coordinator"), (*job_set.at, "coordinator")
    if coordinator is None or is_placeholder(name := coordinator.get("replicatedJob", "")):
        return
    index = job_set.places().get(name)
    if index is None:
        message = "is not the name of a replicated job of this JobSet"
        yield problem("coordinator-exists", (*at, "replicatedJob"), message, job_set.choice(), name)
    elif job_set.is_counted:
        yield from _validate_coordinator_pod(coordinator, job_set.jobs[index], at)


def _validate_coordinator_pod(coordinator: JSON, job: JSON, at: FieldPath) -> Iterator[Problem]:
    spec, name = get(job, ("template", "spec"), {}), job.get("name", "")
    completions, replicas = spec.get("completions"), job.get("replicas")
    is_indexed = spec.get("completionMode") in (None, "Indexed")
    if completions is None or not is_indexed:
        lacks = "is not Indexed" if completions is not None else "has no completions"
        message = f"cannot be the job of the coordinator because its Job template {lacks}, so its pods have no index"
        fixes = [*([] if completions is not None else ["set completions"]), *([] if is_indexed else [_INDEXED])]
        fix = f"{' and '.join(fixes)} in the Job template of `{name}`"
        yield problem("coordinator-indexed", (*at, "replicatedJob"), message, fix, name)
        return
    indexes = ("jobIndex", 1 if replicas is None else replicas, "jobs"), ("podIndex", completions, "pods")
    for field, most, counts in indexes:
        index = coordinator.get(field) or 0
        if not 0 <= index < most:
            message = f"must be below {most}, the number of {counts} of replicated job `{name}`"
            fix = f"set {field} to {f'0 to {most - 1}' if most > 2 else '0 or 1' if most > 1 else 0}"
            yield problem("coordinator-index", (*at, field), message, fix, index)
