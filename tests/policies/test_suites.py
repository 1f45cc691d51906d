"""The suite of every shipped policy passes and is complete, and the policy has a description."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tests.literals import OPTIONS, shipped_policies
from tests.yamldata import document
from webhook.input import shipped
from webhook.suites import find
from webhook.suites.case import Case, run_case
from webhook.suites.files import Suite

POLICIES = Path(shipped.policies_folder())
FOLDERS = sorted(path.parent for path in POLICIES.glob("*/policy.yaml"))


@cache
def cases(folder: Path) -> tuple[Case, ...]:
    return tuple(find.read_suite(Suite(file=folder / "suite.yaml", root=folder), OPTIONS))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_suite_of_a_policy_passes(folder: Path) -> None:
    assert cases(folder)
    failed = {case.id: why for case in cases(folder) if (why := run_case(case).why)}
    assert failed == {}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_suite_has_every_outcome(folder: Path) -> None:
    """Cases are allowed, denied or warned about, cannot be evaluated, or do not match."""
    suite = document(folder / "suite.yaml")["cases"]
    expected = [case["expect"] for case in suite]
    assert any(e["allowed"] and not e.get("warnings") for e in expected)
    assert any(not e["allowed"] or e.get("warnings") for e in expected)
    assert any(e.get("matched") is False for e in expected)
    names = [case["name"] for case in suite]
    assert any(e.get("unknown") or e.get("errors") for e in expected) or any(
        "cannot be evaluated" in name for name in names
    )


def test_every_policy_compiles_and_is_bound_and_documented() -> None:
    policies = shipped_policies().policies
    assert policies
    for policy in policies:
        assert policy.bindings, policy.name
        assert policy.category, policy.name
        assert policy.docs.startswith("https://"), policy.name
