"""Computes the registration and the rights for the policies that a cluster stores. follow_policies.py writes both.

A stored policy is not registered if the webhook could then block the cluster. The check is `webhook-config --check`,
and assumes that every webhook fails closed. Only rules and matchConditions of a registered webhook change. The
administrator sets the address, caBundle, failurePolicy and selectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from webhook.apimachinery.attributes import Phase
from webhook.export.cluster_role import cluster_role
from webhook.export.lockout import Danger, lockout_dangers
from webhook.export.registrations import WebhooksOfPhase, webhook_registrations
from webhook.manifests.webhook_configurations import KINDS, parse_webhook_configuration
from webhook.policy.compiled import Policy
from webhook.policy.interests import interests_of_policies
from webhook.policy.policy_set import PolicySet

Manifest: TypeAlias = Mapping[str, Any]
Grant: TypeAlias = tuple[str, str, str]
"""Group, resource and name of objects that may be read. Name "" means all objects."""
Render: TypeAlias = Callable[[Mapping[Phase, WebhooksOfPhase]], Sequence[Manifest]]
"""Returns the configurations for some webhooks, as `webhook-config` prints them."""
DOMAIN: Final = ".claimgate.dev"
"""The end of the names of our webhooks. Other webhooks of a configuration are not changed."""
STORED_POLICIES: Final = f"policies.validate{DOMAIN}"
"""The webhook for the stored policies themselves. It always fails open."""


def split_registrable_policies(
    policies: PolicySet, stored: Iterable[Policy], current: Sequence[Manifest], render: Render, *, any_pod: bool
) -> tuple[PolicySet, dict[str, tuple[Danger, ...]]]:
    """Return the policies that may be registered, and the dangers of each refused policy by `Policy.file`.

    `stored` are the policies of the cluster, and `current` the cluster's configurations. `any_pod` registers rules
    about any Pod.
    """

    def dangers_of(registered: PolicySet) -> dict[str, Danger]:
        wanted = render({phase: webhook_registrations(registered, phase, any_pod=any_pod) for phase in Phase})
        every = (
            danger
            for each in merge_configurations(current, wanted)
            for danger in lockout_dangers(parse_webhook_configuration(_with_failure_policy_fail(each)), {})
        )
        return {danger.harm: danger for danger in every}

    stored_policies = tuple(stored)
    safe = _without_policies(policies, stored_policies)
    known = dangers_of(safe)
    if dangers_of(policies).keys() <= known.keys():
        return policies, {}
    refused: dict[str, tuple[Danger, ...]] = {}
    left_out: list[Policy] = []
    for policy in stored_policies:
        alone = dangers_of(_without_policies(policies, [each for each in stored_policies if each is not policy]))
        if added := tuple(danger for harm, danger in alone.items() if harm not in known):
            refused[policy.file] = added
            left_out.append(policy)
    return _without_policies(policies, left_out), refused


def _without_policies(policies: PolicySet, some: Sequence[Policy]) -> PolicySet:
    absent = {id(each) for each in some}
    return replace(
        policies,
        validating=tuple(each for each in policies.validating if id(each) not in absent),
        mutating=tuple(each for each in policies.mutating if id(each) not in absent),
    )


def _with_failure_policy_fail(configuration: Manifest) -> dict[str, Any]:
    return {**configuration, "webhooks": [{**one, "failurePolicy": "Fail"} for one in configuration["webhooks"]]}


def merge_configurations(current: Sequence[Manifest], wanted: Sequence[Manifest]) -> list[dict[str, Any]]:
    """Return the configurations of the cluster with the wanted rules and matchConditions.

    A missing configuration is not created. A new webhook copies address, caBundle and selectors from our first webhook
    in the configuration.
    """
    by_kind = {one["kind"]: one for one in wanted}
    return [
        _merged_configuration(one, by_kind.get(one["kind"], {}).get("webhooks", ()))
        for one in current
        if one["kind"] in KINDS
    ]


def with_idle_webhooks(wanted: Sequence[Manifest], of_files: Sequence[Manifest]) -> list[Manifest]:
    """Return the wanted configurations, and add each missing webhook of `of_files` without rules.

    A stored policy about any Pod replaces the separate webhook for Pods. The replaced webhook stays, without rules.
    Otherwise each upgrade would install the webhook again, without a caBundle.

    `of_files` are the configurations for the policies of files alone.
    """
    by_kind = {one["kind"]: one["webhooks"] for one in of_files}
    return [
        {**one, "webhooks": [*one["webhooks"], *_idle_webhooks(one["webhooks"], by_kind.get(one["kind"], ()))]}
        for one in wanted
    ]


def _idle_webhooks(wanted: Sequence[Manifest], of_files: Sequence[Manifest]) -> list[Manifest]:
    names = {one["name"] for one in wanted}
    return [{**_without_conditions(one), "rules": []} for one in of_files if one["name"] not in names]


def _without_conditions(webhook: Manifest) -> dict[str, Any]:
    return {name: value for name, value in webhook.items() if name != "matchConditions"}


def _merged_configuration(current: Manifest, wanted: Sequence[Manifest]) -> dict[str, Any]:
    stored = {one["name"]: one for one in current.get("webhooks") or ()}
    ours = [one for name, one in stored.items() if name.endswith(DOMAIN)]
    others = [one for name, one in stored.items() if not name.endswith(DOMAIN)]
    if not ours:
        return dict(current)
    merged = [_merged_webhook(stored.get(one["name"], ours[0]), one) for one in wanted]
    return {**current, "webhooks": [*others, *merged]}


def _merged_webhook(like: Manifest, wanted: Manifest) -> dict[str, Any]:
    merged = _without_conditions(like)
    conditions = {"matchConditions": wanted["matchConditions"]} if "matchConditions" in wanted else {}
    if wanted["name"] == STORED_POLICIES:
        merged["failurePolicy"] = wanted["failurePolicy"]
    return {**merged, "name": wanted["name"], "rules": wanted["rules"], **conditions}


def has_different_webhooks(current: Manifest, wanted: Manifest) -> bool:
    """The order of webhooks does not matter."""

    def parts(configuration: Manifest) -> dict[str, Any]:
        webhooks = configuration.get("webhooks") or ()
        return {one["name"]: (one.get("rules") or [], one.get("matchConditions") or []) for one in webhooks}

    return parts(current) != parts(wanted)


def grants_of_rules(rules: Iterable[Mapping[str, Any]]) -> frozenset[Grant]:
    """Return the objects that rules of a role allow to list and watch."""
    return frozenset(
        (group, resource, name)
        for rule in rules
        if {"list", "watch"} <= set(rule.get("verbs") or ()) or "*" in (rule.get("verbs") or ())
        for group in rule.get("apiGroups") or ()
        for resource in rule.get("resources") or ()
        for name in rule.get("resourceNames") or ("",)
    )


def grants_needed_by_policies(policies: PolicySet, some: Iterable[Policy]) -> frozenset[Grant]:
    """Return the grants for the objects that some policies look up."""
    looked_up = interests_of_policies(tuple(some), policies.registry, policies.params, policies.own_namespace)
    return grants_of_rules(cluster_role("", looked_up, policies.table)["rules"])


def is_grant_covered(grant: Grant, granted: Iterable[Grant]) -> bool:
    """A grant without a name covers the grants with a name."""
    group, resource, name = grant
    return any(each in granted for each in ((group, resource, name), (group, resource, "")))


def role_rules(wanted: Iterable[Grant]) -> list[dict[str, Any]]:
    """Return rules of a role that allow exactly these grants."""
    named: dict[tuple[str, str], set[str]] = {}
    for group, resource, name in wanted:
        named.setdefault((group, resource), set()).add(name)
    return [
        {
            "apiGroups": [group],
            "resources": [resource],
            **({} if "" in names else {"resourceNames": sorted(names)}),
            "verbs": ["get", "list", "watch"],
        }
        for (group, resource), names in sorted(named.items())
    ]


def format_grant(grant: Grant) -> str:
    """Return a grant as people write it: `configmaps limits` or `jobsets.jobset.x-k8s.io`."""
    group, resource, name = grant
    return " ".join(filter(None, [f"{resource}.{group}".rstrip("."), name]))
