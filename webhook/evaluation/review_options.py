"""How a caller wants a review to be done, and what it wants to know besides the verdict of an admission."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from webhook.evaluation.trace import Trace

EnforcementAction: TypeAlias = Literal["deny", "warn", "audit"]
"""The most that a failure does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewOptions:
    """`advice`: problems of rules of that level are decisions, too. `trace` is told why policies speak or do not.

    `is_stored`: the object is in the cluster, as the view has it, although it is reviewed as if it were created.
    `enforcement_action`: the most that a failure does; with `audit`, nothing is changed either.
    """

    advice: bool = False
    trace: Trace | None = None
    is_stored: bool = False
    enforcement_action: EnforcementAction = "deny"


DEFAULT: Final = ReviewOptions()
"""What admission wants."""
