"""What is noise in more than half of all cases is advice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.precision.__main__ import folders_in, spoken, table
from tests.precision.judged import Judged, judged
from webhook.facts.registry import SHIPPED

RULES = judged()
LEVELS = SHIPPED.catalogue(SHIPPED.groups)


@pytest.mark.parametrize(("rule", "known"), RULES.items(), ids=RULES)
def test_a_rule_that_is_seldom_useful_is_advice_or_has_changed(rule: str, known: Judged) -> None:
    if not known.is_useful and not known.changed:
        assert LEVELS[rule].level in ("advice", "off")


def test_most_of_what_was_useful_is_still_told_without_advice() -> None:
    told = sum(known.useful for rule, known in RULES.items() if LEVELS[rule].level in ("deny", "warn"))
    assert told >= 105


def test_the_table_counts_what_rules_say_of_each_folder_alone(tmp_path: Path) -> None:
    claim = "apiVersion: resource.k8s.io/v1beta1\nkind: ResourceClaim\nmetadata: {name: c}\nspec: {devices: {requests: []}}\n"
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "claim.yaml").write_text(claim)
    first, *lines = table(spoken(folders_in([tmp_path])), is_verbose=True)
    assert first.split() == ["times", "told", "as", "level", "useful/noise/false", "rule"]
    assert any(line.split() == ["2", "warn", "warn", "19/0/0", "resource-claims/deprecated-version"] for line in lines)
    assert any(line.strip().startswith("two/claim.yaml:1: apiVersion: ") for line in lines)
