"""The module of a rule can be found from its id: ARCHITECTURE.md, "The module of a rule"."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from webhook.facts.subject import SHIPPED, rules_of_package
from webhook.suites.rule_homes import RuleLocator

ROOT = Path(__file__).parents[2]
FACTS = ROOT / "webhook" / "facts"


def places_of_ids() -> dict[str, set[str]]:
    """Return the modules that have an id of a rule as a whole string."""
    places = defaultdict[str, set[str]](set)
    for path in FACTS.rglob("*.py"):
        for rule in re.findall(r'"([a-z0-9-]+/[a-z0-9-]+)"', path.read_text()):
            places[rule].add(path.relative_to(ROOT).as_posix())
    return places


def test_the_id_of_a_rule_is_written_in_its_module_alone() -> None:
    """A search for the id shows the record, and below it the function that yields its problems."""
    homes, places = RuleLocator(), places_of_ids()
    rules = [rule for package in SHIPPED.packages for rule in rules_of_package(package)]
    assert len(rules) > 500
    wrong = {
        rule.id: places[rule.id]
        for rule in rules
        if places[rule.id] != {home.file for home in homes.find_in_checks(rule)}
    }
    assert wrong == {}, "write the id in the record of the rule alone, in the module with the function that finds it"
