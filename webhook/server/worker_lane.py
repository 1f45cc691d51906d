"""Runs reviews that take too long for the event loop in worker processes, with a fair queue and a deadline.

The tenant that used least of the workers is next, and the last free worker is for light tenants that have none: heavy
objects of one namespace keep nobody else's from a worker. What counts is a processor's time, so that nobody looks heavy
because others keep the processors busy. Knows tenants; child_process.py knows processes, review_handler.py their work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import Final

from webhook.server import child_process
from webhook.server.child_process import Child
from webhook.server.counters import Counters
from webhook.server.fair_queue import FairQueue
from webhook.server.scheduler import Scheduler
from webhook.server.tenants import Tenant
from webhook.server.usage import Usage
from webhook.settings.serving import DEFAULTS

START_S: Final = 0.005
"""Seconds that starting a worker costs the loop: the fork, and the copies of pages that the next reviews change."""
_MOST_DEBT_S: Final = 0.3
"""The most seconds of a worker that a namespace is put behind others for what it used before it came to wait: three
ordinary reviews of a worker, a Pod of 200 KB being one. Who used more than that of late is heavy, and waits by its use.
"""
_REAP_S: Final = 0.05
_REAP_TRIES: Final = 100
_STARTS: Final = 2
"""How often a worker is started for one review, if something else ends it, such as the kernel short of memory."""


class OutOfTime(Exception):
    """No worker was free before the deadline, or the worker was killed at it."""


class WorkerDied(Exception):
    """No worker could be started, or two in a row ended without an answer; the text says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLimits:
    """How many worker processes at a time, and what each may take of memory beyond what it shares with the server."""

    workers: int = DEFAULTS.workers
    memory_bytes: int = DEFAULTS.worker_memory


class WorkerLane:
    """Runs work in forked children and limits their number; for one event loop."""

    def __init__(self, limits: WorkerLimits, scheduler: Scheduler, counters: Counters) -> None:
        self._limits = limits
        self._scheduler = scheduler
        self._counters = counters
        self._usage = Usage()
        self._queue = FairQueue(self._usage, self._free, START_S, _MOST_DEBT_S)
        self._running: list[Tenant] = []

    @property
    def busy_worker_count(self) -> int:
        """Return how many workers evaluate a review now."""
        return len(self._running)

    @property
    def waiting_review_count(self) -> int:
        """Return how many reviews wait for a worker."""
        return len(self._queue)

    async def run(self, work: Callable[[], bytes], tenant: Tenant, deadline: float, starts_by: float = inf) -> bytes:
        """Run `work` in a child and return its answer.

        Args:
            work: runs in the child, with everything this process has now.
            tenant: who asks.
            deadline: a moment of the monotonic clock at which the child is killed.
            starts_by: an earlier one, after which it is not worth a child.

        Raises:
            OutOfTime: one of the two came first.
            WorkerDied: no child could be started, or two ended without an answer.
        """
        starts_by = min(starts_by, deadline)
        await self._reserve_worker(tenant, starts_by)
        try:
            for _ in range(_STARTS):
                answer = await self._run_one_child(work, tenant, deadline, starts_by)
                if answer is not None:
                    return answer
        finally:
            self._free(tenant)
        raise WorkerDied("its worker process ended early")

    # ---- slots

    async def _reserve_worker(self, tenant: Tenant, deadline: float) -> None:
        """Wait until a worker is reserved for the tenant.

        A tenant that may start a worker does so at once, since none of those who wait may. The queue is only searched
        when a worker ends: the search walks over all light tenants that may not start another one.
        """
        if self._may_start(tenant):
            self._running.append(tenant)
            return
        try:
            await self._queue.wait(tenant, deadline)
        except TimeoutError:
            self._counters.workers["not_started",] += 1
            raise OutOfTime from None

    def _free(self, tenant: Tenant) -> None:
        self._running.remove(tenant)
        self._give_slots()

    def _give_slots(self) -> None:
        while self.busy_worker_count < self._limits.workers and (following := self._queue.pop(self._may_start)):
            tenant, turn = following
            self._running.append(tenant)
            turn.set_result(None)

    def _may_start(self, tenant: Tenant) -> bool:
        """Return whether the tenant may start a worker; the last free one is for light tenants that run none."""
        free = self._limits.workers - self.busy_worker_count
        if free != 1 or self._limits.workers == 1:
            return free > 0
        is_served = any(one.namespace == tenant.namespace or one.user == tenant.user != "" for one in self._running)
        return not is_served and self._usage.is_light(tenant, monotonic())

    # ---- children

    async def _run_one_child(
        self, work: Callable[[], bytes], tenant: Tenant, deadline: float, starts_by: float
    ) -> bytes | None:
        """Start one child and return its answer, or None when it ended without one.

        Raises:
            OutOfTime: it was killed at the deadline.
            WorkerDied: the system cannot start another process.
        """
        child = await self._start(work, tenant, deadline, starts_by)
        begun, seconds = monotonic(), None
        try:
            async with asyncio.timeout(deadline - begun):
                answer, seconds = await _answer(child)
        except TimeoutError:
            self._counters.workers["killed",] += 1
            raise OutOfTime from None
        finally:
            now = monotonic()
            used = now - begun if seconds is None else seconds
            self._usage.add(tenant, used, now)
            self._queue.charge(tenant.namespace, used)
            child.channel.close()
            child.kill()
            _reap(child, _REAP_TRIES)
        self._counters.workers["died" if answer is None else "answered",] += 1
        return answer

    async def _start(self, work: Callable[[], bytes], tenant: Tenant, deadline: float, starts_by: float) -> Child:
        """Start a child when the scheduler gives the tenant a turn, because a fork stops the loop."""
        try:
            await self._scheduler.wait_for_turn(tenant, starts_by)
        except TimeoutError:
            raise OutOfTime from None
        try:
            if monotonic() >= starts_by:
                raise OutOfTime
            return child_process.start(work, deadline, self._limits.memory_bytes)
        except OSError as error:
            self._counters.workers["not_started",] += 1
            raise WorkerDied(f"no worker process could be started: {error.strerror}") from None
        finally:
            self._scheduler.worked(tenant, START_S)


async def _answer(child: Child) -> tuple[bytes | None, float | None]:
    """Return the answer of a child, None when it ended without one, and the processor seconds that it took."""
    head = await _read_exactly(child, child_process.HEAD.size)
    if head is None:
        return None, None
    length, seconds = child_process.HEAD.unpack(head)
    return await _read_exactly(child, length), seconds


async def _read_exactly(child: Child, count: int) -> bytes | None:
    """Read `count` bytes from a child, or return None when it ended before."""
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
    """Remove a killed child from the process table, and try again later if the kernel is not done with it."""
    if not child.try_reap() and tries:
        asyncio.get_running_loop().call_later(_REAP_S, _reap, child, tries - 1)
