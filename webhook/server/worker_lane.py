"""Reviews that take too long for the event loop, each in a process of its own: who gets one when, and what ends it.

Knows slots and tenants; child_process.py knows processes, review_handler.py what is done in one. Tenants take
turns, and nobody takes the last free slot who has one already: one tenant's heavy objects do not keep another's from a
worker. When all slots are taken, a spare one is left for a small review of a tenant whose workers were all quick: it
does not wait seconds for those of others. Quick is who takes little of a processor, however busy the node is.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import Enum, auto
from time import monotonic
from typing import Final, TypeAlias

from webhook.server import child_process
from webhook.server.child_process import Child
from webhook.server.counters import Counters
from webhook.server.inline_budget import Tenant
from webhook.server.latest import Latest
from webhook.settings.serving import DEFAULTS

_REAP_S: Final = 0.05
_REAP_TRIES: Final = 100
_QUICK_S: Final = 0.1
"""Seconds of a processor. Clocks on the wall would call a victim slow because an attacker has both processors."""
_SLOW: Final = float("inf")
"""What a child took that did not say it."""
_RECENT_S: Final = 1.0
_REMEMBERED_S: Final = 30.0
_TRIES: Final = 2
"""A worker that somebody else ended, such as the kernel short of memory, is replaced once."""


_Turn: TypeAlias = "asyncio.Future[None]"


class Size(Enum):
    """What a review takes of memory: a small one may use the spare slot, and large ones run one at a time."""

    SMALL = auto()
    MEDIUM = auto()
    LARGE = auto()


class OutOfTime(Exception):
    """No worker was free before the deadline, or the worker was killed at it."""


class WorkerDied(Exception):
    """No worker could be started, or two in a row ended without an answer; the text says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLimits:
    """How many worker processes at a time, how many more for quick tenants, and what each may take of memory.

    The memory is what comes to what it shares with the server.
    """

    workers: int = DEFAULTS.workers
    spare: int = 1
    memory_bytes: int = DEFAULTS.worker_memory


class WorkerLane:
    """Runs work in forked children; one event loop's, and not for several threads."""

    def __init__(self, limits: WorkerLimits, counters: Counters) -> None:
        self._limits = limits
        self._counters = counters
        self._running: Counter[Tenant] = Counter()
        self._waiting: OrderedDict[Tenant, dict[_Turn, Size]] = OrderedDict()
        self._slow_at: Latest[Tenant, float] = Latest()
        self._started_at = -_RECENT_S
        self._large = 0

    @property
    def busy(self) -> int:
        """Workers at work."""
        return self._running.total()

    @property
    def waiting(self) -> int:
        """Reviews that wait for one."""
        return sum(map(len, self._waiting.values()))

    def is_recent(self, now: float) -> bool:
        """Whether a worker was started within the last second."""
        return now - self._started_at < _RECENT_S

    async def run(self, work: Callable[[], bytes], tenant: Tenant, deadline: float, size: Size = Size.MEDIUM) -> bytes:
        """What `work` gives, computed in a child.

        Args:
            work: runs in the child, with everything this process has now.
            tenant: who asks: tenants take turns.
            deadline: a moment of the monotonic clock at which the child is killed.
            size: what it takes of memory, which says how many may run at a time.

        Raises:
            OutOfTime: the deadline came first.
            WorkerDied: no child could be started, or two ended without an answer.
        """
        async with self._slot(tenant, deadline, size):
            for _ in range(_TRIES):
                answer = await self._attempt(work, tenant, deadline)
                if answer is not None:
                    return answer
        raise WorkerDied("its worker process ended early")

    # ---- slots

    @asynccontextmanager
    async def _slot(self, tenant: Tenant, deadline: float, size: Size) -> AsyncIterator[None]:
        if self._may_start(tenant, size):
            self._start(tenant, size)
        else:
            await self._wait(tenant, deadline, size)
        try:
            yield
        finally:
            self._release(tenant, size)

    def _start(self, tenant: Tenant, size: Size) -> None:
        self._running[tenant] += 1
        self._large += size is Size.LARGE

    def _may_start(self, tenant: Tenant, size: Size) -> bool:
        if size is Size.LARGE and self._large:
            return False
        free = self._limits.workers - self.busy
        if free > 1:
            return True
        if self._running[tenant]:
            return False
        return free == 1 or (size is Size.SMALL and free > -self._limits.spare and self._is_quick(tenant))

    def _is_quick(self, tenant: Tenant) -> bool:
        """Whether no worker of this tenant took long of late."""
        slow_at = self._slow_at.get(tenant)
        return slow_at is None or monotonic() - slow_at >= _REMEMBERED_S

    async def _wait(self, tenant: Tenant, deadline: float, size: Size) -> None:
        """Wait for a turn; whoever gives it has counted the slot as this tenant's.

        Raises:
            OutOfTime: the deadline came first.
        """
        turn: _Turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(tenant, {})[turn] = size
        try:
            async with asyncio.timeout(max(0.0, deadline - monotonic())):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():  # given at the last moment
                self._release(tenant, size)
            if not isinstance(error, TimeoutError):
                raise
            self._counters.workers["not_started",] += 1
            raise OutOfTime from None
        finally:
            self._forget(tenant, turn)

    def _forget(self, tenant: Tenant, turn: _Turn) -> None:
        queue = self._waiting.get(tenant, {})
        queue.pop(turn, None)
        if not queue:
            self._waiting.pop(tenant, None)

    def _release(self, tenant: Tenant, size: Size) -> None:
        """Take a slot back, and give what is free to the tenants whose turn it is."""
        self._running[tenant] -= 1
        self._running += Counter()  # drops tenants that have none
        self._large -= size is Size.LARGE
        for candidate in tuple(self._waiting):
            turn = self._first(candidate)
            if turn is None or not self._may_start(candidate, self._waiting[candidate][turn]):
                continue
            self._start(candidate, self._waiting[candidate][turn])
            self._forget(candidate, turn)
            if candidate in self._waiting:
                self._waiting.move_to_end(candidate)
            turn.set_result(None)

    def _first(self, tenant: Tenant) -> _Turn | None:
        """The call of a tenant that has waited longest; one that has just given up is no longer pending."""
        return next((turn for turn in self._waiting[tenant] if not turn.done()), None)

    # ---- children

    async def _attempt(self, work: Callable[[], bytes], tenant: Tenant, deadline: float) -> bytes | None:
        """One child's answer, or None when it ended without.

        Raises:
            OutOfTime: it was killed at the deadline.
            WorkerDied: the system cannot start another process.
        """
        self._started_at = now = monotonic()
        if now >= deadline:
            raise OutOfTime
        try:
            child = child_process.start(work, deadline, self._limits.memory_bytes)
        except OSError as error:
            self._counters.workers["not_started",] += 1
            raise WorkerDied(f"no worker process could be started: {error.strerror}") from None
        seconds = _SLOW
        try:
            async with asyncio.timeout(deadline - monotonic()):
                answer, seconds = await _answer(child)
        except TimeoutError:
            self._counters.workers["killed",] += 1
            raise OutOfTime from None
        finally:
            if seconds > _QUICK_S:
                self._slow_at.note(tenant, monotonic())
            child.channel.close()
            child.kill()
            _reap(child, _REAP_TRIES)
        self._counters.workers["died" if answer is None else "answered",] += 1
        return answer


async def _answer(child: Child) -> tuple[bytes | None, float]:
    """What a child answered, None when it ended without, and the seconds of a processor that it took."""
    head = await _exactly(child, child_process.HEAD.size)
    if head is None:
        return None, _SLOW
    length, seconds = child_process.HEAD.unpack(head)
    return await _exactly(child, length), seconds


async def _exactly(child: Child, count: int) -> bytes | None:
    """So many bytes, or None when the child ended before."""
    loop = asyncio.get_running_loop()
    received = bytearray()
    while len(received) < count:
        try:
            chunk = await loop.sock_recv(child.channel, min(count - len(received), 1 << 20))
        except ConnectionResetError:
            return None
        if not chunk:
            return None
        received += chunk
    return bytes(received)


def _reap(child: Child, tries: int) -> None:
    """Take a child that has been killed off the process table, as soon as the kernel lets go of it."""
    if not child.reaped() and tries:
        asyncio.get_running_loop().call_later(_REAP_S, _reap, child, tries - 1)
