"""How long the event loop may work on one review before the review is given to a worker process.

While it works on one, everybody else waits. So a single slow review may take MOST_S; but slow reviews together may take
only a SHARE of the loop's time, and when they took it each gets no more than LEAST_S, which is ten times what an
ordinary review needs. The budget of a server that nobody attacks is always full. Knows the clock, nothing of reviews.
"""

from __future__ import annotations

from time import monotonic
from typing import Final

MOST_S: Final = 0.020
"""A reader of the answer does not notice it, and a probe or another caller waits no longer than for a slow network."""
LEAST_S: Final = 0.003
SHARE: Final = 0.1
_SAVED_S: Final = 5 * MOST_S
"""What a quiet time saves up: five slow reviews in a row."""


class InlineBudget:
    """The seconds that slow reviews may take from the loop now; used by the loop's thread alone."""

    __slots__ = ("_counted_at", "_left_s")

    def __init__(self) -> None:
        self._left_s = _SAVED_S
        self._counted_at = monotonic()

    def allowance(self, now: float) -> float:
        """Seconds that the next review may take, at a moment of the monotonic clock."""
        self._left_s = min(_SAVED_S, self._left_s + (now - self._counted_at) * SHARE)
        self._counted_at = now
        return max(LEAST_S, min(MOST_S, self._left_s))

    def took(self, elapsed_s: float) -> None:
        """Charge a review that was not an ordinary one."""
        if elapsed_s > LEAST_S:
            self._left_s = max(0.0, self._left_s - elapsed_s)
