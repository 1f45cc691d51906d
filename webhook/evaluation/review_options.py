"""What a caller wants to know of a review besides the verdict of an admission."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from webhook.evaluation.trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewOptions:
    """`advice`: problems of rules of that level are decisions, too. `trace` is told why policies speak or do not.

    `is_stored`: the object is in the cluster, as the view has it, although it is reviewed as if it were created.
    """

    advice: bool = False
    trace: Trace | None = None
    is_stored: bool = False


DEFAULT: Final = ReviewOptions()
"""What admission wants."""
