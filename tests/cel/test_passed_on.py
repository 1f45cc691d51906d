"""An error that no operator absorbs is raised again, without a reference cycle between the exception and its frame."""

from __future__ import annotations

import contextlib
import gc
import weakref

import pytest

from webhook.cel.compile.failure import FailurePlaces
from webhook.cel.library.refusal import panic_for_failed_int, panic_for_failed_list
from webhook.errors import BudgetExceeded

PASSED_ON = {
    "an operand": FailurePlaces([]).cost_to_refund,
    "a list": panic_for_failed_list,
    "an int": panic_for_failed_int,
}


@pytest.mark.parametrize("take", PASSED_ON.values(), ids=PASSED_ON)
def test_a_caught_error_leaves_no_references(take: object) -> None:
    gc.disable()
    try:
        made = BudgetExceeded("operation interrupted")
        kept = weakref.ref(made)
        with contextlib.suppress(BudgetExceeded):
            take(made)  # type: ignore[operator]
        del made
        assert kept() is None
    finally:
        gc.enable()
