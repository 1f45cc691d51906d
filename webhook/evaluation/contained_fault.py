"""Turns an unexpected error in one policy into an evaluation error of that policy, under its failurePolicy.

The other policies still speak. Where it failed is logged, never the text of the exception, which may hold a piece of an
object.
"""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Final

from webhook.errors import ClaimgateError, ReviewPaused, fault_locations
from webhook.rules.decisions import EvaluationFault

_PASSED_ON: Final = (ClaimgateError, ReviewPaused, MemoryError, SystemError)
"""Errors that concern more than one policy: raised on purpose, or about the whole process."""


def is_contained(error: Exception) -> bool:
    """Return whether an error concerns one policy alone, so that the others can be evaluated."""
    return not isinstance(error, _PASSED_ON)


def contain_fault(faults: list[EvaluationFault], policy: str, error: Exception) -> str:
    """Add an unexpected error of a policy to the faults of the review, and return the message of its decision."""
    frames = traceback.extract_tb(error.__traceback__)
    groups = [*getattr(error, "__notes__", ())]
    fault = EvaluationFault(
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
