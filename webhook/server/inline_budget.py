"""How long the event loop may work on one review before the review is given to a worker process.

While it works on one, everybody else waits. So a single slow review may take MOST_S; but the slow reviews of one tenant
together may take only TENANT_SHARE of the loop's time, and those of all tenants SHARE. A tenant that took its share
gets LEAST_S for each review, which is several times what an ordinary one needs; others still get FAIR_S, because nobody
pays for what another one sent. The budget of a server that nobody attacks is always full. On a slow processor ordinary
reviews take longer, and get as much more.

A tenant is a user in a namespace: the same controller creates the pods of everybody.

What counts is the processor's time of this thread: on a busy node a thread that waits for its turn has not worked, and
a worker would get its turn later still. Knows the clocks, nothing of reviews.
"""

from __future__ import annotations

import resource
from collections import deque
from time import monotonic, thread_time
from typing import Final, TypeAlias

from webhook.deadline import STEP, Deadline
from webhook.errors import InlineBudgetSpent
from webhook.server.latest import Latest

Tenant: TypeAlias = tuple[str, str]
"""A namespace, "" for what has none, and the name of a user."""

MOST_S: Final = 0.01
"""It ends some milliseconds later, when what was made until then has been given back: some 20 ms in all with decoding.
A reader of the answer does not notice it, and a probe or another caller waits no longer than for a slow network."""
FAIR_S: Final = 0.006
"""An ordinary review is done in a tenth of it, also right after a fork, when each page that it touches is copied."""
LEAST_S: Final = 0.003
ORDINARY_S: Final = 0.000_6
"""What an ordinary review takes where LEAST_S and FAIR_S are as they stand; on a slower processor they grow …"""
_SLOWEST: Final = MOST_S / LEAST_S
"""… up to so many times. An attacker cannot make them grow while others are answered."""
_REMEMBERED: Final = 64
"""Reviews whose quickest eighth says what is ordinary."""
_EVERY: Final = 16
"""Reviews after which that is looked at again."""
TENANT_SHARE: Final = 0.1
SHARE: Final = 0.3
WORKER_S: Final = 0.005
"""What a worker costs the loop: the fork, and the copies of the pages that the next reviews touch."""
WARMING_S: Final = 1.0
"""A worker would have to make the same functions, and throw them away."""
_COPY_S: Final = 0.000_010
_COPIES_S: Final = 0.005
_THREAD: Final[int | None] = getattr(resource, "RUSAGE_THREAD", None)
_SAVED_S: Final = 5 * MOST_S
"""What a quiet time saves up for a tenant: five slow reviews in a row. As much can be owed."""
_SAVED_FOR_ALL_S: Final = MOST_S
"""What it saves up for all of them: one, or several tenants at once would stop the loop for as many."""


class _Credit:
    """Seconds of the loop that somebody may still use; negative while they are owed."""

    __slots__ = ("_at", "_left_s", "_most_s", "_share")

    def __init__(self, share: float, most_s: float, now: float) -> None:
        self._share = share
        self._left_s = self._most_s = most_s
        self._at = now

    def left(self, now: float) -> float:
        """What is left at a moment of the monotonic clock."""
        if now > self._at:
            self._left_s = min(self._most_s, self._left_s + (now - self._at) * self._share)
            self._at = now
        return self._left_s

    def take(self, seconds: float) -> None:
        self._left_s = max(-self._most_s, self._left_s - seconds)


class InlineBudget:
    """The seconds that slow reviews may take from the loop now; used by the loop's thread alone.

    Attributes:
        is_warming: the server has just started, and the first review of a policy also makes its functions.
        slowness: how many times as long as ORDINARY_S ordinary reviews take here, at least 1.
    """

    __slots__ = ("_all", "_latest", "_noted", "_tenants", "is_warming", "slowness")

    def __init__(self) -> None:
        self.is_warming = False
        self.slowness = 1.0
        self._latest: deque[float] = deque(maxlen=_REMEMBERED)
        self._noted = 0
        self._all = _Credit(SHARE, _SAVED_FOR_ALL_S, monotonic())
        self._tenants: Latest[Tenant, _Credit] = Latest()

    @property
    def least_s(self) -> float:
        """Seconds that a review may take whatever its tenant took before."""
        return min(MOST_S, LEAST_S * self.slowness)

    def allowance(self, tenant: Tenant, now: float) -> float:
        """Seconds that the next review of a tenant may take, at a moment of the monotonic clock."""
        if self.is_warming:
            return WARMING_S
        credit = self._tenants.get(tenant)
        own = _SAVED_S if credit is None else credit.left(now)
        least = self.least_s if own < MOST_S else min(MOST_S, FAIR_S * self.slowness)
        return max(least, min(MOST_S, own, self._all.left(now)))

    def pause(self, tenant: Tenant, now: float) -> float:
        """Seconds that a tenant's next worker has to wait, until the loop has got back what the others took."""
        credit = self._tenants.get(tenant)
        return 0.0 if credit is None else max(0.0, -credit.left(now)) / TENANT_SHARE

    def owed(self, now: float) -> float:
        """Seconds until the loop has got back what slow reviews of all tenants took."""
        return max(0.0, -self._all.left(now)) / SHARE

    def answered(self, seconds: float) -> None:
        """Note what a review took that was done in its budget."""
        self._latest.append(seconds)
        self._noted += 1
        if self._noted % _EVERY == 0 and not self.is_warming:
            ordinary = sorted(self._latest)[len(self._latest) // 8]
            self.slowness = min(_SLOWEST, max(1.0, ordinary / ORDINARY_S))

    def took(self, tenant: Tenant, seconds: float, now: float) -> None:
        """Charge a review, unless it was an ordinary one."""
        if seconds > self.least_s:
            self.charge(tenant, seconds, now)

    def charge(self, tenant: Tenant, seconds: float, now: float) -> None:
        """Charge a review, or the start of a worker."""
        if self.is_warming:
            return
        credit = self._tenants.get(tenant) or _Credit(TENANT_SHARE, _SAVED_S, now)
        self._tenants.note(tenant, credit)
        for charged in (credit, self._all):
            charged.left(now)
            charged.take(seconds)


class LoopTime:
    """The processor's time that the loop spends on one review from now on.

    Reading it is a system call, the monotonic clock is none.

    After a fork (`copies`), the next reviews also copy the pages that they touch, some hundreds; the tenant whose
    review was the cause has paid for that with WORKER_S, so it is not counted.
    """

    __slots__ = ("_faults", "_thread_begun", "begun")

    def __init__(self, begun: float, *, copies: bool) -> None:
        """Begin at a moment of the monotonic clock, which is now."""
        self.begun = begun
        self._faults = _page_faults() if copies else None
        self._thread_begun = thread_time()

    @property
    def grace(self) -> float:
        """Seconds that the copies may take besides."""
        return 0.0 if self._faults is None else _COPIES_S

    def seconds(self) -> float:
        """What was spent so far; nothing where the copies seem to have taken all of it."""
        spent = thread_time() - self._thread_begun
        if self._faults is None:
            return spent
        return max(0.0, spent - min(_COPIES_S, (_page_faults() - self._faults) * _COPY_S))

    def deadline(self, allowance_s: float, end: float) -> InlineDeadline:
        """The deadline of evaluation that begins now: so many seconds of processor time, and never past `end`."""
        so_far = monotonic() - self.begun
        return InlineDeadline(self.begun, allowance_s, end, self._thread_begun + so_far + allowance_s)


def _page_faults() -> int:
    return 0 if _THREAD is None else resource.getrusage(_THREAD).ru_minflt


class InlineDeadline(Deadline):
    """Until when a review may run on the event loop: so much of the thread's own time, and never past its deadline."""

    __slots__ = ("_end", "_thread_end")

    def __init__(self, now: float, allowance_s: float, end: float, thread_end: float) -> None:
        """Begin.

        Args:
            now: the monotonic clock.
            allowance_s: seconds of it after which that of the thread is read.
            end: the moment of the monotonic clock at which it is too late in any case.
            thread_end: the same of this thread's processor time.
        """
        super().__init__(now + allowance_s, InlineBudgetSpent)
        self._thread_end = thread_end
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
