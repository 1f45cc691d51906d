"""Runs reviews that take too long for the event loop in worker processes, with a fair queue and a deadline.

The tenant that used the workers least is next. The last free worker is for tenants that have no worker, so heavy
objects of one namespace never take all workers. Usage is measured in processor time: a busy machine makes no tenant
heavy. Only a worker that ends without an answer is charged with elapsed time.

A job is sent as two lengths, the instructions and the body. The result is JSON: a pickle could run code in the server,
and the worker reads what users send.

A fork server (fork_server.py) starts the workers. A worker needs the state of the server at the review's arrival, or
a later state. A fork server serves reviews that arrived before its fork, and later reviews until the state changes or a
second has passed.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from time import monotonic, thread_time
from typing import Any, Final, Literal, TypeAlias

from msgspec import structs

from webhook.apimachinery.attributes import UserInfo
from webhook.cel.library.authorizer import AuthorizationQuestion
from webhook.server import child_process
from webhook.server.counters import Counters
from webhook.server.fair_queue import FairSlots
from webhook.server.fork_server import ForkServer, Work, Worker
from webhook.server.request_body import LargeBody
from webhook.server.server_parts import ServerParts
from webhook.server.usage import Tenant

_LENGTHS: Final = struct.Struct("!II")


@dataclass(frozen=True, slots=True)
class Job:
    """The instructions of a worker for the body of a call."""

    instructions: bytes
    body: bytes | LargeBody

    async def send(self, channel: socket.socket) -> None:
        """Send the job through a non-blocking socket.

        Raises:
            ConnectionError: the worker has ended.
        """
        loop, body = asyncio.get_running_loop(), self.body
        head = _LENGTHS.pack(len(self.instructions), len(body)) + self.instructions
        for piece in (head, *(body.pieces() if isinstance(body, LargeBody) else (body,))):
            await loop.sock_sendall(channel, piece)


def receive(channel: socket.socket) -> tuple[bytes, bytes]:
    """Wait, in a worker, for the instructions and the body.

    Raises:
        EOFError: the server has ended, or stopped waiting.
    """
    instruction_bytes, body_bytes = _LENGTHS.unpack(_receive_exactly(channel, _LENGTHS.size))
    return _receive_exactly(channel, instruction_bytes), _receive_exactly(channel, body_bytes)


def _receive_exactly(channel: socket.socket, count: int) -> bytes:
    # bytes and MSG_WAITALL: a bytearray would need a second copy, up to 20 MB
    received = b""
    while len(received) < count:
        if not (more := channel.recv(count - len(received), socket.MSG_WAITALL)):
            raise EOFError
        received += more
    return received


Outcome: TypeAlias = Literal["answered", "question", "refused", "failed", "out of memory", "out of time"]


@dataclass(slots=True, kw_only=True)
class WorkerResult:
    """The result of one call.

    Attributes:
        outcome: `question`: a policy asks the API server. `refused`: the call is unreadable. `failed`: our bug.
            `out of memory`: the memory limit. `out of time`: the deadline, outside of every policy.
        body: the AdmissionReview of a verdict.
        fields: the log fields of the review; for a refused or failed call also its code, reason and message.
        seconds: the evaluation time of a verdict; 0 for other outcomes.
    """

    outcome: Outcome
    body: bytes = b""
    fields: dict[str, object]
    seconds: float = 0.0

    def packed(self, counters: Counters) -> bytes:
        """Return the result and the counts as a line of JSON, followed by the answer."""
        head = {"outcome": self.outcome, "fields": self.fields, "seconds": self.seconds, "counts": counters.dump()}
        return json.dumps(head).encode() + b"\n" + self.body


OUT_OF_MEMORY: Final = WorkerResult(outcome="out of memory", fields={}).packed(Counters())
"""Packed in advance, because packing needs memory."""


def unpack(packed: bytes, counters: Counters) -> WorkerResult:
    """Return a child's result, and add its counts to `counters`."""
    head, _, body = packed.partition(b"\n")
    reply = json.loads(head)
    counters.add(reply["counts"])
    return WorkerResult(outcome=reply["outcome"], body=body, fields=reply["fields"], seconds=reply["seconds"])


def question_as_json(question: AuthorizationQuestion, user: UserInfo) -> dict[str, object]:
    """Return a question as JSON, for a child to send to its parent."""
    return {"question": structs.asdict(question), "user": user._asdict()}


def question_from_json(fields: Mapping[str, Any]) -> tuple[AuthorizationQuestion, UserInfo]:
    """Return the question from the JSON of `question_as_json`."""
    user = fields["user"]
    extra = {name: tuple(values) for name, values in user["extra"].items()}
    return AuthorizationQuestion(**fields["question"]), UserInfo(
        user["username"], user["uid"], tuple(user["groups"]), extra
    )


LIVES_S: Final = 1.0
"""Seconds until a fork server is replaced. Each page that the server changes after a fork uses memory twice. In an
attack, this took 14 to 20 MB after one second, and 28 MB after five.
"""


class WorkerStarter:
    """Starts workers from a fork server, which is replaced after a change of the server's state and after LIVES_S.

    Use an instance on one event loop only.
    """

    def __init__(self, work: Work, memory_bytes: int, version: Callable[[], object | None]) -> None:
        """Fork nothing yet.

        A worker runs `work` with `memory_bytes` beyond the memory that it shares. `version` returns a value that
        changes with the state of the server; None while the state changes.
        """
        self._work = work
        self._memory_bytes = memory_bytes
        self._version = version
        self._current: ForkServer | None = None
        self._held_version: object | None = None
        self._forked_at = -inf

    def start_worker(self, deadline: float, arrived_at: float) -> Worker:
        """Start a worker that has the server's state of the moment `arrived_at` (monotonic clock), or a later state.

        A fork stops the event loop for 10 to 40 ms. All reviews that waited for a worker before a fork can start from
        this fork. So it does not matter if a user changes the state of the server with every second review.

        Raises:
            OSError: the system cannot start another process.
        """
        version = self._version()
        current = self._current
        is_same = version is not None and version == self._held_version
        if current is not None and not current.is_retired and (is_same or self._forked_at > arrived_at):
            with suppress(OSError):  # the fork server ended, for example because the kernel killed it for memory
                return current.start_worker(deadline)
        return self._renew(version).start_worker(deadline)

    def _renew(self, version: object | None) -> ForkServer:
        # the version was read before the fork, so a change during the fork is noticed at the next review
        if self._current is not None:
            self._current.retire()
            self._current = None
        forked_at, fork_server = monotonic(), ForkServer(self._work, self._memory_bytes)
        self._current, self._held_version, self._forked_at = fork_server, version, forked_at
        asyncio.get_running_loop().call_later(LIVES_S, fork_server.retire)
        return fork_server


START_S: Final = 0.005
"""Processor seconds that starting and ending a worker costs in addition to its work."""
_MOST_DEBT_S: Final = 0.3
"""The maximum number of seconds of earlier use that count against a namespace when it begins to wait: three reviews of
Pods of 200 KB.
"""
_MOST_STARTS: Final = 2
"""The maximum number of workers for one review. A second worker starts if the kernel kills the first, for example for
lack of memory.
"""


class WorkerDied(Exception):
    """No worker could be started, or two workers in a row ended without an answer. The text says which case it is."""


class WorkerFault(Exception):
    """An unexpected error inside a worker; `fields` has its type and place."""

    def __init__(self, fields: dict[str, object]) -> None:
        super().__init__(fields["error"])
        self.fields = fields


class WorkerLane:
    """Runs jobs in a limited number of worker processes. Use an instance on one event loop only."""

    def __init__(self, parts: ServerParts, work: Work, version: Callable[[], object | None]) -> None:
        """See WorkerStarter for `work` and `version`."""
        self._starter = WorkerStarter(work, parts.settings.worker_memory, version)
        self._scheduler = parts.scheduler
        self._counters = parts.counters
        self._slots = FairSlots(parts.settings.workers, START_S, _MOST_DEBT_S, keeps_one_for_others=True)

    @property
    def busy_worker_count(self) -> int:
        return len(self._slots.running)

    @property
    def waiting_review_count(self) -> int:
        return self._slots.waiting_count

    async def run(self, job: Job, tenant: Tenant, deadline: float, starts_by: float = inf) -> bytes:
        """Run a job in a worker and return its answer.

        The worker is killed at `deadline` (monotonic clock). After `starts_by`, no worker is started.

        Raises:
            TimeoutError: `deadline` or `starts_by` came before the answer.
            WorkerDied: no worker could be started, or two ended without an answer.
        """
        arrived_at, starts_by = monotonic(), min(starts_by, deadline)
        waiting = tenant._replace(address="")  # several API servers may bring the heavy reviews of one namespace
        try:
            await self._slots.reserve(waiting, starts_by)
        except TimeoutError:
            self._counters.workers["not_started",] += 1
            raise
        try:
            for _ in range(_MOST_STARTS):
                answer = await self._run_one_worker(job, tenant, arrived_at, deadline, starts_by)
                if answer is not None:
                    return answer
        finally:
            self._slots.release(waiting)
        raise WorkerDied("its worker process ended early")

    async def _run_one_worker(
        self, job: Job, tenant: Tenant, arrived_at: float, deadline: float, starts_by: float
    ) -> bytes | None:
        """Return the answer, or None if the worker ended without an answer.

        Raises:
            TimeoutError: `starts_by` came before the worker started, or the worker was killed at the deadline.
            WorkerDied: the system cannot start another process.
        """
        worker = await self._start(tenant, arrived_at, deadline, starts_by)
        started_at, seconds = monotonic(), None
        try:
            async with asyncio.timeout(deadline - started_at):
                answer, seconds = await _exchange(job, worker)
        except TimeoutError:
            self._counters.workers["killed",] += 1
            raise
        finally:
            self._slots.charge(tenant, monotonic() - started_at if seconds is None else seconds)
            worker.end()
        self._counters.workers["died" if answer is None else "answered",] += 1
        return answer

    async def _start(self, tenant: Tenant, arrived_at: float, deadline: float, starts_by: float) -> Worker:
        await self._scheduler.wait_for_turn(tenant, starts_by)
        if monotonic() >= starts_by:
            raise TimeoutError
        started_at = thread_time()
        try:
            return self._starter.start_worker(deadline, arrived_at)
        except OSError as error:
            self._counters.workers["not_started",] += 1
            raise WorkerDied(f"no worker process could be started: {error.strerror}") from None
        finally:
            self._scheduler.worked(tenant, thread_time() - started_at)


async def _exchange(job: Job, worker: Worker) -> tuple[bytes | None, float | None]:
    """Return the answer and the processor seconds that the worker used.

    The answer is None if the worker ended early; the seconds are None if the worker did not report them.
    """
    try:
        await job.send(worker.channel)
        head = await child_process.read_exactly(worker.channel, child_process.HEAD.size)
        if head is None:
            return None, None
        length, seconds = child_process.HEAD.unpack(head)
        return await child_process.read_exactly(worker.channel, length), seconds
    except ConnectionError:
        return None, None
