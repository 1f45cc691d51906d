"""What is done about a problem: the catalogue's level, unless a param names the rule."""

import pytest

from webhook.problems.actions import action, chosen, unknown
from webhook.problems.rule import Rule


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
        (param(warn="g/a", ignore=None), ["Warn", "Warn"]),
        (param(ignore="g/a, g/b"), ["Ignore", "Ignore"]),
        (param(deny="g/b\ng/a"), ["Deny", "Deny"]),
        (param(deny="g/b", warn="g/b g/a", ignore="g/b g/a"), ["Warn", "Deny"]),
    ],
    ids=str,
)
def test_params_change_what_is_done(given, expected):
    named = chosen(given)
    assert [action(name, CATALOGUE, named) for name in ("g/a", "g/b")] == expected


def test_unknown_rules_are_told():
    assert list(unknown(param(warn="g/a g/c", deny="x"), CATALOGUE)) == ["g/c", "x"]


def test_long_lists_are_read_and_not_kept():
    assert chosen(param(warn="g/a " * 50_000)) == {"g/a": "Warn"}
