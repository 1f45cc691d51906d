"""Every shipped rule has one declaration, a bad and a good example, and a section in docs/rules."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from tests.literals import OPTIONS, shipped_policies
from tests.rows import all_rows
from webhook.facts.subject import SHIPPED
from webhook.input import shipped
from webhook.rules.catalogue import RULES_OF_FILES
from webhook.suites.examples import Pair, examples
from webhook.suites.rule_reference import rule_pages, rules_of_policies

PAGES = Path(__file__).parents[2] / "docs" / "rules"
FOLDER = Path(shipped.policies_folder())
POLICIES = shipped_policies().policies
RULES = rules_of_policies(POLICIES)
TITLE = re.compile(r"^## (\S+)$", re.MULTILINE)
LINK = re.compile(r"\]\(([\w-]+\.md)(#[\w-]*)?\)")


@cache
def shown() -> Mapping[str, Pair]:
    return examples([FOLDER], OPTIONS)


def test_the_pages_are_up_to_date(request: pytest.FixtureRequest) -> None:
    found = rule_pages(POLICIES, shown(), RULES_OF_FILES.values())
    if request.config.getoption("--update-golden"):
        for old in PAGES.iterdir():
            old.unlink()
        for name, page in found.items():
            (PAGES / name).write_text(page)
    assert {path.name: path.read_text() for path in PAGES.iterdir()} == dict(found), (
        "the rules or their examples changed: run make docs"
    )


def test_a_page_is_small_enough_to_be_rendered() -> None:
    """GitHub shows Markdown of more than 512 KB as plain text."""
    assert max(path.stat().st_size for path in PAGES.iterdir()) < 400_000


def test_every_link_between_pages_leads_somewhere() -> None:
    ids = {
        path.name: {f"#{each.replace('/', '')}" for each in TITLE.findall(path.read_text())} for path in PAGES.iterdir()
    }
    links = [link for path in PAGES.iterdir() for link in LINK.findall(path.read_text())]
    assert len(links) > 2 * len(RULES)
    assert [(file, place) for file, place in links if place and place not in ids[file]] == []


@all_rows("rule", RULES)
def test_a_rule_has_a_bad_and_a_good_example(rule: str) -> None:
    pair = shown().get(rule)
    broken, kept = (pair.bad, pair.good) if pair is not None else (None, None)
    assert broken is not None, (
        f"no case shows {rule} broken: write `rule: {rule}` into a case that denies or warns, in the suite.yaml of a "
        "policy with its group (grep -l GROUP policies/*/policy.yaml), then run make docs"
    )
    assert kept is not None, f"no case shows {rule} kept: write `rule: {rule}` into a case that allows"
    assert broken.messages


@all_rows("rule", RULES)
def test_the_good_example_has_the_kind_of_the_bad_one(rule: str) -> None:
    """A reader compares the two objects, so the good one is the bad one with the fixed field."""
    bad, good = shown()[rule].bad, shown()[rule].good
    assert bad is not None
    assert good is not None
    assert good.object["kind"] == bad.object["kind"], (
        f"the page of {rule} shows `{bad.name}` and `{good.name}`: copy the first case, fix its field, write "
        f"`rule: {rule}` into the copy, and remove this rule from cases before the copy"
    )


def test_an_example_belongs_to_a_rule() -> None:
    assert set(shown()) <= set(RULES)


def test_a_rule_is_declared_once() -> None:
    """A catalogue or a rules.yaml refuses a repeated id. Two different files could still share an id."""
    groups = [group for package in SHIPPED.packages for group in package.groups]
    folders = {(Path(policy.file).parent.name, rule.group) for policy in POLICIES for rule in policy.named}
    assert [name for name, times in Counter([*groups, *(group for _, group in folders)]).items() if times > 1] == []


def test_a_title_says_what_is_wrong() -> None:
    """As in a finding, a title has no full stop, and fits in one line of a report."""
    titles = {name: entry.rule.title for name, entry in RULES.items()}
    assert {name: title for name, title in titles.items() if title.endswith(".") or len(title) > 90} == {}


def test_two_rules_have_two_titles() -> None:
    """Reports and lists of rules show titles without the objects, so a title names the kind or the field."""
    times = Counter(entry.rule.title for entry in RULES.values())
    assert [title for title, count in times.items() if count > 1] == [], "name the kind or the field in each title"


def test_a_fact_is_declared_once() -> None:
    assert [name for name, times in Counter(SHIPPED.fact_names).items() if times > 1] == []


def test_every_group_of_checks_is_used_by_a_policy() -> None:
    used = {group for policy in POLICIES for group in policy.checks}
    assert set(SHIPPED.check_groups) - used == set(), (
        "no policy has these groups: add policies/NAME/policy.yaml with `claimgate.dev/checks: GROUP`, binding.yaml and "
        "suite.yaml, like policies/job-set"
    )
    assert used - set(SHIPPED.check_groups) == set(), (
        "no package has these groups: add each to `groups` of a row in webhook/facts/packages.py"
    )
