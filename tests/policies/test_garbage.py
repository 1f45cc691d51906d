"""A review leaves nothing that only the collector of garbage finds: collecting stops a server for tens of milliseconds."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tests.policies.test_suites import FOLDERS, cases
from webhook.suites.case import Case, run_case


@pytest.fixture
def collected_by_hand() -> Iterator[None]:
    """Nothing is collected but by `gc.collect`."""
    gc.disable()
    yield
    gc.enable()
    gc.unfreeze()


def _cycles(case: Case) -> int:
    """Objects in cycles of references that a case leaves, once its policies have made their functions."""
    run_case(case)
    gc.freeze()  # or each collection would walk the whole process
    run_case(case)
    return gc.collect()


@pytest.mark.usefixtures("collected_by_hand")
def test_no_case_leaves_a_cycle_of_references() -> None:
    asked = [case for folder in FOLDERS for case in cases(folder)][::3]
    assert {case.id: left for case in asked if (left := _cycles(case))} == {}
