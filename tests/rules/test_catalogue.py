"""The catalogue of rules: the contents of rules.yaml, its mistakes, and the rules of each package."""

import pytest

from webhook.errors import InputError
from webhook.facts.subject import SHIPPED, rules_of_package
from webhook.rules import policy_rules
from webhook.yamltext import yamlfile


def policies(text):
    return policy_rules.read_policy_rules(yamlfile.load(text)[0])


def test_policies_name_their_validations():
    found = policies("""
group: gpu-portable
source: here
policies:
  gpu-portable:
  - {rule: vendor, title: T, why: W}
  - {rule: claims, title: T, why: W}
  gpu-portable-claims:
  - rule: vendor
""")
    assert {name: [rule.id for rule in rules] for name, rules in found.items()} == {
        "gpu-portable": ["gpu-portable/vendor", "gpu-portable/claims"],
        "gpu-portable-claims": ["gpu-portable/vendor"],
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[]", ": must be a map with the fields group, refused_by, source, fails, policies"),
        ("{group: G, policies: {}}", "group: must be a name of lower case letters, digits and dashes"),
        (
            "{group: g, policies: {}, rules: []}",
            "rules: unknown field: expected one of group, refused_by, source, fails, policies",
        ),
        (
            "{group: g, policies: {p: [{rule: R}]}}",
            "policies.p[0].rule: must be a name of lower case letters, digits and dashes",
        ),
        ("{group: g, source: s, policies: {p: [{rule: r, title: 1, why: W}]}}", "policies.p[0].title: must be a text"),
        (
            "{group: g, source: s, policies: {p: [{rule: r, title: T, why: W, fails: [late]}]}}",
            "policies.p[0].fails: must be one of create, controller, pending, start, waiting, silent, disruption",
        ),
        (
            "{group: g, source: s, policies: {p: [{rule: r, title: T, why: W, issues: a}]}}",
            "policies.p[0].issues: must be a list of links such as https://github.com/kubeflow/trainer/issues/1",
        ),
        ("{group: g, policies: []}", "policies: must be a map of policies, each with a list of rules"),
        ("{group: g, policies: {p: {}}}", "policies.p: must be a list of rules, one for each validation of the policy"),
        ("{group: g, policies: {p: [{rule: r}]}}", "policies.p[0].title: is required"),
        (
            "{group: g, source: s, policies: {p: [{rule: r, title: T, why: W}, {rule: r, title: T, why: W}]}}",
            "policies.p[1]: rule `g/r` is declared twice: remove one",
        ),
    ],
)
def test_mistakes_in_the_rules_of_policies(text, expected):
    with pytest.raises(InputError) as caught:
        policies(text)
    assert expected in [f"{problem.path}: {problem.message}" for problem in caught.value.problems]


def test_every_package_has_rules_for_its_groups_and_for_no_other_group():
    for package in SHIPPED.packages:
        assert {rule.group for rule in rules_of_package(package)} == set(package.groups)
        assert all(SHIPPED.checks(group) for group in package.groups)
