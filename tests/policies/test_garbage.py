"""A review leaves no cycles for the garbage collector, because a collection stops a server for tens of milliseconds."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tests.policies.test_suites import FOLDERS, cases
from webhook.suites.case import Case, run_case


@pytest.fixture
def collected_by_hand() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()
    gc.unfreeze()


def _cycles(case: Case) -> int:
    """Count the cycles of a review. A first review does not count, because the policies of the case compile their
    functions in it.
    """
    run_case(case)
    gc.freeze()  # otherwise each collection would walk the whole process
    run_case(case)
    return gc.collect()


@pytest.mark.usefixtures("collected_by_hand")
def test_no_case_leaves_a_cycle_of_references() -> None:
    asked = [case for folder in FOLDERS for case in cases(folder)][::3]
    assert {case.id: left for case in asked if (left := _cycles(case))} == {}
