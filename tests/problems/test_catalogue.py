"""The catalogue of rules: what a file may say, and that every mistake of it is told with its line."""

import pytest

from webhook import yamlfile
from webhook.errors import InputError
from webhook.facts.registry import SHIPPED, rules_of_package
from webhook.problems import policy_rules
from webhook.problems.catalogue import load

GOOD = """
group: pods
refused_by: the API server
source: somewhere
rules:
  first: {title: A title., why: It fails., function: validateThis}
  second: {title: Another., why: It fails too., level: warn, source: elsewhere, refused_by: the kubelet}
"""


def read(tmp_path, text):
    file = tmp_path / "problems.yaml"
    file.write_text(text)
    return load([file])


def complaints(tmp_path, text):
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    return [f"{problem.line}: {problem.path}: {problem.message}" for problem in caught.value.problems]


def test_a_rule_takes_from_its_group_what_it_does_not_say(tmp_path):
    found = read(tmp_path, GOOD)
    assert list(found) == ["pods/first", "pods/second"]
    assert (found["pods/first"].source, found["pods/first"].level) == ("somewhere", "deny")
    assert (found["pods/second"].source, found["pods/second"].refused_by) == ("elsewhere", "the kubelet")
    assert found["pods/second"].level == "warn"


def test_a_rule_says_when_it_fails_and_who_reported_it(tmp_path):
    issue, pull = "https://github.com/a/b/issues/1", "https://github.com/a/c.d/pull/2"
    third = f"  third: {{title: T., why: W., fails: silent, source: '{issue}', issues: ['{pull}']}}\n"
    found = read(tmp_path, GOOD.replace("source: somewhere", "source: somewhere\nfails: pending") + third)
    assert [rule.fails for rule in found.values()] == ["pending", "pending", "silent"]
    assert found["pods/third"].issues == (pull,)
    assert found["pods/third"].reports == {"a/b#1": issue, "a/c.d#2": pull}
    assert found["pods/first"].reports == {}


def test_a_rule_that_warns_is_of_medium_severity_unless_it_says_otherwise(tmp_path):
    third = "  third: {title: A third., why: It is untidy., level: warn, severity: low}\n"
    found = read(tmp_path, GOOD + third)
    assert [rule.severity for rule in found.values()] == ["", "medium", "low"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("group: pods\nrules: {a: {title: T, why: W}}", ["2: rules.a.source: is required"]),
        ("group: Pods\nrules: {}", ["1: group: must be a name of lower case letters, digits and dashes"]),
        ("group: pods\nrules: []", ["2: rules: must be a map of rules by their names"]),
        (
            "group: pods\nrule: {}",
            ["2: rule: unknown field: expected one of group, refused_by, source, level, fails, rules"],
        ),
        ("[]", ["1: : must be a map with the fields group, refused_by, source, level, fails, rules"]),
        (
            "group: pods\nsource: s\nrules:\n  a: {title: T, why: W, level: block}\n  B: {title: T, why: W}",
            [
                "4: rules.a.level: must be one of deny, warn, audit, advice, off",
                "5: rules.B: must be a name of lower case letters, digits and dashes",
            ],
        ),
        (
            "group: pods\nsource: s\nrules: {a: {title: T, why: W, severity: bad}}",
            ["3: rules.a.severity: must be one of critical, high, medium, low, info"],
        ),
        (
            "group: pods\nsource: s\nrules: {a: {title: T, why: W, fails: [late]}}",
            ["3: rules.a.fails: must be one of create, controller, pending, start, waiting, silent, disruption"],
        ),
        (
            "group: pods\nsource: s\nrules: {a: {title: T, why: W, issues: [https://example.com/1]}}",
            ["3: rules.a.issues: must be a list of links such as https://github.com/kubeflow/trainer/issues/1"],
        ),
        (
            "group: pods\nsource: s\nrules: {a: {title: T, why: W, issues: &i [&l https://github.com/a/b/issues/1, *l]}}",
            ["3: rules.a.issues: must not have a link twice"],
        ),
        ("group: pods\nsource: s\nrules: {a: {title: 1, why: W}}", ["3: rules.a.title: must be a text"]),
        (
            "group: pods\nsource: s\nrules: {a: {title: T, why: W}}\n---\ngroup: pods\nsource: s\nrules: {a: {title: T, why: W}}",
            ["7: rules.a: rule `pods/a` is declared twice: remove one"],
        ),
    ],
)
def test_mistakes_are_told_with_their_line(tmp_path, text, expected):
    found = complaints(tmp_path, text)
    assert [each for each in found if each in expected] == expected, found


def policies(text):
    return policy_rules.read(yamlfile.load(text)[0])


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


def test_every_package_has_rules_for_its_groups_and_no_others():
    for package in SHIPPED.packages:
        assert not package.rules or not package.problems.is_file()
        assert {rule.group for rule in rules_of_package(package)} == set(package.groups)
        assert all(SHIPPED.checks(group) for group in package.groups)
