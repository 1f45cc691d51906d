"""What a caller wants to know of a review besides its verdict. Nothing here changes the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from webhook.evaluation.trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewOptions:
    """`advice`: problems of rules of that level are decisions, too. `trace` is told why policies speak or do not."""

    advice: bool = False
    trace: Trace | None = None


DEFAULT: Final = ReviewOptions()
"""What admission wants."""
