"""What JobSet will say of a JobSet's policies: success, failure, startup, coordinator and volume claims.

Sources: kubernetes-sigs/jobset@08dfbdfd pkg/webhooks/jobset_webhook.go validateFailurePolicy, validateCoordinator,
validateVolumeClaimPolicies; the rules of its CustomResourceDefinition; pkg/features: RestartJob and InPlaceRestart are
alpha and off, unless a site turns them on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.finding import Finding
from webhook.facts.pods.containers import containers, items, mapping, names, text, whole
from webhook.names import DNS_SUBDOMAIN
from webhook.paths import get
from webhook.placeholders import is_placeholder

_POD: Final = ("template", "spec", "template")
_RULE = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]{0,126}[A-Za-z0-9_])?")
_REASONS: Final = (
    *("BackoffLimitExceeded", "DeadlineExceeded", "FailedIndexes", "MaxFailedIndexesExceeded", "PodFailurePolicy"),
)
_GATED: Final = ("RestartJob", "RestartJobAndIgnoreMaxRestarts")
_MOST_RESTARTS = 1024


def findings(spec: JSON, jobs: Sequence[JSON], known: AbstractSet[str], deadline: Deadline) -> Iterator[Finding]:
    """Everything that will be said of the policies of a JobSet spec with these replicated jobs."""
    at = ("successPolicy", "targetReplicatedJobs")
    yield from _targets(get(spec, at), known, at, deadline)
    yield from _failure(mapping(spec.get("failurePolicy")), jobs, known, deadline)
    if get(spec, ("startupPolicy", "startupPolicyOrder")) == "InOrder" and any(job.get("dependsOn") for job in jobs):
        words = "InOrder beside dependsOn of a replicated job, of which only one is possible: keep dependsOn"
        yield Finding("startupOrder", ("startupPolicy",), words, by="jobset")
    if isinstance(coordinator := spec.get("coordinator"), dict):
        yield from _coordinator(coordinator, jobs)
    yield from _claims(spec, jobs, deadline)


def claim_templates(spec: JSON) -> frozenset[str]:
    """The names of the volumes that volumeClaimPolicies add to pods."""
    return frozenset(
        text(get(template, ("metadata", "name")))
        for policy in items(get(spec, ("volumeClaimPolicies",)))
        for template in items(get(policy, ("templates",)))
    )


def _targets(
    targets: JSON, known: AbstractSet[str], at: tuple[str | int, ...], deadline: Deadline
) -> Iterator[Finding]:
    for index, target in enumerate(deadline.paced(items(targets))):
        name = text(target)
        if name not in known and not is_placeholder(name):
            words = f"there is no replicated job `{name}`: correct the name"
            yield Finding("unknownTarget", (*at, index), words, by="jobset")


def _failure(policy: JSON, jobs: Sequence[JSON], known: AbstractSet[str], deadline: Deadline) -> Iterator[Finding]:
    rules = [mapping(rule) for rule in items(policy.get("rules"))]
    called: set[str] = set()
    for index, rule in enumerate(deadline.paced(rules)):
        at, name = ("failurePolicy", "rules", index), text(rule.get("name")) or f"failurePolicyRule{index}"
        if not _RULE.fullmatch(name) and not is_placeholder(name):
            words = f"`{name}` is no name of a rule: use at most 128 letters, digits, `_`, `,` and `:`, a letter first"
            yield Finding("badRule", (*at, "name"), words, by="jobset")
        if name in called:
            words = f"`{name}` is the name of another rule too: give every rule its own name"
            yield Finding("twinRule", (*at, "name"), words, by="jobset")
        called.add(name)
        yield from _targets(rule.get("targetReplicatedJobs"), known, (*at, "targetReplicatedJobs"), deadline)
        for place, reason in enumerate(deadline.paced(items(rule.get("onJobFailureReasons")))):
            if reason not in _REASONS and not is_placeholder(text(reason)):
                words = f"`{reason}` is no reason why a Job fails: use one of {', '.join(_REASONS)}"
                yield Finding("unknownReason", (*at, "onJobFailureReasons", place), words, by="jobset")
    yield from _gated(policy, rules, jobs)


def _gated(policy: JSON, rules: Sequence[JSON], jobs: Sequence[JSON]) -> Iterator[Finding]:
    """Alpha features, which only some sites have turned on, and what one of them is limited to."""
    if policy.get("restartStrategy") == "InPlaceRestart":
        yield Finding("gated", ("failurePolicy", "restartStrategy"), "InPlaceRestart")
    for index, rule in enumerate(rules):
        action = text(rule.get("action"))
        if action not in _GATED:
            continue
        yield Finding("gated", ("failurePolicy", "rules", index, "action"), action)
        for place, job in enumerate(jobs):
            replicas = whole(job.get("replicas")) or 1
            if replicas > _MOST_RESTARTS:
                words = f"`{replicas}` with {action}, which counts restarts of at most {_MOST_RESTARTS}: use fewer"
                yield Finding("tooManyReplicas", ("replicatedJobs", place, "replicas"), words, by="jobset")
        return


def _coordinator(coordinator: JSON, jobs: Sequence[JSON]) -> Iterator[Finding]:
    name = text(coordinator.get("replicatedJob"))
    if is_placeholder(name):
        return
    job = next((each for each in jobs if each.get("name") == name), None)
    if job is None:
        words = f"there is no replicated job `{name}`: correct the name"
        yield Finding("badCoordinator", ("coordinator", "replicatedJob"), words, by="jobset")
        return
    spec, replicas = mapping(get(job, ("template", "spec"))), whole(job.get("replicas"))
    completions = whole(spec.get("completions"))
    if completions is None or spec.get("completionMode") not in (None, "Indexed"):
        words = f"replicated job `{name}` does not count its pods: set completions, and completionMode Indexed"
        yield Finding("badCoordinator", ("coordinator", "replicatedJob"), words, name, by="jobset")
        return
    for field, most in (("jobIndex", 1 if replicas is None else replicas), ("podIndex", completions)):
        index = whole(coordinator.get(field)) or 0
        if not 0 <= index < most:
            words = f"`{index}`, but replicated job `{name}` has {most}: use 0 to {most - 1}"
            yield Finding("badCoordinator", ("coordinator", field), words, name, by="jobset")


def _claims(spec: JSON, jobs: Sequence[JSON], deadline: Deadline) -> Iterator[Finding]:
    """Claims that JobSet makes for all its pods: one name each, mounted somewhere, and no volume of that name."""
    policies = items(spec.get("volumeClaimPolicies"))
    pods = _Pods(jobs if policies else (), deadline)
    seen: set[str] = set()
    for index, policy in enumerate(deadline.paced(policies)):
        for place, template in enumerate(deadline.paced(items(get(policy, ("templates",))))):
            at = ("volumeClaimPolicies", index, "templates", place, "metadata")
            name = text(get(template, ("metadata", "name")))
            if text(get(template, ("metadata", "namespace"))):
                words = "set, but the claims are made in the namespace of the JobSet: remove it"
                yield Finding("claimNamespace", (*at, "namespace"), words, by="jobset")
            if is_placeholder(name):
                continue
            if name in seen:
                words = f"`{name}` is the name of another template too: give every template its own name"
                yield Finding("twinClaimTemplate", (*at, "name"), words, by="jobset")
            elif not DNS_SUBDOMAIN.fullmatch(name):
                words = (
                    f"`{name}` is no DNS name, which the claim is named by: use lower-case letters, digits and dashes"
                )
                yield Finding("badName", (*at, "name"), words, by="jobset")
            else:
                yield from _claimed(name, pods, (*at, "name"))
            seen.add(name)


class _Pods:
    """Which replicated jobs have a volume of a name, and what their containers mount."""

    def __init__(self, jobs: Sequence[JSON], deadline: Deadline) -> None:
        self.volumes: dict[str, list[str]] = {}
        self.mounted: set[str] = set()
        for job in deadline.paced(jobs):
            template = mapping(get(job, _POD))
            for name in dict.fromkeys(deadline.paced(_named(get(template, ("spec", "volumes"))))):
                self.volumes.setdefault(name, []).append(text(job.get("name")))
            for container in deadline.paced(containers(template)):
                self.mounted.update(deadline.paced(_named(container.value.get("volumeMounts"))))


def _named(listed: JSON) -> list[str]:
    return [each for each in names(listed) if isinstance(each, str)]


def _claimed(name: str, pods: _Pods, at: tuple[str | int, ...]) -> Iterator[Finding]:
    for job in pods.volumes.get(name, ()):
        words = f"replicated job `{job}` has a volume `{name}` of its own: rename one of them"
        yield Finding("volumeConflict", at, words, by="jobset")
    if name not in pods.mounted:
        words = f"no container mounts the volume `{name}`: add it to volumeMounts, or remove the template"
        yield Finding("unmountedTemplate", at, words, by="jobset")
