"""A rule that became stricter than in the last release first warned for one release, and CHANGELOG names it."""

from __future__ import annotations

from collections import Counter

import pytest

from tests import stricter_rules
from tests.released_names import CHANGELOG, changes_since, released_version
from tests.stricter_rules import Actions, mistakes, read, shipped_actions, stricter, written

PLACE = ("gpu-limits", "gpu-requests/whole")


def test_no_shipped_rule_is_stricter_than_a_release_allows() -> None:
    released = read(stricter_rules.RECORD.read_text())
    if released is None:
        pytest.skip("nothing was released yet")
    unreleased = changes_since(released_version(), CHANGELOG.read_text())
    assert list(mistakes(released, shipped_actions(), unreleased)) == []


@pytest.mark.parametrize(
    ("before", "now", "said", "expected"),
    [
        ("", "", "", []),
        ("Deny", "Deny", "", []),
        ("Deny", "Warn", "", []),
        ("", "Warn", "- `gpu-requests/whole` warns.", []),
        ("Warn", "Deny", "- `gpu-requests/whole` denies.", []),
        ("Audit", "Warn", "", ["name `gpu-requests/whole` in CHANGELOG.md"]),
        ("Warn", "Deny", "- `gpu-requests` denies.", ["name `gpu-requests/whole` in CHANGELOG.md"]),
        ("", "Deny", "- `gpu-requests/whole` denies.", ["it denies and did nothing in the last release"]),
        ("Audit", "Deny", "- `gpu-requests/whole` denies.", ["it denies and was `Audit` in the last release"]),
        ("", "Deny", "", ["let it warn for one release", "name `gpu-requests/whole` in CHANGELOG.md"]),
    ],
)
def test_a_rule_may_become_stricter_only_in_steps(before: str, now: str, said: str, expected: list[str]) -> None:
    changelog = f"# Changelog\n\n## [Unreleased]\n\n{said}\n\n## [0.1.0]\n\n- `gpu-requests/whole` is new.\n"
    found = list(mistakes(_actions(before), _actions(now), changes_since("0.1.0", changelog)))
    assert len(found) == len(expected)
    assert all(part in one for part, one in zip(expected, found, strict=True))


def _actions(action: str) -> Actions:
    return {PLACE: action} if action else {}


def test_the_actions_of_shipped_rules_match_the_pages() -> None:
    """docs/rules names the level, the param that switches a rule off, and the binding that limits it."""
    done = shipped_actions()
    assert done["gpu-portable-refused", "gpu-portable/all"] == "Deny"
    assert set(Counter(done.values())) == {"Deny", "Warn"}
    rules = {
        rule.id: rule for policy in stricter_rules.shipped_policies().policies for rule in policy.catalogue.values()
    }
    assert not [rule for _, rule in done if rule in rules and rules[rule].level in ("off", "advice")]
    assert {done[place] for place in done if place[1] in rules and rules[place[1]].level == "warn"} == {"Warn"}


def test_a_written_record_is_read_unchanged() -> None:
    done = shipped_actions()
    record = read(written("0.1.0", done))
    assert record == done
    assert list(stricter(done, record)) == []
    assert read(stricter_rules.NOTHING_RELEASED) is None
