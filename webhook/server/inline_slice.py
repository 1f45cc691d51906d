"""How long one review may run on the event loop before it is given to a worker process.

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
"""For tenants that used little of late, while nobody waits. What a review made until then is freed, and its body was
decoded before: some 20 ms in all, which nobody notices who waits for an answer over a network."""
HEAVY_S: Final = 0.006
"""For the others: ten times an ordinary review, so that those of a busy controller stay on the loop."""
WARMING_S: Final = 1.0
"""While the functions of policies are compiled: a worker would compile them again for itself alone."""
SMALL_BYTES: Final = 16 * 1024
"""Reviews up to this size are always tried on the loop, since a worker costs the loop more than most of them do. It is
twice an ordinary Pod."""
_UNNOTICED_S: Final = 0.0001
"""A call that takes no longer, even at worst, is not worth a look at the clock."""
_REMEMBERED_S: Final = 30.0
"""Then such a review is tried on the loop again: half a thousandth of its time for each tenant."""


class InlineSlice(Deadline):
    """The time of one review on the loop, measured from its creation; a deadline of evaluation once it was allowed."""

    __slots__ = ("_begun", "_end", "_thread_end")

    def __init__(self) -> None:
        super().__init__(inf, InlineBudgetSpent)
        self._begun = thread_time()
        self._end = self._thread_end = inf

    def allow(self, seconds: float, end: float) -> None:
        """Let evaluation run for so long from now on, and never past a moment of the monotonic clock."""
        self.at = monotonic() + seconds
        self._thread_end = thread_time() + seconds
        self._end = end

    def spent(self) -> float:
        """Processor time that the slice has used until now, in seconds."""
        return thread_time() - self._begun

    def look(self) -> None:
        """Read the clock now, and that of the thread where the first one says that it may be too late.

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

    def look_ahead(self, seconds: float) -> None:
        """Read both clocks before one call that takes so long and that nothing interrupts.

        Raises:
            InlineBudgetSpent: the call would use up more time than there is, or end too late.
        """
        self.look()
        if thread_time() + seconds > self._thread_end or monotonic() + seconds > self._end:
            raise InlineBudgetSpent

    def may_take(self, seconds: float) -> None:
        """Read the clock before one call that may take so long, and leave the loop where that is too long.

        Raises:
            InlineBudgetSpent: the time may not be enough.
        """
        if seconds > _UNNOTICED_S:
            self.look_ahead(seconds)


class Overruns:
    """Whose reviews used up their slice of late, and with how large a body: the next of that size go to a worker.

    One overrun says little: any process is interrupted or collects garbage now and then, in one of some hundred reviews
    that take half of their slice. So the next one has to overrun, too, before half a minute of forks begins.
    """

    __slots__ = ("_overruns",)

    def __init__(self) -> None:
        self._overruns: BoundedMap[Tenant, _Overrun] = BoundedMap()

    def add(self, tenant: Tenant, size: int, now: float) -> None:
        """A review of so many bytes used up its slice, at a moment of the monotonic clock."""
        if size <= SMALL_BYTES or self.expects(tenant, size, now):
            return
        last = self._overruns.get(tenant)
        is_second = last is not None and now - last.at < _REMEMBERED_S
        self._overruns.set(tenant, _Overrun(size, now, is_expected=is_second))

    def fitted(self, tenant: Tenant, size: int) -> None:
        """A review of so many bytes ended within its slice: an overrun before it, of one no larger, was by chance."""
        last = self._overruns.get(tenant) if size > SMALL_BYTES else None
        if last is not None and not last.is_expected and size >= last.size:
            self._overruns.discard(tenant)

    def evaluated(self, tenant: Tenant, seconds: float) -> None:
        """A worker needed so long for a review; after a quick one, the next is tried on the loop."""
        last = self._overruns.get(tenant)
        if last is not None and last.is_expected and seconds < HEAVY_S / 2:
            self._overruns.discard(tenant)

    def expects(self, tenant: Tenant, size: int, now: float) -> bool:
        """Whether a review of so many bytes would most likely use up its slice, too."""
        last = self._overruns.get(tenant) if size > SMALL_BYTES else None
        return last is not None and last.is_expected and size >= last.size and now - last.at < _REMEMBERED_S


class _Overrun(NamedTuple):
    """A review of so many bytes that used up its slice, when, and whether the next one is expected to."""

    size: int
    at: float
    is_expected: bool
