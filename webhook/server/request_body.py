"""Reads the body of one call whole, with limits for its length, its pace and the memory of all bodies together.

Bodies of up to FREE_BYTES, and the first piece of larger bodies, are read at once. The number of connections bounds the
memory for these bytes. For a larger body, memory is reserved first: its declared length, or the limit for a streamed
body. Until then nothing more is read, so TCP makes the client wait. If a call gets no turn, the server answers from the
beginning of its body. A call without a place in the queue gets 429 and `Retry-After: 1`, as from kube-apiserver. The
API server tries again while it has time (client-go rest/with_retry.go), then applies its failurePolicy.

A large body has its own memory, which returns to the system after the answer. On the heap, bodies that arrive in turns
of 64 KB leave holes between other objects, and each forked process keeps the holes. With 36 MiB of bodies, a worker
kept 113 MB that the server had freed. To read a large body as a whole copies it, which takes milliseconds and the same
memory again.

All clients share one pace of reading, so that decryption does not fill the event loop.
"""

from __future__ import annotations

import asyncio
import mmap
import sys
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

from webhook.errors import CallError
from webhook.server.client_clock import CLOCK, ClientClock
from webhook.server.fair_queue import RoundRobin
from webhook.server.http_exchange import Message, Receive, Scope, client_address


class ReadingPace:
    """A rate limit that all readers share, with a burst that is free."""

    __slots__ = ("_burst_s", "_bytes_per_s", "_read_until")

    def __init__(self, bytes_per_s: float, burst_bytes: float) -> None:
        self._bytes_per_s = bytes_per_s
        self._burst_s = burst_bytes / bytes_per_s
        self._read_until = 0.0

    def record_read(self, size: int, now: float) -> float:
        """Note that `size` bytes were read at `now`; return the seconds until their reader may read more."""
        self._read_until = max(self._read_until, now - self._burst_s) + size / self._bytes_per_s
        return max(0.0, self._read_until - now)


BEGINNING_BYTES: Final = 128 * 1024
LONG_BEGINNING_BYTES: Final = 4 * 1024 * 1024
"""More than kube-apiserver accepts from a user, so no field before the object is longer."""


class LargeBody:
    """The bytes of a body that have arrived so far."""

    __slots__ = ("_memory", "_size")

    def __init__(self, capacity: int, pieces: Iterable[bytes] = ()) -> None:
        """Map memory for `capacity` bytes, and store the pieces in `pieces`."""
        self._memory = mmap.mmap(-1, max(1, capacity))
        if sys.platform == "linux":
            self._memory.madvise(mmap.MADV_DONTFORK)  # a forked process would keep the memory after the answer
        self._size = 0
        for piece in pieces:
            self.append(piece)

    def __len__(self) -> int:
        return self._size

    def append(self, piece: bytes) -> None:
        """Store the next piece; drop bytes beyond the capacity."""
        end = min(self._size + len(piece), len(self._memory))
        self._memory[self._size : end] = piece[: end - self._size]
        self._size = end

    def pieces(self) -> Iterator[bytes]:
        for begin in range(0, self._size, BEGINNING_BYTES):
            yield self._memory[begin : min(self._size, begin + BEGINNING_BYTES)]

    def beginnings(self) -> Iterator[bytes]:
        """Yield the beginning of the body twice: up to BEGINNING_BYTES, then up to LONG_BEGINNING_BYTES."""
        for length in (BEGINNING_BYTES, LONG_BEGINNING_BYTES):
            yield self._memory[: min(self._size, length)]

    def close(self) -> None:
        self._memory.close()
        self._size = 0


FREE_BYTES: Final = 64 * 1024
"""The bytes of each body that are read in advance; most reviews are a tenth of this size.

Workers evaluate larger bodies: decoding a TrainJob of 60 KB takes 1 to 2 ms, and a hostile body of 120 KB takes 5 ms.
"""
BYTES_PER_S: Final = 64 * 1024 * 1024
"""The rate of reading all large bodies. TLS decrypts a few hundred MB/s, and the event loop answers no other call
meanwhile.
"""
BURST_BYTES: Final = 2 * 1024 * 1024
"""These bytes are read without the limit of BYTES_PER_S: more than an API server stores in one object."""
MAX_WAITING: Final = 16
"""The maximum number of calls in the queue. Each call holds up to 640 KB that TLS read before it could stop. Above the
bound, the address with the most bodies loses its last call.
"""


class IncompleteBodyError(CallError):
    """A body was not whole before the deadline, or is too large; `beginning` has its beginning."""

    def __init__(self, error: CallError, body: LargeBody) -> None:
        super().__init__(error.code, error.reason, error.message)
        self.beginning = body


class ClientGone(Exception):
    """The client closed the connection before its whole body arrived."""


class BodyBudget:
    """The memory budget for large bodies, and the queue of calls that wait for it.

    Use an instance on one event loop only.

    Addresses take turns, and requests of one address are served in order of arrival. A smaller body does not overtake a
    larger body.

    Attributes:
        reserved: bytes given out now.
        pace: the rate of reading these bodies.
    """

    def __init__(self, total_bytes: int) -> None:
        self.total_bytes = total_bytes
        self.reserved = 0
        self.pace = ReadingPace(BYTES_PER_S, BURST_BYTES)
        self._waiting: RoundRobin[tuple[int, asyncio.Future[None]]] = RoundRobin(MAX_WAITING)

    @property
    def waiting_call_count(self) -> int:
        return len(self._waiting)

    async def reserve(self, size: int, address: str) -> None:
        """Wait until `size` bytes are reserved; the caller must `release` them.

        Raises:
            CallError: 429 when too many calls wait, and this call loses its place in the queue.
        """
        if not self._waiting and self._fits(size):
            self.reserved += size
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if (refused := self._waiting.add(address, (size, turn))) is not None and not refused[1].done():
            refused[1].set_exception(self.budget_full_error())
        try:
            await turn
        except asyncio.CancelledError:
            self._leave(size, turn, address)
            raise

    def release(self, size: int) -> None:
        """Return bytes to the budget, and serve the next call."""
        self.reserved -= size
        self._serve_waiting_calls()

    def budget_full_error(self) -> CallError:
        """Return the error for a call without a place or a turn in the queue."""
        text = f"other calls fill the {self.total_bytes} bytes for large bodies; try again"
        return CallError(429, "TooManyRequests", f"{text}, or raise --max-inflight-body-bytes if this happens often")

    def _fits(self, size: int) -> bool:
        # a body larger than the whole budget is read alone
        return self.reserved + size <= self.total_bytes or not self.reserved

    def _serve_waiting_calls(self) -> None:
        while (first := self._waiting.first()) is not None:
            size, turn = first
            if not turn.cancelled():
                if not self._fits(size):
                    return
                self.reserved += size
                turn.set_result(None)
            self._waiting.pop()

    def _leave(self, size: int, turn: asyncio.Future[None], address: str) -> None:
        if turn.done() and not turn.cancelled():  # the bytes were reserved at the same moment
            self.release(size)
            return
        self._waiting.remove(address, (size, turn))
        self._serve_waiting_calls()  # a smaller body may wait behind this body


@dataclass(slots=True, kw_only=True)
class BodyReader:
    """Reads one body.

    Attributes:
        budget: the budget of large bodies.
        scope: the call, with its client and clock.
        receive: returns the pieces.
        length: the declared length, None for a streamed body.
        limit: the maximum number of bytes of a body.
        deadline: when the answer is useless, on the monotonic clock.
    """

    budget: BodyBudget
    scope: Scope
    receive: Receive
    length: int | None
    limit: int
    deadline: float
    _reserved: int = field(init=False, default=0)

    @asynccontextmanager
    async def whole_body(self) -> AsyncIterator[bytes | LargeBody]:
        """Read the whole body, and keep its memory reserved until the answer is computed.

        Raises:
            CallError: 429 when too many calls wait, and this call loses its place in the queue.
            IncompleteBodyError: 413 if the body is longer than the limit. 429 if its turn did not come before the
                deadline. 408 if the body was not whole at the deadline.
            ClientGone: the client went away.
        """
        try:
            yield await self._read()
        finally:
            if self._reserved:
                self.budget.release(self._reserved)

    @property
    def _clock(self) -> ClientClock:
        clock: ClientClock = self.scope["extensions"][CLOCK]
        return clock

    async def _read(self) -> bytes | LargeBody:
        length = self.length
        if length is not None and length > self.limit:
            beginning: list[bytes] = []
            with suppress(TimeoutError):
                async with asyncio.timeout(self.deadline - monotonic()):
                    await self._collect(beginning, 0, BEGINNING_BYTES)
            raise self._too_large_error(length, LargeBody(BEGINNING_BYTES, beginning))
        if length is not None and length > FREE_BYTES:
            return await self._read_reserved(length, [])
        chunks: list[bytes] = []
        size, more = await self._collect(chunks, 0, FREE_BYTES)
        if size > self.limit:
            raise self._too_large_error(size, LargeBody(size, chunks))
        if not more:
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)
        return await self._read_reserved(self.limit, chunks)

    async def _read_reserved(self, reserved: int, chunks: list[bytes]) -> bytes | LargeBody:
        # both the reservation and the body must end before the call's deadline
        clock, size, more = self._clock, sum(map(len, chunks)), True
        body: LargeBody | None = None
        try:
            async with asyncio.timeout(self.deadline - monotonic()):
                if not chunks:  # the first piece needs no budget, and names the sender and the operation
                    size, more = await self._collect(chunks, 0, 0)
                clock.pause_clock()
                await self.budget.reserve(reserved, client_address(self.scope))
                self._reserved = reserved
                clock.require_large_body_pace()
                body = LargeBody(reserved, chunks)
                chunks.clear()
                if more:
                    size, _ = await self._collect(body, size, self.limit)
        except TimeoutError:
            error = self.budget.budget_full_error() if chunks else self._late_body_error()
            received = LargeBody(size, chunks) if body is None else body
            chunks.clear()  # otherwise the error keeps the bytes in its traceback
            raise IncompleteBodyError(error, received) from None
        finally:
            clock.resume_clock()
        if size > self.limit:
            raise self._too_large_error(size, body)
        return body

    async def _collect(self, destination: list[bytes] | LargeBody, size: int, max_bytes: int) -> tuple[int, bool]:
        """Read until the body ends or is longer than `max_bytes` bytes; return its size and whether more follows."""
        more = True
        while more and size <= max_bytes:
            message = await self._next()
            chunk: bytes = message["body"]
            more = message["more_body"]
            size += len(chunk)
            destination.append(chunk)
            if self._reserved and more and (pause := self.budget.pace.record_read(len(chunk), monotonic())):
                self._clock.pause_clock()
                await asyncio.sleep(pause)
                self._clock.resume_clock()
        return size, more

    def _too_large_error(self, size: int, received: LargeBody) -> IncompleteBodyError:
        text = f"the body is larger than {self.limit} bytes (found {size}); raise --max-body-bytes to accept it"
        return IncompleteBodyError(CallError(413, "RequestEntityTooLarge", text), received)

    async def _next(self) -> Message:
        message = await self.receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        return message

    def _late_body_error(self) -> CallError:
        return CallError(408, "RequestTimeout", "the body was not whole before the call's deadline; see ?timeout=")
