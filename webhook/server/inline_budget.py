"""How long the event loop may work on one review before the review is given to a worker process.

While it works on one, everybody else waits. So a single slow review may take MOST_S; but slow reviews together may take
only a SHARE of the loop's time, and when they took it each gets no more than LEAST_S, which is ten times what an
ordinary review needs. The budget of a server that nobody attacks is always full.

What counts is the processor's time of this thread: on a busy node a thread that waits for its turn has not worked, and
a worker would get its turn later still. Knows the clocks, nothing of reviews.
"""

from __future__ import annotations

from time import monotonic, thread_time
from typing import Final

from webhook.deadline import STEP, Deadline
from webhook.errors import InlineBudgetSpent

MOST_S: Final = 0.020
"""A reader of the answer does not notice it, and a probe or another caller waits no longer than for a slow network."""
LEAST_S: Final = 0.003
SHARE: Final = 0.1
WARMING_S: Final = 1.0
"""A worker would have to make the same functions, and throw them away."""
_SAVED_S: Final = 5 * MOST_S
"""What a quiet time saves up: five slow reviews in a row."""


class InlineBudget:
    """The seconds that slow reviews may take from the loop now; used by the loop's thread alone.

    Attributes:
        is_warming: the server has just started, and the first review of a policy also makes its functions.
    """

    __slots__ = ("_counted_at", "_left_s", "is_warming")

    def __init__(self) -> None:
        self.is_warming = False
        self._left_s = _SAVED_S
        self._counted_at = monotonic()

    def allowance(self, now: float) -> float:
        """Seconds that the next review may take, at a moment of the monotonic clock."""
        self._left_s = min(_SAVED_S, self._left_s + (now - self._counted_at) * SHARE)
        self._counted_at = now
        if self.is_warming:
            return WARMING_S
        return max(LEAST_S, min(MOST_S, self._left_s))

    def took(self, elapsed_s: float) -> None:
        """Charge a review, unless it was an ordinary one."""
        if elapsed_s > LEAST_S:
            self._left_s = max(0.0, self._left_s - elapsed_s)


class InlineDeadline(Deadline):
    """Until when a review may run on the event loop: so much of the thread's own time, and never past its deadline."""

    __slots__ = ("_end", "_thread_end")

    def __init__(self, now: float, allowance_s: float, end: float) -> None:
        """Begin.

        Args:
            now: the monotonic clock.
            allowance_s: seconds of this thread's processor time.
            end: the moment of the monotonic clock at which it is too late in any case.
        """
        super().__init__(now + allowance_s, InlineBudgetSpent)
        self._thread_end = thread_time() + allowance_s
        self._end = end

    def look(self) -> None:
        """Read the clock now, and that of the thread where the first one says that it may be too late.

        Raises:
            InlineBudgetSpent: the allowance is used up, or it is too late.
        """
        self.left = STEP
        now = monotonic()
        if now <= self.at:
            return
        rest = self._thread_end - thread_time()
        if rest <= 0 or now > self._end:
            raise InlineBudgetSpent
        self.at = now + rest

    def used(self, allowance_s: float) -> float:
        """How much of the thread's time has been used since the beginning."""
        return thread_time() - self._thread_end + allowance_s
