"""Every shipped rule says when an object that breaks it fails. docs/late-failures.md lists the late failures."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.literals import OPTIONS, shipped_policies
from webhook.input import shipped
from webhook.rules.decisions import ValidationAction
from webhook.rules.problem import AT_ONCE, MOMENTS
from webhook.suites import find, own
from webhook.suites.case import answer_of_case
from webhook.suites.files import Suite
from webhook.suites.late_failures import late_failures_as_markdown, read_uncovered_failures
from webhook.suites.rule_reference import rules_of_policies
from webhook.suites.suite_model import CaseModel

PAGE = Path(__file__).parents[2] / "docs" / "late-failures.md"
POLICIES = shipped_policies().policies
RULES = [entry.rule for entry in rules_of_policies(POLICIES).values()]


def test_the_page_is_up_to_date(request: pytest.FixtureRequest) -> None:
    found = late_failures_as_markdown(POLICIES, read_uncovered_failures())
    if request.config.getoption("--update-golden"):
        PAGE.write_text(found)
    assert PAGE.read_text() == found, "the rules changed: run make docs"


def test_every_rule_has_the_moment_of_its_failure() -> None:
    assert [rule.id for rule in RULES if rule.fails not in MOMENTS] == []


def test_each_rule_that_fails_at_once_names_the_component_that_refuses() -> None:
    refused = [rule for rule in RULES if rule.fails == AT_ONCE]
    assert [rule.id for rule in refused if not rule.refused_by or rule.refused_by.startswith("nothing")] == []


def test_every_late_rule_and_every_report_is_on_the_page() -> None:
    text = PAGE.read_text()
    late = [rule for rule in RULES if rule.fails != AT_ONCE or rule.issues]
    assert len(late) > 300
    assert [
        rule.id for rule in late if f"| [{rule.id}](rules/{rule.group}.md#{rule.id.replace('/', '')})" not in text
    ] == []
    links = [link for rule in RULES for link in rule.issues] + [
        link for each in read_uncovered_failures() for link in each.issues
    ]
    assert [link for link in links if f"]({link})" not in text] == []


def test_each_uncovered_failure_has_a_topic_and_a_reason() -> None:
    topics = {policy.category for policy in POLICIES}
    assert [
        each for each in read_uncovered_failures() if each.topic not in topics or not each.reason or not each.what
    ] == []


def test_all_policies_report_the_bad_examples_and_allow_the_good_examples() -> None:
    """The examples are those of docs/rules. All rules are switched on."""
    shown: set[tuple[str, bool]] = set()
    wrong = []
    for suite in find.find_suites([Path(shipped.policies_folder())]):
        for case in own.cases(suite):
            first = {rule for rule in case.rules if (rule, case.is_bad_example) not in shown}
            shown |= {(rule, case.is_bad_example) for rule in first}
            if not first:
                continue
            told, denied = _said(case, suite)
            failed = _silent(first, told) if case.is_bad_example else denied | (first & told)
            if failed:
                wrong.append((suite.folder.name, case.name, sorted(failed)))
    assert wrong == []


def _silent(rules: set[str], told: set[str]) -> set[str]:
    """Return the rules that reported nothing, and did not yield to a rule that did."""
    yields = {rule.id: rule.yields_to for rule in RULES}
    return {rule for rule in rules - told if told.isdisjoint(yields[rule])}


def _said(case: CaseModel, suite: Suite) -> tuple[set[str], set[str]]:
    told, denied = set(), set()
    for decision in answer_of_case(own.request_of_case(case, suite, shipped_policies, OPTIONS)).verdict.decisions:
        if decision.evaluation == "deny":
            rules = {problem.code for problem in decision.problems} or {decision.rule}
            told |= rules
            if ValidationAction.DENY in decision.actions:
                denied |= rules
    return told, denied
