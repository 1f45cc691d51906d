"""The registration of webhooks follows stored policies. It changes only rules and conditions, and never blocks the
cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.live_policies.stored import binding, compiler, of, policy
from webhook.apimachinery.attributes import JSON, Phase
from webhook.commands.live_registration import (
    STORED_POLICIES,
    grants_needed_by_policies,
    grants_of_rules,
    has_different_webhooks,
    is_grant_covered,
    merge_configurations,
    role_rules,
    split_registrable_policies,
    with_idle_webhooks,
)
from webhook.commands.webhook_config import Registration, webhook_configurations
from webhook.export.registrations import WebhooksOfPhase, webhook_registrations
from webhook.live_policies.combine import LivePolicies, combine_file_and_stored_policies
from webhook.policy.policy_set import PolicySet
from webhook.workloads import table

SHIPPED = combine_file_and_stored_policies(
    PolicySet(validating=(), mutating=(), table=table.load_table()),
    compiler().compile(of(policy("shipped"), binding("shipped", "shipped"))),
).policies
SERVICE = {"service": {"namespace": "claimgate-system", "name": "claimgate", "port": 443}}


def render(wanted: Mapping[Phase, WebhooksOfPhase]) -> list[JSON]:
    return webhook_configurations(
        wanted, Registration(client=SERVICE, excluded_namespaces=("kube-system", "claimgate-system"))
    )


def current(**changed: Any) -> list[dict[str, Any]]:
    (one,) = render({phase: webhook_registrations(SHIPPED, phase) for phase in Phase})
    (webhook,) = one["webhooks"]
    kept = {"failurePolicy": "Fail", "timeoutSeconds": 7, "clientConfig": {**SERVICE, "caBundle": "YQ=="}}
    return [{**one, "webhooks": [{**webhook, **kept, **changed}]}]


def live(*values: dict[str, Any]) -> LivePolicies:
    return combine_file_and_stored_policies(SHIPPED, compiler().compile(of(*values)))


def about(*resources: str, group: str = "") -> dict[str, Any]:
    rule = {"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE"], "resources": [*resources]}
    return {"matchConstraints": {"resourceRules": [rule]}}


def wanted(policies: PolicySet) -> list[JSON]:
    return render({phase: webhook_registrations(policies, phase) for phase in Phase})


def decided(made: LivePolicies) -> tuple[PolicySet, dict[str, Any]]:
    stored = [each for each in made.policies.policies if each.file.startswith("ValidatingPolicy/")]
    mine = [each for each in stored if each.name != "shipped"]
    return split_registrable_policies(made.policies, mine, current(), render, any_pod=False)


def test_registration_changes_only_the_rules() -> None:
    made = live(policy("maps", **about("configmaps")), binding("maps", "maps"))
    (before,), (after,) = current(), merge_configurations(current(), wanted(made.policies))
    assert has_different_webhooks(before, after)
    (old,), (new,) = before["webhooks"], after["webhooks"]
    assert {rule["resources"][0] for rule in new["rules"]} == {"configmaps", "pods"}
    assert {**old, "rules": []} == {**new, "rules": []}
    assert not has_different_webhooks(after, merge_configurations([after], wanted(made.policies))[0])


def test_an_idle_webhook_keeps_its_bundle() -> None:
    (shipped,) = current()
    (pods,) = shipped["webhooks"]
    of_files = {**shipped, "webhooks": [pods, {**pods, "name": "pods.validate.claimgate.dev", "matchConditions": []}]}
    there = {**of_files, "webhooks": [{**one, "failurePolicy": "Fail"} for one in of_files["webhooks"]]}
    (after,) = merge_configurations([there], with_idle_webhooks([shipped], [of_files]))
    idle = after["webhooks"][1]
    assert (idle["name"], idle["rules"]) == ("pods.validate.claimgate.dev", [])
    assert (idle["failurePolicy"], idle["clientConfig"]["caBundle"]) == ("Fail", "YQ==")
    stored = {**after, "webhooks": [pods, {key: value for key, value in idle.items() if key != "rules"}]}
    assert not has_different_webhooks(stored, after)  # an API server does not store an empty list


def test_a_new_webhook_is_named_like_the_first_one() -> None:
    made = live(policy("gpus", concerns=["devices"]), binding("gpus", "gpus"), policy("maps", **about("configmaps")))
    only = PolicySet(
        validating=tuple(each for each in made.policies.validating if each.name == "gpus"),
        mutating=(),
        table=made.policies.table,
    )
    (after,) = merge_configurations(current(), wanted(only))
    (pods,) = after["webhooks"]
    assert pods["name"] == "pods.validate.claimgate.dev"
    assert (pods["failurePolicy"], pods["clientConfig"]["caBundle"]) == ("Fail", "YQ==")
    assert "concerns-a-policy" in [each["name"] for each in pods["matchConditions"]]


def test_other_webhooks_and_absent_configurations_are_not_changed() -> None:
    (one,) = current()
    foreign = {"name": "other.example.com", "rules": [], "clientConfig": {}}
    (after,) = merge_configurations([{**one, "webhooks": [foreign, *one["webhooks"]]}], wanted(SHIPPED))
    assert [each["name"] for each in after["webhooks"]] == ["other.example.com", "validate.claimgate.dev"]
    assert merge_configurations([], wanted(SHIPPED)) == []
    assert merge_configurations([{**one, "webhooks": [foreign]}], wanted(SHIPPED))[0]["webhooks"] == [foreign]


def test_stored_policies_that_could_block_the_cluster_are_not_registered() -> None:
    made = live(
        *(policy("nodes", **about("nodes")), binding("nodes", "nodes")),
        *(policy("leases", **about("leases", group="coordination.k8s.io")), binding("leases", "leases")),
        *(policy("maps", **about("configmaps")), binding("maps", "maps")),
    )
    safe, refused = decided(made)
    assert [each.name for each in safe.validating] == ["leases", "maps", "shipped"], "CREATE of leases blocks nothing"
    (danger,) = refused["ValidatingPolicy/nodes"]
    assert "no node can join" in danger.harm


def test_safe_stored_policies_are_all_registered() -> None:
    made = live(policy("maps", **about("configmaps")), binding("maps", "maps"))
    assert decided(made) == (made.policies, {})


def test_a_role_allows_exactly_what_policies_look_up() -> None:
    ref = {"name": "budget", "namespace": "n", "parameterNotFoundAction": "Deny"}
    kind = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}
    made = live(policy("p", "params.data.a == 'b'", **kind), binding("p", "p", paramRef=ref))
    (own,) = [each for each in made.policies.validating if each.name == "p"]
    wants = grants_needed_by_policies(made.policies, [own]) - grants_needed_by_policies(SHIPPED, SHIPPED.policies)
    assert wants == {("", "configmaps", "budget")}
    (rule,) = role_rules(wants)
    assert (rule["resourceNames"], rule["verbs"]) == (["budget"], ["get", "list", "watch"])
    assert grants_of_rules([rule]) == wants
    assert is_grant_covered(("", "configmaps", "budget"), {("", "configmaps", "")})
    assert not is_grant_covered(("", "configmaps", ""), {("", "configmaps", "budget")})


def test_the_webhook_about_stored_policies_fails_open_in_enforce() -> None:
    phases = {phase: webhook_registrations(SHIPPED, phase) for phase in Phase}
    (asked,) = webhook_configurations(phases, Registration(client=SERVICE, stored_policies=True))
    (merged,) = merge_configurations(current(), [asked])
    added = {one["name"]: one for one in merged["webhooks"]}[STORED_POLICIES]
    assert (added["failurePolicy"], added["clientConfig"]["caBundle"]) == ("Ignore", "YQ==")
    assert added["rules"][0]["resources"] == ["mutatingpolicies", "policybindings", "validatingpolicies"]
    assert [one["failurePolicy"] for one in merged["webhooks"]] == ["Fail", "Ignore"]
