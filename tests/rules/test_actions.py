"""The level of a rule is that of the catalogue or of params, and never above what the binding allows."""

import time

import pytest

from webhook.deadline import Deadline
from webhook.errors import BudgetExceeded
from webhook.rules.actions import (
    EFFECTS,
    LEVELS,
    REPORTED,
    action_for_problem,
    actions_of_param,
    actions_within_binding,
    mistakes_in_param,
)
from webhook.rules.decisions import ValidationAction
from webhook.rules.rule import Rule
from webhook.text.caches import bytes_of_all_caches

DENY, WARN, AUDIT, ADVICE = ValidationAction


def rule(name, level):
    return Rule(id=f"g/{name}", title="T", why="W", source="S", level=level)


CATALOGUE = {each.id: each for each in (rule("a", "deny"), rule("b", "warn"))}


def param(**data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "data": data}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, ["Deny", "Warn"]),
        (param(), ["Deny", "Warn"]),
        ({"data": "text"}, ["Deny", "Warn"]),
        (param(warn="g/a", off=None), ["Warn", "Warn"]),
        (param(off="g/a, g/b"), ["Off", "Off"]),
        (param(audit="g/a", advice="g/b"), ["Audit", "Advice"]),
        (param(audit="g/a", advice="g/a g/b", off="g/a g/b"), ["Audit", "Advice"]),
        (param(deny="g/b\ng/a"), ["Deny", "Deny"]),
        (param(deny="g/b", warn="g/b g/a", off="g/b g/a"), ["Warn", "Deny"]),
    ],
    ids=str,
)
def test_params_change_the_action_of_a_rule(given, expected):
    named = actions_of_param(given, Deadline())
    assert [action_for_problem(name, CATALOGUE[name].level, named) for name in ("g/a", "g/b")] == expected


def test_the_last_source_that_names_a_rule_decides():
    assert action_for_problem("g/a", "deny", {"g/a": "Warn"}, {"g/a": "Off"}) == "Off"
    assert action_for_problem("g/a", "deny", {"g/a": "Warn"}, {"g/b": "Off"}) == "Warn"
    assert action_for_problem("g/a", "audit", {}, {}) == "Audit"


@pytest.mark.parametrize(
    ("decided", "allowed", "expected"),
    [
        ("Deny", (DENY,), (DENY,)),
        ("Deny", (WARN, AUDIT), (WARN, AUDIT)),
        ("Warn", (DENY,), (WARN,)),
        ("Warn", (DENY, AUDIT), (WARN, AUDIT)),
        ("Warn", (DENY, WARN), (WARN,)),
        ("Warn", (AUDIT,), (AUDIT,)),
        ("Audit", (DENY,), (AUDIT,)),
        ("Advice", (DENY, AUDIT), (ADVICE,)),
    ],
    ids=str,
)
def test_no_action_of_a_rule_is_stricter_than_its_binding_allows(decided, allowed, expected):
    assert actions_within_binding(decided, allowed) == expected


def test_every_level_but_off_makes_a_decision():
    assert [effect.action for effect in EFFECTS.values()] == [*REPORTED, "Off"]
    assert LEVELS == ("deny", "warn", "audit", "advice", "off")


def test_unknown_rules_are_reported_with_the_nearest_rule():
    found = param(warn="group/rule group/rul", deny="x")
    assert list(mistakes_in_param(found, {"group/rule"})) == [
        (("data", "deny"), "unknown rule `x`: `claimgate policies rules` lists all rules"),
        (("data", "warn"), "unknown rule `group/rul`: did you mean `group/rule`?"),
    ]


def test_the_renamed_param_ignore_is_reported():
    assert list(mistakes_in_param(param(ignore=""), {})) == [
        (("data", "ignore"), 'unknown list of rules `ignore`: write `"off"`')
    ]
    ((path, message),) = mistakes_in_param(param(false="g/a"), {"g/a"})  # kubectl makes this of `off: g/a`
    assert (path, message) == (
        ("data", "false"),
        'unknown list of rules `false`: write `"off"` in quotes, because YAML reads off as false',
    )
    assert list(mistakes_in_param(None, {})) == list(mistakes_in_param({"data": "text"}, {})) == []


def test_long_lists_are_read_and_not_cached():
    before = bytes_of_all_caches()
    assert actions_of_param(param(warn="g/a " * 100_000), Deadline()) == {"g/a": "Warn"}
    assert bytes_of_all_caches() == before


def test_lists_of_many_updates_are_kept_within_bounds():
    """The time is bounded even if a user changes a list of 100 KB again and again."""
    before = bytes_of_all_caches()
    for number in range(400):
        actions_of_param(param(warn=" ".join(f"g/{number}-{i}" for i in range(300))), Deadline())
    assert bytes_of_all_caches() - before <= 2 << 20


def test_long_lists_ask_for_time():
    with pytest.raises(BudgetExceeded):
        actions_of_param(param(warn="g/b " * 100_000), Deadline(time.monotonic() + 0.01))
