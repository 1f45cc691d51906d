"""The rules of webhook configurations: exactly what the policies match."""

import pytest

from tests.literals import CONFIG_MAPS, PODS, TABLE, mutating, policies, validating
from webhook.apimachinery.attributes import Phase
from webhook.export.webhook_rules import webhook_rules


def shown(found):
    return [(r.groups, r.versions, r.resources, r.operations, r.scope) for r in found]


def test_webhook_rules_say_what_policies_match():
    found = policies(
        validating("true", name="a"),
        validating("true", name="b", rule={**CONFIG_MAPS, "scope": "Namespaced"}),
        validating("true", name="c", rule={**PODS, "operations": ["DELETE"], "resources": ["pods/exec", "services"]}),
        validating("true", name="d", annotations={"phase": "mutate"}, rule=CONFIG_MAPS),
        mutating("Object{}", rule={**CONFIG_MAPS, "operations": ["*"]}),
    )
    assert shown(webhook_rules(found, Phase.VALIDATE)) == [
        (("",), ("v1",), ("configmaps",), ("CREATE", "UPDATE"), "Namespaced"),
        (("",), ("v1",), ("pods",), ("CREATE", "UPDATE"), "*"),
        (("",), ("v1",), ("pods/exec", "services"), ("DELETE",), "*"),
    ]
    assert shown(webhook_rules(found, Phase.MUTATE)) == [
        (("",), ("v1",), ("configmaps",), ("CREATE", "UPDATE", "CONNECT"), "*")
    ]


def test_a_policy_that_is_not_registered_has_no_webhook_rule():
    found = policies(
        validating("true"), validating("true", name="b", annotations={"registered": "false"}, rule=CONFIG_MAPS)
    )
    assert [r.resources for r in webhook_rules(found, Phase.VALIDATE)] == [("pods",)]


def test_webhook_rules_name_every_kind_that_a_policy_expands_to():
    found = shown(webhook_rules(policies(validating("true", annotations={"expand": "pods"})), Phase.VALIDATE))
    named = {(group, resource) for groups, _, resources, *_ in found for group in groups for resource in resources}
    assert named == {("", "pods")} | {(row.group, row.resource) for row in TABLE.rows}


@pytest.mark.parametrize(
    ("resources", "kept"),
    [
        (["*/*", "pods"], ("*/*",)),
        (["*", "pods", "pods/exec"], ("*", "pods/exec")),
        (["pods/*", "pods/exec", "pods"], ("pods", "pods/*")),
        (["*/scale", "pods/scale", "pods/exec"], ("*/scale", "pods/exec")),
    ],
)
def test_webhook_rules_hold_no_wildcard_beside_what_it_covers(resources, kept):
    found = policies(
        *[validating("true", name=f"p{number}", rule={**PODS, "resources": [r]}) for number, r in enumerate(resources)]
    )
    assert [resources for _, _, resources, *_ in shown(webhook_rules(found, Phase.VALIDATE))] == [kept]


def test_a_version_or_operation_wildcard_must_be_the_only_entry():
    found = policies(
        validating("true", name="a", rule={**PODS, "apiVersions": ["*"], "operations": ["*"]}),
        validating("true", name="b", rule={**PODS, "operations": ["*"]}),
    )
    assert shown(webhook_rules(found, Phase.VALIDATE)) == [(("",), ("*",), ("pods",), ("*",), "*")]


def test_an_unbound_policy_needs_no_webhook_rule():
    (policy, _) = validating("true")
    assert webhook_rules(policies(policy), Phase.VALIDATE) == ()
    assert webhook_rules(policies(mutating("Object{}")[0]), Phase.MUTATE) == ()
