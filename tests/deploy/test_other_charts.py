"""docs/chart-values.md has each value of three other charts, and names only existing values of claimgate's chart."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.yamldata import document

ROOT = Path(__file__).parents[2]
CHARTS = document(ROOT / "tests" / "data" / "charts" / "values.yaml")
_QUOTED = re.compile(r"`([^`]+)`")


def _named(column: int) -> list[str]:
    lines = (ROOT / "docs" / "chart-values.md").read_text().splitlines()
    rows = [line.split("|") for line in lines if line.startswith("| ")]
    return [name for row in rows for name in _QUOTED.findall(row[column])]


def _is_named(value: str, names: list[str]) -> bool:
    """Return whether the table names a value. The table may have only its last part, or its beginning or end with
    `…`.
    """
    last = value.rpartition(".")[2]
    return any(
        name in (value, last)
        or (name.endswith("…") and name != "…" and (value.startswith(name[:-1]) or last.startswith(name[:-1])))
        or (name.startswith("…") and value.endswith(name[1:]))
        for name in names
    )


@pytest.mark.parametrize(("column", "chart"), list(enumerate(CHARTS, start=2)))
def test_every_value_of_another_chart_is_in_the_table(column: int, chart: str) -> None:
    names = _named(column)
    missing = [value for value in CHARTS[chart]["values"] if not _is_named(value, names)]
    assert missing == [], "add them to a row of docs/chart-values.md, or a row that says why there is no such value"


def test_every_value_that_the_table_names_exists() -> None:
    """Each name in claimgate's column is a value of the chart, a flag in a value, or in the list below."""
    values = document(ROOT / "deploy" / "chart" / "values.yaml")
    named = {name.partition(":")[0] for name in _named(5)}
    other = {name for name in named if not _has_value(values, name)}
    assert other == {
        *("automountServiceAccountToken", "claimgate webhook-config --url", "claimgate-grantable", "claimgate.dev"),
        *("helm template", "helm test", "--kube-version"),
    }


def _has_value(values: Any, name: str) -> bool:
    first, _, rest = name.partition(".")
    if not isinstance(values, dict) or first not in values:
        return False
    return not rest or values[first] == {} or _has_value(values[first], rest)
