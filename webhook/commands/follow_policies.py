"""`claimgate webhook-config --live --watch`: updates registration and rights after changes of stored policies.

Writes the webhook configurations, one ClusterRole, and the condition Registered of each stored policy, if out of
date. Creates and deletes no objects. If the stored policies cannot be read, nothing is changed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, TypeAlias
from urllib.parse import quote

from certs import CertificateError
from certs.repeat import repeat
from webhook.apimachinery.attributes import Phase
from webhook.cluster.connection import Connection, ServerRefused
from webhook.commands.live_registration import (
    Grant,
    Manifest,
    Render,
    format_grant,
    grants_needed_by_policies,
    grants_of_rules,
    has_different_webhooks,
    is_grant_covered,
    merge_configurations,
    role_rules,
    split_registrable_policies,
    with_idle_webhooks,
)
from webhook.errors import LookupFailed
from webhook.export.lockout import Danger
from webhook.export.registrations import webhook_registrations
from webhook.export.webhook_rules import matched_resources_of_policies
from webhook.live_policies.combine import LivePolicies, combine_file_and_stored_policies
from webhook.live_policies.compile import CompiledObject, Compiler
from webhook.live_policies.conditions import create_condition
from webhook.live_policies.objects import StoredPolicies, StoredPolicy
from webhook.live_policies.status_writer import StatusWriter
from webhook.manifests.claimgate_kinds import POLICY_BINDING
from webhook.manifests.webhook_configurations import GROUP, KINDS
from webhook.policy.compiled import Policy
from webhook.policy.policy_set import PolicySet
from webhook.text.terminal import one_line
from webhook.text.wording import counted

_StoredConditions: TypeAlias = tuple[StoredPolicy, tuple[dict[str, Any], ...]]
"""A stored policy, and the conditions that its status should have."""
EVERY_S: Final = 2.0
"""Seconds between two polls: the default interval at which servers poll their files (--reload)."""
MANAGER: Final = "claimgate-registration"
ROLE: Final = "claimgate-live-lookups"
"""The ClusterRole for the objects that stored policies look up."""
_ROLES: Final = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_MISSING_RIGHTS: Final = "MissingRights"
_MOST_QUESTIONS: Final = 100
"""The most grants that are checked in one run."""
_WAIT_S: Final = 10.0


@dataclass(slots=True)
class PolicyFollower:
    """Keeps the registration in one cluster up to date. Remembers the printed lines and the written objects.

    Attributes:
        name: the name of both webhook configurations.
        files: the policies of files, which servers load too.
        render: makes configurations of webhooks.
        any_pod: whether rules about Pods without devices are registered (--any-pod).
        exempt: returns the matchConditions for users that are exempt now. `render` writes them.
    """

    name: str
    files: PolicySet
    stored: StoredPolicies
    connection: Connection
    compiler: Compiler
    render: Render
    any_pod: bool
    exempt: Callable[[], object] = tuple
    _writer: StatusWriter = field(init=False)
    _printed: set[str] = field(default_factory=set)
    _seen: object = None
    _conditions: Sequence[_StoredConditions] = ()

    def __post_init__(self) -> None:
        self._writer = StatusWriter(self.connection, MANAGER)

    def run_until_stopped(self) -> None:
        """Update the cluster repeatedly, until SIGTERM or Ctrl-C."""
        repeat(self._update_or_raise, EVERY_S)

    def _update_or_raise(self) -> None:
        try:
            self.update_cluster_once()
        except LookupFailed as error:
            raise CertificateError(str(error)) from None  # `repeat` prints this once, and tries again

    def update_cluster_once(self) -> None:
        """Write the registration, rights and status that the stored policies need now.

        Raises:
            LookupFailed: the cluster cannot be read or refuses a write.
        """
        current, role = self._current_configurations(), self._get_or_none(f"{_ROLES}/{ROLE}")
        versions = [one["metadata"]["resourceVersion"] for one in (*current, *([role] if role else ()))]
        seen = self.stored.revision(), versions, self.exempt()
        if seen != self._seen:
            self._conditions = tuple(self._update_registration_and_rights(current, role))
            # a new right of this account changes no watched object, so each run checks again while a right is missing
            self._seen = None if any(_lacks_rights(each) for _, each in self._conditions) else seen
        self._writer.write((stored, conditions, None) for stored, conditions in self._conditions)
        if self._writer.error:
            raise LookupFailed(f"status cannot be written: {self._writer.error}")

    def _update_registration_and_rights(
        self, current: Sequence[dict[str, Any]], role: Manifest | None
    ) -> Iterator[_StoredConditions]:
        live = combine_file_and_stored_policies(self.files, self.compiler.compile(self.stored.list_oldest_first()))
        in_force = {policy.file: policy for policy in live.policies.policies}
        stored = [in_force[each.policy.file] for each in live.objects if each.policy is not None]
        safe, refused = split_registrable_policies(live.policies, stored, current, self.render, any_pod=self.any_pod)
        wanted = with_idle_webhooks(self._configurations_for(safe), self._configurations_for(self.files))
        for configuration, merged in zip(current, merge_configurations(current, wanted), strict=True):
            if has_different_webhooks(configuration, merged):
                self._replace_webhooks(configuration, merged)
        granted = self._grant_needed_rights(live, stored, role)
        called = frozenset(policy.file for phase in Phase for policy, _ in matched_resources_of_policies(safe, phase))
        missing = {one["kind"] for one in wanted} - {one["kind"] for one in current}
        self._report_unregistered_policies(refused)
        yield from _registered_conditions(_UpdateResult(live, in_force, refused, called, granted, frozenset(missing)))

    def _configurations_for(self, policies: PolicySet) -> Sequence[Manifest]:
        return self.render({phase: webhook_registrations(policies, phase, any_pod=self.any_pod) for phase in Phase})

    def _current_configurations(self) -> list[dict[str, Any]]:
        """Return our configurations in the cluster, the validating configuration first."""
        configurations = []
        for kind in KINDS:
            configuration = self._get_or_none(f"/apis/{GROUP}/v1/{kind.lower()}s/{quote(self.name, safe='')}")
            if configuration is not None:
                configurations.append({**configuration, "kind": kind})
        return configurations

    def _get_or_none(self, path: str) -> dict[str, Any] | None:
        try:
            return dict(self.connection.get(path, {}))
        except ServerRefused as refused:
            if refused.code == HTTPStatus.NOT_FOUND:
                return None
            raise

    def _replace_webhooks(self, stored: Manifest, merged: Manifest) -> None:
        """If the webhooks changed meanwhile, the API server refuses the write. The next run replaces the webhooks."""
        path = f"/apis/{GROUP}/v1/{stored['kind'].lower()}s/{quote(self.name, safe='')}"
        self.connection.patch(path, _patch_that_replaces(stored, "/webhooks", merged["webhooks"]), MANAGER, _WAIT_S)
        count = counted(len(merged["webhooks"]), "webhook")
        _print_line(f"{stored['kind']} {self.name}: wrote rules and matchConditions of {count}")

    def _grant_needed_rights(
        self, live: LivePolicies, stored: Sequence[Policy], role: Manifest | None
    ) -> frozenset[Grant]:
        """Allow servers to read the objects that stored policies look up. This account can grant only its own rights.
        Return all grants of servers.
        """
        base = grants_needed_by_policies(self.files, self.files.policies)
        needed = {each for each in grants_needed_by_policies(live.policies, stored) if not is_grant_covered(each, base)}
        if role is None:
            return base
        granted = grants_of_rules(role.get("rules") or ())
        may_say = {each for each in sorted(needed)[:_MOST_QUESTIONS] if each in granted or self._may_read(each)}
        if may_say != granted:
            change = _patch_that_replaces(role, "/rules", role_rules(may_say))
            self.connection.patch(f"{_ROLES}/{ROLE}", change, MANAGER, _WAIT_S)
            _print_line(f"ClusterRole {ROLE}: allows {', '.join(map(format_grant, sorted(may_say))) or 'nothing'}")
        return base | may_say

    def _may_read(self, grant: Grant) -> bool:
        """An account may grant only its own rights."""
        group, resource, name = grant
        for verb in ("get", "list", "watch"):
            attributes = {"group": group, "resource": resource, "verb": verb, **({"name": name} if name else {})}
            kind = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
            answer = self.connection.post(_REVIEWS, {**kind, "spec": {"resourceAttributes": attributes}}, _WAIT_S)
            if not answer["status"].get("allowed"):
                return False
        return True

    def _report_unregistered_policies(self, refused: Mapping[str, Sequence[Danger]]) -> None:
        """Print why policies are not registered. A lasting reason is printed once."""
        lines = {f"{place}: not registered: {each[0].harm}" for place, each in refused.items()}
        for line in sorted(lines - self._printed):
            _print_line(line)
        self._printed = lines


def _print_line(line: str) -> None:
    sys.stderr.write(f"{one_line(line)}\n")
    sys.stderr.flush()


def _patch_that_replaces(stored: Manifest, path: str, value: Any) -> list[dict[str, Any]]:
    """Return the JSON Patch that replaces a part of an object. The patch fails if the object changed meanwhile."""
    version = {"op": "test", "path": "/metadata/resourceVersion", "value": stored["metadata"]["resourceVersion"]}
    return [version, {"op": "add", "path": path, "value": value}]


@dataclass(frozen=True, slots=True)
class _UpdateResult:
    """The result of one run.

    Attributes:
        called: `Policy.file` of the policies for which API servers call claimgate.
        missing: the kinds of absent configurations.
    """

    live: LivePolicies
    in_force: Mapping[str, Policy]
    refused: Mapping[str, Sequence[Danger]]
    called: frozenset[str]
    granted: frozenset[Grant]
    missing: frozenset[str]


def _lacks_rights(conditions: Sequence[Mapping[str, Any]]) -> bool:
    return any(each["reason"] == _MISSING_RIGHTS for each in conditions)


def _registered_conditions(outcome: _UpdateResult) -> Iterator[_StoredConditions]:
    for each in outcome.live.objects:
        if each.stored.kind != POLICY_BINDING:
            condition = {**_registered_condition(each, outcome), "observedGeneration": each.stored.generation}
            yield each.stored, (condition,)


def _registered_condition(compiled: CompiledObject, outcome: _UpdateResult) -> dict[str, Any]:
    if compiled.policy is None:
        return _false_condition("NotInForce", "claimgate does not evaluate it: see condition Compiled")
    policy = outcome.in_force[compiled.policy.file]
    if not policy.bindings:
        return _false_condition("NoBinding", "it is not evaluated, because no binding names it: apply a PolicyBinding")
    if danger := outcome.refused.get(policy.file):
        return _false_condition(
            "WouldBlock", "; ".join(f"{one.harm}: name other resources in spec.matchConstraints" for one in danger)
        )
    if policy.file not in outcome.called:
        return _false_condition(
            "NotWanted", "API servers do not call claimgate for it: spec.registered is false, or its rules name nothing"
        )
    if outcome.missing:
        return _false_condition(
            "NoConfiguration", f"{' and '.join(sorted(outcome.missing))} not found: apply deploy/base"
        )
    if lacking := sorted(
        each
        for each in grants_needed_by_policies(outcome.live.policies, [policy])
        if not is_grant_covered(each, outcome.granted)
    ):
        return _false_condition(_MISSING_RIGHTS, _sentence_about_lacking_rights(lacking))
    return create_condition("Registered", holds=True, reason="Registered", message=_sentence_about_resources(policy))


def _false_condition(reason: str, message: str) -> dict[str, Any]:
    return create_condition("Registered", holds=False, reason=reason, message=message)


def _sentence_about_lacking_rights(grants_of_policy: Iterable[Grant]) -> str:
    names = ", ".join(map(format_grant, grants_of_policy))
    fix = "add it to ClusterRole claimgate-grantable, or bind what `claimgate webhook-config --live --rbac` prints"
    return f"it looks up {names}, which the server may not read, so it is not evaluated: {fix}"


def _sentence_about_resources(policy: Policy) -> str:
    named: dict[str, None] = {}
    for rule in policy.criteria.rules:
        for group in sorted(rule.groups or ("*",)):
            for resource, sub in rule.resources:
                named[f"{resource}/{sub}".rstrip("/") + (f".{group}" if group else "")] = None
    more = ", and kinds with pod templates" if policy.expands else ""
    return f"API servers ask about {', '.join(named)}{more}"
