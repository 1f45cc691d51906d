"""Runs jobs that take too long for the event loop in worker processes, with a fair queue and a deadline.

The tenant that used least of the workers is next, and the last free worker is for light tenants that have none: heavy
objects of one namespace keep nobody else's from a worker. What counts is a processor's time, so that nobody looks heavy
because others keep the processors busy. Knows tenants; worker_starter.py knows processes, review_evaluation.py their
work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from time import monotonic, thread_time
from typing import Final

from webhook.server import child_process
from webhook.server.counters import Counters
from webhook.server.fair_queue import FairQueue
from webhook.server.fork_server import Work, Worker
from webhook.server.scheduler import Scheduler
from webhook.server.tenants import Tenant
from webhook.server.usage import Usage
from webhook.server.worker_job import Job
from webhook.server.worker_starter import WorkerStarter
from webhook.settings.serving import DEFAULTS

START_S: Final = 0.005
"""Seconds of a processor that starting and ending a worker costs in addition to its work."""
_MOST_DEBT_S: Final = 0.3
"""The most seconds of a worker that a namespace is put behind others for what it used before it came to wait: three
ordinary reviews of a worker, a Pod of 200 KB being one. Who used more than that of late is heavy, and waits by its use.
"""
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
    """Runs jobs in worker processes and limits their number; for one event loop."""

    def __init__(
        self,
        limits: WorkerLimits,
        scheduler: Scheduler,
        counters: Counters,
        work: Work,
        version: Callable[[], object | None],
    ) -> None:
        """Run nothing yet; what workers do, and when its result may have changed, is said as in WorkerStarter."""
        self._limits = limits
        self._starter = WorkerStarter(work, limits.memory_bytes, version)
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

    async def run(self, job: Job, tenant: Tenant, deadline: float, starts_by: float = inf) -> bytes:
        """Run a job in a worker and return its answer.

        Args:
            job: what the worker does, with all that this process has when the worker is started.
            tenant: who asks.
            deadline: a moment of the monotonic clock at which the worker is killed.
            starts_by: an earlier one, after which it is not worth a worker.

        Raises:
            OutOfTime: one of the two came first.
            WorkerDied: no worker could be started, or two ended without an answer.
        """
        starts_by = min(starts_by, deadline)
        waiting = tenant._replace(address="")  # several API servers may bring the heavy reviews of one namespace
        await self._reserve_worker(waiting, starts_by)
        try:
            for _ in range(_STARTS):
                answer = await self._run_one_worker(job, tenant, deadline, starts_by)
                if answer is not None:
                    return answer
        finally:
            self._free(waiting)
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

    # ---- processes

    async def _run_one_worker(self, job: Job, tenant: Tenant, deadline: float, starts_by: float) -> bytes | None:
        """Start one worker and return its answer, or None when it ended without one.

        Raises:
            OutOfTime: it was killed at the deadline.
            WorkerDied: the system cannot start another process.
        """
        worker = await self._start(tenant, deadline, starts_by)
        begun, seconds = monotonic(), None
        try:
            async with asyncio.timeout(deadline - begun):
                answer, seconds = await _exchange(job, worker)
        except TimeoutError:
            self._counters.workers["killed",] += 1
            raise OutOfTime from None
        finally:
            now = monotonic()
            used = now - begun if seconds is None else seconds
            self._usage.add(tenant, used, now)
            self._queue.charge(tenant.namespace, used)
            worker.end()
        self._counters.workers["died" if answer is None else "answered",] += 1
        return answer

    async def _start(self, tenant: Tenant, deadline: float, starts_by: float) -> Worker:
        """Start a worker when the scheduler gives the tenant a turn, because a fork of the server stops the loop."""
        try:
            await self._scheduler.wait_for_turn(tenant, starts_by)
        except TimeoutError:
            raise OutOfTime from None
        begun = thread_time()
        try:
            if monotonic() >= starts_by:
                raise OutOfTime
            return self._starter.start_worker(deadline)
        except OSError as error:
            self._counters.workers["not_started",] += 1
            raise WorkerDied(f"no worker process could be started: {error.strerror}") from None
        finally:
            self._scheduler.worked(tenant, thread_time() - begun)


async def _exchange(job: Job, worker: Worker) -> tuple[bytes | None, float | None]:
    """Send the job; return the worker's answer, None when it ended without one, and the processor seconds it took."""
    try:
        await job.send(worker.channel)
        head = await child_process.read_exactly(worker.channel, child_process.HEAD.size)
        if head is None:
            return None, None
        length, seconds = child_process.HEAD.unpack(head)
        return await child_process.read_exactly(worker.channel, length), seconds
    except ConnectionError:
        return None, None
