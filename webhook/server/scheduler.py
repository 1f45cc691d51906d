"""Decides what may run on the event loop now, for how long, and in which order other work waits.

Everything that costs the loop asks here first: reviews, pages, TLS handshakes, the start of a worker. On an idle loop,
everything runs at once. Otherwise the loop works in short rounds between two polls of the sockets, and the tenants with
the least recent use are next. A review has a slice of the loop before it moves to a worker. The slice is processor time
of this thread, so waiting for a busy processor does not count. docs/scheduling.md says what is promised.
"""

from __future__ import annotations

import asyncio
from math import inf
from time import monotonic, thread_time
from typing import Final, NamedTuple

from webhook.deadline import STEP, Deadline
from webhook.errors import InlineBudgetSpent
from webhook.server.fair_queue import FairQueue
from webhook.server.usage import BoundedMap, Tenant, Usage

LIGHT_S: Final = 0.010
"""Seconds for light tenants while no other tenants wait. Decoding and cleaning up add time, about 20 ms in all, which a
client on a network does not notice.
"""
HEAVY_S: Final = 0.006
"""Seconds for all other tenants: ten ordinary reviews, so that a busy controller's reviews stay on the loop."""
WARMING_S: Final = 1.0
"""Seconds while policies are compiled. A worker would compile the policies again for itself."""
SMALL_BYTES: Final = 16 * 1024
"""Reviews up to this size, twice an ordinary Pod, are tried on the loop first while the loop has time. A worker costs
the loop more than most reviews of this size.
"""
_EXPECTED: Final = 2
"""Overruns in a row until a tenant's next review starts in a worker."""
_UNNOTICED_S: Final = 0.0001
"""A call that is always shorter does not read the clock first."""
_REMEMBERED_S: Final = 30.0
"""Seconds after an overrun until a similar review is tried on the loop again."""


class InlineTimeSlice(Deadline):
    """The processor time of one review on the event loop; after `limit_evaluation` also a deadline."""

    __slots__ = ("_begun", "_end", "_thread_end")

    def __init__(self) -> None:
        super().__init__(inf, InlineBudgetSpent)
        self._begun = thread_time()
        self._end = self._thread_end = inf

    def limit_evaluation(self, seconds: float, end: float) -> None:
        """Let evaluation use `seconds` of the processor from now on, at most until `end` on the monotonic clock."""
        self.at = min(monotonic() + seconds, end)
        self._thread_end = thread_time() + seconds
        self._end = end

    def spent(self) -> float:
        """Return the processor seconds that the review has used."""
        return thread_time() - self._begun

    def check_clock(self) -> None:
        """Read the monotonic clock; beyond its limit, also read the thread's clock.

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
        self.at = min(now + rest, self._end)

    def require_time_for_call(self, seconds: float) -> None:
        """Read both clocks before a call that takes `seconds` and cannot be interrupted.

        A call longer than HEAVY_S is refused, because a call may take twice its estimate on a busy machine.

        Raises:
            InlineBudgetSpent: the call is too long, needs more time than is left, or would end too late.
        """
        if seconds > HEAVY_S:
            raise InlineBudgetSpent
        self._require_time(seconds)

    def _require_time(self, seconds: float) -> None:
        self.check_clock()
        if thread_time() + seconds > self._thread_end or monotonic() + seconds > self._end:
            raise InlineBudgetSpent

    def check_clock_before_slow_call(self, seconds: float) -> None:
        """Read both clocks before a call that may take `seconds`, unless the call is too short to matter.

        Raises:
            InlineBudgetSpent: the time may not be enough.
        """
        if seconds > _UNNOTICED_S:
            self._require_time(seconds)


class Overruns:
    """Remembers the tenants with reviews that overran their slice, to start their next reviews in a worker.

    One overrun may be chance: the process is interrupted, or collects garbage. So workers get the reviews only after
    several overruns in a row, and for half a minute. A small review takes long if it names large objects.
    """

    __slots__ = ("_overruns",)

    def __init__(self) -> None:
        self._overruns: BoundedMap[Tenant, _Overrun] = BoundedMap()

    def add(self, tenant: Tenant, size: int, now: float) -> None:
        """Note that a review of `size` bytes overran its slice."""
        if self.expects(tenant, size, now):
            return
        last = self._overruns.get(tenant)
        before = last.in_a_row if last is not None and now - last.at < _REMEMBERED_S else 0
        self._overruns.set(tenant, _Overrun(size, now, before + 1))

    def record_review_in_time(self, tenant: Tenant, size: int) -> None:
        """Note that a review of `size` bytes ended in time.

        Forget an overrun of at most this size, unless the tenant's next reviews start in a worker.
        """
        last = self._overruns.get(tenant)
        if last is not None and not last.is_expected and size >= last.size:
            self._overruns.discard(tenant)

    def record_worker_time(self, tenant: Tenant, seconds: float) -> None:
        """Note how long a worker took for a review. A quick review ends the expectation of overruns."""
        last = self._overruns.get(tenant)
        if last is not None and last.is_expected and seconds < HEAVY_S / 2:
            self._overruns.discard(tenant)

    def expects(self, tenant: Tenant, size: int, now: float) -> bool:
        """Return whether a review of `size` bytes would probably overrun its slice.

        Half the size of an overrun counts too. Otherwise a series of slightly smaller reviews would all be tried.
        """
        last = self._overruns.get(tenant)
        return last is not None and last.is_expected and 2 * size >= last.size and now - last.at < _REMEMBERED_S


class _Overrun(NamedTuple):
    """The last overrun: the size of the review, its moment, the number of overruns in a row."""

    size: int
    at: float
    in_a_row: int

    @property
    def is_expected(self) -> bool:
        return self.in_a_row >= _EXPECTED


ROUND_S: Final = HEAVY_S
"""After this many seconds of work between two polls of the sockets, further work waits in the queue. About ten ordinary
reviews take this time.
"""
_SHORT_S: Final = ROUND_S / 4
"""A round with less work continues after a poll of the sockets, because queueing a request costs a tenth of a
review."""
_SHORT_WORK_S: Final = ROUND_S / 2
"""Work up to this number of seconds is short: a small review, or a review that copies the pages that it touches after a
fork.

Longer work is charged by the square of its time. In twice the time, twice as many reviews come, and each review
waits twice as long (the residual service time of the Pollaczek-Khinchine formula). The first long piece of a namespace
may be chance, and is charged only its time.
"""
_TURN_S: Final = 0.000_2
"""Seconds of the loop for a small request in addition to the measured work: reading, decrypting, writing."""

_HALF_LIFE_S: Final = 0.25
"""The seconds in which half of the loop's usage is forgotten. A tenant that used an eighth of this time while no other
tenants waited comes after light tenants for a while. With the longer half-life of workers, a namespace that had used a
sixth of the half-life waited 0.8 s when many other namespaces came.
"""
_FORGOTTEN: Final = 0.9
"""The factor by which the longest work of a namespace shrinks with each later piece of work."""
_MOST_DEBT_S: Final = 4 * _SHORT_WORK_S
"""The maximum number of seconds of earlier work that count against a namespace when it begins to wait."""


class Scheduler:
    """Gives turns on one event loop; the receiver of a turn reports its time with `worked`.

    Attributes:
        usage: the time that tenants used of the loop.
        overruns: the tenants with reviews that take too long for the loop.
        is_warm: cleared while policies are compiled after the start.
    """

    __slots__ = ("_is_planned", "_longest_s", "_queue", "_spent_s", "is_warm", "overruns", "usage")

    def __init__(self) -> None:
        self.usage = Usage(_HALF_LIFE_S)
        self.overruns = Overruns()
        self.is_warm = asyncio.Event()
        self.is_warm.set()
        self._queue = FairQueue(self.usage, lambda _tenant: self._plan_next_round(), _TURN_S, _MOST_DEBT_S)
        self._longest_s: BoundedMap[str, float] = BoundedMap()
        self._spent_s = 0.0
        self._is_planned = False

    @property
    def waiting_count(self) -> int:
        return len(self._queue)

    @property
    def is_free(self) -> bool:
        """Return whether work of any tenant may run at once."""
        return self._spent_s < ROUND_S and not self._queue

    @property
    def has_time(self) -> bool:
        """Return whether work outside of the queue may run before the next poll of the sockets."""
        return self._spent_s < ROUND_S

    async def wait_for_turn(self, tenant: Tenant, until: float = inf) -> None:
        """Wait until the tenant may use the loop. The tenant must then use the loop at once.

        Raises:
            TimeoutError: `until` came first (monotonic clock).
        """
        if not self.is_free and not self._may_skip_queue(tenant):
            self._plan_next_round()
            await self._queue.wait(tenant, until)

    def _may_skip_queue(self, tenant: Tenant) -> bool:
        # a light tenant may, if the round has time and no waiting tenant goes first
        return self.has_time and self.usage.is_light(tenant, monotonic()) and self._queue.would_be_next(tenant)

    def worked(self, tenant: Tenant, seconds: float) -> None:
        """Charge a tenant for the seconds that it used of the event loop."""
        self.usage.add(tenant, seconds, monotonic())
        longest_s = self._longest_s.get(tenant.namespace) or 0.0
        self._longest_s.set(tenant.namespace, max(seconds, _FORGOTTEN * longest_s))
        self._queue.charge(tenant.namespace, seconds * max(1.0, min(seconds, longest_s) / _SHORT_WORK_S))
        self._spent_s += seconds
        if self._queue or self._spent_s > _SHORT_S:
            self._plan_next_round()

    def charge_for_reading(self, tenant: Tenant, seconds: float) -> None:
        """Charge a tenant for reading its bytes, in short pieces and before the tenant was known."""
        self.usage.add(tenant, seconds, monotonic())
        self._queue.charge(tenant.namespace, seconds)

    def slice_s(self, tenant: Tenant) -> float:
        """Return the seconds that a review may run now. Light tenants get more while no other tenants wait."""
        if not self.is_warm.is_set():
            return WARMING_S
        return LIGHT_S if not self._queue and self.usage.is_light(tenant, monotonic()) else HEAVY_S

    def _plan_next_round(self) -> None:
        # the loop first reads its sockets once
        if not self._is_planned:
            self._is_planned = True
            asyncio.get_running_loop().call_soon(self._begin_round)

    def _begin_round(self) -> None:
        self._is_planned = False
        self._spent_s = 0.0
        self._give_turn()

    def _give_turn(self) -> None:
        # the loop runs the turn in its next step, and _continue_round in the step after it
        if (following := self._queue.pop()) is not None:
            following[1].set_result(None)
            self._is_planned = True
            loop = asyncio.get_running_loop()
            loop.call_soon(loop.call_soon, self._continue_round)

    def _continue_round(self) -> None:
        self._is_planned = False
        if self.has_time and self._queue:
            self._give_turn()
        else:
            self._plan_next_round()
