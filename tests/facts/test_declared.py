"""declared.json agrees with checks, facts and rules, so a start need not import their modules."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from tests.golden import ROOT, compare_with_golden_file
from webhook.facts.declared import CheckScope, shipped_declarations
from webhook.facts.subject import SHIPPED, FactRegistry, rules_of_package

MODULES = FactRegistry(SHIPPED.packages)
"""The shipped packages, without written declarations"""


def test_the_file_agrees_with_the_modules(pytestconfig: pytest.Config) -> None:
    groups = {
        group: {
            "checks": [_scope(each) for each in MODULES.checks(group)],
            "lookups": sorted(set(MODULES.kinds_looked_up_by_group(group))),
        }
        for group in MODULES.check_groups
    }
    facts = {name: sorted(set(MODULES.kinds_looked_up_by_fact(name))) for name in MODULES.fact_names}
    rules: dict[str, list[str]] = {}
    for package in MODULES.packages:
        rules.setdefault(package.module, []).extend(rule.id for rule in rules_of_package(package))
    lines, rows = _lines_of_json(groups), _lines_of_json(rules)
    text = f'{{"groups": {{\n{lines}\n}},\n"facts": {json.dumps(facts)},\n"rules": {{\n{rows}\n}}}}\n'
    compare_with_golden_file(ROOT / "webhook/facts/declared.json", text, pytestconfig)
    shipped_declarations.cache_clear()  # the file may have been written a moment ago


def _lines_of_json(values: Mapping[str, object]) -> str:
    """Return JSON with one line for each declaration, so a change of a declaration changes one line."""
    return ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in values.items())


def _scope(scope: CheckScope) -> dict[str, object]:
    return {
        "kinds": sorted(scope.kinds),
        "other_than": sorted(scope.other_than),
        "of_deletions": scope.of_deletions,
        "of_pods_with": sorted(scope.of_pods_with),
    }


def test_the_file_answers_like_the_modules() -> None:
    kinds = {kind for group in MODULES.check_groups for check in MODULES.checks(group) for kind in check.kinds}
    for kind in sorted(kinds | {("", "Pod"), ("", "ConfigMap")}):
        for is_deleted in (False, True):
            told = SHIPPED.checks_of_kind(kind, is_deleted=is_deleted)
            read = MODULES.checks_of_kind(kind, is_deleted=is_deleted)
            for group in MODULES.check_groups:
                assert told[group] == read[group]
                assert told.pod_parts_that_checks_need((group,)) == read.pod_parts_that_checks_need((group,))
    everything = MODULES.check_groups
    for groups in (everything, *((group,) for group in everything)):
        assert [*SHIPPED.rule_catalogue_of_groups(groups)] == [*MODULES.rule_catalogue_of_groups(groups)]
