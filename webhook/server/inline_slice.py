"""How long one review may run on the event loop before it moves to a worker process.

What counts is the processor's time of this thread: on a busy node a thread that waits for the processor has not worked,
and a worker would wait longer still.
"""

from __future__ import annotations

from math import inf
from time import monotonic, thread_time
from typing import Final, NamedTuple

from webhook.deadline import STEP, Deadline
from webhook.errors import InlineBudgetSpent
from webhook.server.bounded_map import BoundedMap
from webhook.server.tenants import Tenant

LIGHT_S: Final = 0.010
"""Seconds for tenants that used little recently, while nobody waits. Decoding and cleaning up come on top: some 20 ms
in all, which nobody notices who waits for an answer over a network.
"""
HEAVY_S: Final = 0.006
"""Seconds for all other tenants: ten times an ordinary review, so that a busy controller's reviews stay on the loop."""
WARMING_S: Final = 1.0
"""Seconds while policies are compiled: a worker would compile them again for itself alone."""
SMALL_BYTES: Final = 16 * 1024
"""Reviews up to this size are always tried on the loop, since a worker costs the loop more than most of them do. It is
twice an ordinary Pod."""
_UNNOTICED_S: Final = 0.0001
"""A call that never takes longer than this is made without reading the clock first."""
_REMEMBERED_S: Final = 30.0
"""Seconds after an overrun until such a review is tried on the loop again."""


class InlineTimeSlice(Deadline):
    """The processor time of one review on the loop, counted from its creation; after `allow` also a deadline."""

    __slots__ = ("_begun", "_end", "_thread_end")

    def __init__(self) -> None:
        super().__init__(inf, InlineBudgetSpent)
        self._begun = thread_time()
        self._end = self._thread_end = inf

    def limit_evaluation(self, seconds: float, end: float) -> None:
        """Let evaluation run for `seconds` from now, but not beyond `end` on the monotonic clock."""
        self.at = monotonic() + seconds
        self._thread_end = thread_time() + seconds
        self._end = end

    def spent(self) -> float:
        """Return the processor seconds that the review has used so far."""
        return thread_time() - self._begun

    def check_clock(self) -> None:
        """Read the monotonic clock, and the thread's clock when the first one has passed the limit.

        Raises:
            InlineBudgetSpent: the time is used up, or it is too late.
        """
        self.left = STEP
        now = monotonic()
        if now <= self.at:
            return
        rest = self._thread_end - thread_time()
        if rest <= 0 or now > self._end:
            raise InlineBudgetSpent
        self.at = now + rest

    def require_time_for_call(self, seconds: float) -> None:
        """Read both clocks before a call that takes `seconds` and cannot be interrupted; no such call may be longer
        than HEAVY_S, since an estimate may be half of what a busy machine takes.

        Raises:
            InlineBudgetSpent: the call is too long, would use up more time than there is, or end too late.
        """
        if seconds > HEAVY_S:
            raise InlineBudgetSpent
        self._require_time(seconds)

    def _require_time(self, seconds: float) -> None:
        self.check_clock()
        if thread_time() + seconds > self._thread_end or monotonic() + seconds > self._end:
            raise InlineBudgetSpent

    def check_clock_before_slow_call(self, seconds: float) -> None:
        """Read both clocks before a call that may take `seconds`, unless that is too short to matter.

        Raises:
            InlineBudgetSpent: the time may not be enough.
        """
        if seconds > _UNNOTICED_S:
            self._require_time(seconds)


class Overruns:
    """Remembers which tenants' reviews overran their slice and how large they were, so that the next goes to a worker.

    One overrun says little: any process is interrupted or collects garbage now and then, in one of some hundred reviews
    that take half of their slice. So the next one has to overrun, too, before half a minute of forks begins.
    """

    __slots__ = ("_overruns",)

    def __init__(self) -> None:
        self._overruns: BoundedMap[Tenant, _Overrun] = BoundedMap()

    def add(self, tenant: Tenant, size: int, now: float) -> None:
        """Note that a review of `size` bytes overran its slice; small reviews are not noted."""
        if size <= SMALL_BYTES or self.expects(tenant, size, now):
            return
        last = self._overruns.get(tenant)
        is_second = last is not None and now - last.at < _REMEMBERED_S
        self._overruns.set(tenant, _Overrun(size, now, is_expected=is_second))

    def record_review_in_time(self, tenant: Tenant, size: int) -> None:
        """Note that a review of `size` bytes ended in time, and forget a single overrun of a review no larger."""
        last = self._overruns.get(tenant) if size > SMALL_BYTES else None
        if last is not None and not last.is_expected and size >= last.size:
            self._overruns.discard(tenant)

    def record_worker_time(self, tenant: Tenant, seconds: float) -> None:
        """Note how long a worker took for a review, and forget the overruns after a quick one."""
        last = self._overruns.get(tenant)
        if last is not None and last.is_expected and seconds < HEAVY_S / 2:
            self._overruns.discard(tenant)

    def expects(self, tenant: Tenant, size: int, now: float) -> bool:
        """Return whether a review of `size` bytes would probably overrun its slice.

        One half as large may, too. Otherwise reviews that are each a little smaller would all be tried.
        """
        last = self._overruns.get(tenant) if size > SMALL_BYTES else None
        return last is not None and last.is_expected and 2 * size >= last.size and now - last.at < _REMEMBERED_S


class _Overrun(NamedTuple):
    """The last overrun: the size of the review, when it was, and whether the next such review is expected to
    overrun.
    """

    size: int
    at: float
    is_expected: bool
