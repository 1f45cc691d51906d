"""What a caller wants to know of a review besides its verdict. Nothing here changes the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewOptions:
    """`advice`: problems of rules whose level is advice are decisions, too."""

    advice: bool = False


DEFAULT: Final = ReviewOptions()
"""What admission wants."""
