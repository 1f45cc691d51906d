"""A rule is a record: the fields that come from its group, mistakes in it, and its problems."""

from types import ModuleType

import pytest

from webhook.errors import InputError
from webhook.rules.catalogue import LazyCatalogue, UnlistedRuleError, catalogue_of_rules, rules_of_modules
from webhook.rules.problem import MissingObject
from webhook.rules.rule import RuleGroup

PODS = RuleGroup("pods", refused_by="the API server", source="somewhere", fails="pending")
FIRST = PODS.rule("pods/first", title="A title.", why="It fails.", function="validateThis")


def test_a_rule_inherits_unset_texts_from_its_group():
    other = PODS.rule("pods/other", title="T", why="W", source="elsewhere", refused_by="", fails="silent", level="warn")
    assert (FIRST.source, FIRST.refused_by, FIRST.fails, FIRST.level) == (
        "somewhere",
        "the API server",
        "pending",
        "deny",
    )
    assert (other.source, other.refused_by, other.fails, other.level) == ("elsewhere", "", "silent", "warn")
    assert RuleGroup("pods", source="s", level="warn").rule("pods/a", title="T", why="W").level == "warn"


def test_a_rule_that_warns_is_of_medium_severity_unless_it_says_otherwise():
    warns = PODS.rule("pods/a", title="T", why="W", level="warn")
    low = PODS.rule("pods/b", title="T", why="W", level="warn", severity="low")
    assert [rule.severity for rule in (FIRST, warns, low)] == ["", "medium", "low"]


def test_a_rule_names_the_issue_that_reported_it():
    issue, pull = "https://github.com/a/b/issues/1", "https://github.com/a/c.d/pull/2"
    rule = PODS.rule("pods/a", title="T", why="W", source=issue, issues=(pull,))
    assert rule.issue_links_by_name == {"a/b#1": issue, "a/c.d#2": pull}
    assert FIRST.issue_links_by_name == {}


@pytest.mark.parametrize(
    ("rule_id", "fields", "expected"),
    [
        ("jobs/a", {}, ["is not a rule of the group `pods`"]),
        ("pods/A", {}, ["id must be a group and a name of lower case letters, digits and dashes, as in group/rule"]),
        ("pods/a", {"title": "", "why": ""}, ["title is required", "why is required"]),
        ("pods/a", {"level": "block"}, ["level must be one of deny, warn, audit, advice, off"]),
        ("pods/a", {"severity": "bad"}, ["severity must be one of critical, high, medium, low, info"]),
        (
            "pods/a",
            {"fails": "late"},
            ["fails must be one of create, controller, pending, start, waiting, silent, disruption"],
        ),
        (
            "pods/a",
            {"issues": ("https://example.com/1",)},
            ["issues must be a list of links such as https://github.com/kubeflow/trainer/issues/1"],
        ),
        ("pods/a", {"issues": ("https://github.com/a/b/issues/1",) * 2}, ["issues must not have a link twice"]),
        ("pods/a", {"yields_to": ("b",)}, ["yields_to must be a list of ids of rules such as device-claims/unused"]),
    ],
)
def test_every_mistake_is_reported(rule_id, fields, expected):
    with pytest.raises(InputError) as caught:
        PODS.rule(rule_id, **{"title": "T", "why": "W", **fields})
    assert [problem.message for problem in caught.value.problems] == [f"rule `{rule_id}`: {each}" for each in expected]


def test_a_problem_names_its_rule():
    problem = FIRST.problem(("spec", "containers", 0), "must not be empty", "name it", "")
    assert (problem.code, problem.path, problem.found) == ("pods/first", "spec.containers[0]", '`""`')
    assert FIRST.problem("spec", found=3).found == "`3`"
    assert FIRST.problem("spec", found=3, shown="a list").found == "a list"
    missing = (MissingObject(kind="Node", name="n"),)
    assert FIRST.problem("spec", missing=missing).missing == missing


def module(**values):
    made = ModuleType("made")
    vars(made).update(values)
    return made


def test_the_rules_of_modules_are_their_records_each_once():
    second = PODS.rule("pods/second", title="T", why="W")
    assert rules_of_modules(module(A=second, GROUP=PODS), module(B=FIRST, A=second)) == (second, FIRST)
    assert list(catalogue_of_rules((second, FIRST, FIRST))) == ["pods/second", "pods/first"]


def test_an_id_belongs_to_one_rule():
    again = PODS.rule("pods/first", title="Another.", why="W")
    with pytest.raises(InputError, match="rule `pods/first` is declared twice: remove one"):
        catalogue_of_rules((FIRST, again))


def test_the_catalogue_is_read_on_the_first_lookup_of_a_rule():
    def read():
        reads.append("read")
        return catalogue_of_rules((FIRST,))

    reads = []
    lazy = LazyCatalogue(read)
    assert (bool(lazy), reads) == (True, [])
    assert (lazy["pods/first"], "pods/other" in lazy, list(lazy), len(lazy)) == (FIRST, False, ["pods/first"], 1)
    assert reads == ["read"]


def test_an_error_about_an_unlisted_module_says_where_to_list_it():
    lazy = LazyCatalogue(lambda: catalogue_of_rules((FIRST,)), ["pods/first"])
    with pytest.raises(UnlistedRuleError, match=r"`pods/new` is not listed: .* webhook/facts/packages.py, then run"):
        lazy["pods/new"]
    assert lazy.get("pods/new") is None
