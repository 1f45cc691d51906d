"""Every shipped policy: its suite passes and is complete, and the policy says what it is for."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from webhook import shipped
from webhook.policy.load import Options, load
from webhook.suites import find
from webhook.suites.case import Case, check
from webhook.suites.files import Suite
from webhook.workloads.table import load as load_table

POLICIES = Path(shipped.policies())
FOLDERS = sorted(path.parent for path in POLICIES.glob("*/policy.yaml"))
HOW = Options(table=load_table())
CASES = [case for folder in FOLDERS for case in find.read(Suite(file=folder / "suite.yaml", root=folder), HOW)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_case(case: Case) -> None:
    assert check(case).why == ""


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_suite_has_every_outcome(folder: Path) -> None:
    """One allowed, one denied or warned of, one that cannot be evaluated, one that is not looked at."""
    expected = [case["expect"] for case in yaml.safe_load((folder / "suite.yaml").read_text())["cases"]]
    assert any(e["allowed"] and not e.get("warnings") for e in expected)
    assert any(not e["allowed"] or e.get("warnings") for e in expected)
    assert any(e.get("matched") is False for e in expected)
    names = [case["name"] for case in yaml.safe_load((folder / "suite.yaml").read_text())["cases"]]
    assert any(e.get("unknown") or e.get("errors") for e in expected) or any(
        "cannot be evaluated" in name for name in names
    )


def test_every_policy_compiles_and_is_bound_and_documented() -> None:
    policies = load([POLICIES], HOW).policies
    assert policies
    for policy in policies:
        assert policy.bindings, policy.name
        assert policy.category, policy.name
        assert policy.docs.startswith("https://"), policy.name
