"""A fault of our own while a policy is asked: an evaluation error of that policy, under its failurePolicy.

The other policies still speak. Where it failed is logged, never the text of the exception, which may hold a piece of an
object.
"""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Final

from webhook.decisions import Fault
from webhook.errors import ClaimgateError, ReviewPaused, fault_locations

_PASSED_ON: Final = (ClaimgateError, ReviewPaused, MemoryError, SystemError)
"""Errors that are no fault of one policy: with a meaning of their own, on purpose, or of the whole process."""


def is_contained(error: Exception) -> bool:
    """Whether an error is a fault of one policy, after which the others are asked."""
    return not isinstance(error, _PASSED_ON)


def contain_fault(faults: list[Fault], policy: str, error: Exception) -> str:
    """Note among the faults of a review what failed while a policy was asked, and give the text of its decision."""
    frames = traceback.extract_tb(error.__traceback__)
    groups = [*getattr(error, "__notes__", ())]
    fault = Fault(
        policy=policy,
        checks=groups[0] if groups else "",
        error=type(error).__name__,
        traceback=tuple(fault_locations(frames)),
    )
    faults.append(fault)
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}"
    failed = f"checks `{fault.checks}`" if fault.checks else "evaluation"
    text = f"the policy cannot be asked because its {failed} failed ({fault.error} in {place})"
    return f"{text}: report this as a bug of claimgate"
