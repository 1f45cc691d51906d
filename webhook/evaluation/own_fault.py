"""A fault of our own while a policy is asked: an evaluation error of that policy, under its failurePolicy.

A review in which something fails that nobody expected is begun again with `faults` in its context, and then the other
policies still speak. Where it failed is kept, never the text of the exception, which may hold a piece of an object.
"""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Final

from webhook.decisions import Fault
from webhook.errors import ClaimgateError, InlineBudgetSpent, places
from webhook.evaluation.request_context import RequestContext

_PASSED_ON: Final = (ClaimgateError, InlineBudgetSpent, MemoryError, SystemError)


def is_contained(error: Exception, context: RequestContext) -> bool:
    """Whether an error is a fault to go on after: neither in the first attempt, nor without memory, nor on purpose."""
    return context.faults is not None and not isinstance(error, _PASSED_ON)


def contained(policy: str, error: Exception, context: RequestContext) -> str:
    """Note a fault of a policy, and say it."""
    assert context.faults is not None
    frames = traceback.extract_tb(error.__traceback__)
    groups = [*getattr(error, "__notes__", ())]
    noted = Fault(
        policy=policy, checks=groups[0] if groups else "", error=type(error).__name__, traceback=tuple(places(frames))
    )
    context.faults.append(noted)
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}"
    what = f"checks `{noted.checks}`" if noted.checks else "evaluation"
    said = f"the policy cannot be asked because its {what} failed ({noted.error} in {place})"
    return f"{said}: report this as a bug of claimgate"
