"""Makes the rules of the webhook: the resources, versions and operations that the loaded policies match.

Rules of webhooks cannot have names and selectors. claimgate itself checks the names and selectors of policies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from webhook.apimachinery.attributes import Operation, Phase
from webhook.policy.compiled import Policy
from webhook.policy.matching import ResourceRule
from webhook.policy.policy_set import PolicySet, covers_pods, kinds_with_embedded_objects
from webhook.workloads.table import Table

_MUTABLE = (Operation.CREATE, Operation.UPDATE, Operation.CONNECT)


@dataclass(frozen=True, slots=True, order=True)
class WebhookRule:
    """One entry of `rules` in a webhook configuration."""

    groups: tuple[str, ...]
    versions: tuple[str, ...]
    resources: tuple[str, ...]
    operations: tuple[str, ...]
    scope: str


@dataclass(frozen=True, slots=True)
class MatchedResource:
    """One resource, with one version and operation, that a policy matches."""

    group: str
    version: str
    resource: str
    operation: str
    scope: str


def webhook_rules(policies: PolicySet, phase: Phase) -> tuple[WebhookRule, ...]:
    """Return the sorted rules of one phase."""
    return merge_into_webhook_rules({matched for _, matched in matched_resources_of_policies(policies, phase)})


def matched_resources_of_policies(policies: PolicySet, phase: Phase) -> tuple[tuple[Policy, MatchedResource], ...]:
    """Return each policy of a phase with each resource, version and operation that it matches."""
    of_phase = [policy for policy in policies.validating if policy.phase in (phase.value, "both")]
    called = [policy for policy in of_phase if policy.bindings and policy.is_registered]
    pairs = [(policy, matched) for policy in called for matched in _matched_resources_of_policy(policy, policies.table)]
    if phase is Phase.MUTATE:
        changing = (policy for policy in policies.mutating if policy.bindings)
        pairs_of_mutating = (
            (policy, matched) for policy in changing for matched in _matched_resources_of_policy(policy, policies.table)
        )
        pairs += ((policy, matched) for policy, matched in pairs_of_mutating if matched.operation in _MUTABLE)
    return tuple(pairs)


def _matched_resources_of_policy(policy: Policy, table: Table) -> Iterator[MatchedResource]:
    for rule in policy.criteria.rules:
        operations = tuple(Operation) if rule.operations is None else tuple(rule.operations)
        for group, version, resource, scope in _resources_of_rule(rule, policy, table):
            for operation in operations:
                yield MatchedResource(group, version, resource, str(operation), scope)


def _resources_of_rule(rule: ResourceRule, policy: Policy, table: Table) -> Iterator[tuple[str, str, str, str]]:
    groups = ("*",) if rule.groups is None else tuple(rule.groups)
    versions = ("*",) if rule.versions is None else tuple(rule.versions)
    for resource, sub in rule.resources:
        shown = f"{resource}/{sub}" if sub else resource
        yield from ((group, version, shown, rule.scope) for group in groups for version in versions)
    if policy.expands and covers_pods(rule):
        for row in table.rows:
            yield from ((row.group, version, row.resource, "*") for version in row.versions)
    if policy.enters:
        for row in kinds_with_embedded_objects(rule, table):
            yield from ((row.group, version, row.resource, "*") for version in row.versions)


def merge_into_webhook_rules(matched_resources: Iterable[MatchedResource]) -> tuple[WebhookRule, ...]:
    """Return the rules for some resources. Equal groups, versions, operations and scope share a rule."""
    operations: dict[tuple[str, str, str, str], set[str]] = {}
    for matched in matched_resources:
        operations.setdefault((matched.group, matched.version, matched.resource, matched.scope), set()).add(
            matched.operation
        )
    versions: dict[tuple[str, str, str, tuple[str, ...]], set[str]] = {}
    for (group, version, resource, scope), names in operations.items():
        versions.setdefault((group, resource, scope, _wildcard_or_operations(names)), set()).add(version)
    resources: dict[tuple[str, tuple[str, ...], str, tuple[str, ...]], set[str]] = {}
    for (group, resource, scope, verbs), names in versions.items():
        resources.setdefault((group, _wildcard_or_names(names), scope, verbs), set()).add(resource)
    merged = (
        WebhookRule((group,), api_versions, _without_covered_resources(names), verbs, scope)
        for (group, api_versions, scope, verbs), names in resources.items()
    )
    return tuple(sorted(merged))


def _wildcard_or_operations(names: set[str]) -> tuple[str, ...]:
    return ("*",) if len(names) == len(Operation) else tuple(op.value for op in Operation if op.value in names)


def _wildcard_or_names(names: set[str]) -> tuple[str, ...]:
    """Return only the wildcard if present, because the API refuses other names beside it."""
    return ("*",) if "*" in names else tuple(sorted(names))


def _without_covered_resources(names: set[str]) -> tuple[str, ...]:
    """Return the resources that no other resource covers with a wildcard, because the API refuses such resources."""
    if "*/*" in names:
        return ("*/*",)
    remaining = {name for name in names if "/" in name or name == "*" or "*" not in names}
    whole = {name.partition("/")[0] for name in remaining if name.endswith("/*")}
    everywhere = {name.partition("/")[2] for name in remaining if name.startswith("*/")}

    def covered(name: str) -> bool:
        parent, slash, sub = name.partition("/")
        return bool(slash) and ((sub != "*" and parent in whole) or (parent != "*" and sub in everywhere))

    return tuple(sorted(name for name in remaining if not covered(name)))
