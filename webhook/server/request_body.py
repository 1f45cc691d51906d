"""Reads the body of one call whole, with limits for its length, its pace and the memory of all bodies together.

It knows ASGI messages, lengths and deadlines, and nothing of reviews. Bodies of up to FREE_BYTES, and the first piece
of larger bodies, are read at once: the number of connections bounds them. For a larger body, its declared length, or
the limit when it is streamed, is reserved first. While the budget does not cover it nothing more is read, so TCP
makes the client wait, and nothing is lost. If a call gets no turn in time, it is answered from the beginning of its
body. A call for which the queue has no place gets 429, reason TooManyRequests, `Retry-After: 1`, as kube-apiserver
answers. An API server that calls a webhook tries again while it has time (client-go rest/with_retry.go), and applies
its failurePolicy then.

A large body has its own memory, which is returned to the system when the call is answered. On the heap, bodies that
arrive in turns of 64 KB leave holes between other objects, and each forked process keeps the holes of the moment of its
fork: measured with 36 MiB of bodies, a worker kept 113 MB that the server had given back. Reading a whole large body
copies it, which needs milliseconds and the same memory again.

All clients together are read at a pace, so that decryption does not fill the loop.
"""

from __future__ import annotations

import asyncio
import mmap
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from time import monotonic
from types import TracebackType
from typing import Final, Protocol

from webhook.errors import CallError
from webhook.server.client_clock import CLOCK, ClientClock
from webhook.server.http_exchange import Message, Receive, Scope, client_address


class ReadingPace:
    """A rate limit that all readers share, with a burst that is free."""

    __slots__ = ("_burst_s", "_bytes_per_s", "_read_until")

    def __init__(self, bytes_per_s: float, burst_bytes: float) -> None:
        self._bytes_per_s = bytes_per_s
        self._burst_s = burst_bytes / bytes_per_s
        self._read_until = 0.0

    def record_read(self, size: int, now: float) -> float:
        """Note that `size` bytes were read at `now`, and return the seconds until their reader may read more."""
        self._read_until = max(self._read_until, now - self._burst_s) + size / self._bytes_per_s
        return max(0.0, self._read_until - now)


BEGINNING_BYTES: Final = 128 * 1024
LONG_BEGINNING_BYTES: Final = 4 * 1024 * 1024
"""More than kube-apiserver accepts from a user: no field before the object is longer."""


class LargeBody:
    """The bytes of a body that have arrived so far."""

    __slots__ = ("__weakref__", "_memory", "_size")

    def __init__(self, capacity: int, came: Iterable[bytes] = ()) -> None:
        """Map memory for `capacity` bytes, and store the pieces that came already."""
        self._memory = mmap.mmap(-1, max(1, capacity))
        self._size = 0
        _HELD.add(self)
        for piece in came:
            self.append(piece)

    def __len__(self) -> int:
        return self._size

    def append(self, piece: bytes) -> None:
        """Store the next piece; bytes beyond the capacity are dropped."""
        end = min(self._size + len(piece), len(self._memory))
        self._memory[self._size : end] = piece[: end - self._size]
        self._size = end

    def pieces(self) -> Iterator[bytes]:
        """Yield the body in pieces of at most BEGINNING_BYTES."""
        for begin in range(0, self._size, BEGINNING_BYTES):
            yield self._memory[begin : min(self._size, begin + BEGINNING_BYTES)]

    def beginnings(self) -> Iterator[bytes]:
        """Yield the beginning of the body twice: at most BEGINNING_BYTES of it, then at most LONG_BEGINNING_BYTES."""
        for most in (BEGINNING_BYTES, LONG_BEGINNING_BYTES):
            yield self._memory[: min(self._size, most)]

    def close(self) -> None:
        """Give the memory back; the body is empty afterwards."""
        self._memory.close()
        self._size = 0


_HELD: Final[weakref.WeakSet[LargeBody]] = weakref.WeakSet()
"""All open bodies of this process, which a fork inherits."""


def close_all_bodies() -> None:
    """Close the bodies of all calls in a process that was forked just now."""
    for body in tuple(_HELD):
        body.close()


FREE_BYTES: Final = 64 * 1024
"""A connection reads this much of each body in advance; most reviews are a tenth of it. Larger bodies have their own
memory, and are evaluated in a worker: decoding a TrainJob of 60 KB takes 1 to 2 ms, and a hostile body of twice this
size 5 ms.
"""
DRAINED_FACTOR: Final = 4
"""A body declared up to this many times the limit is read and thrown away before 413 is sent, because a client that is
still writing would see a reset connection instead of the answer; beyond that the connection just closes."""
BYTES_PER_S: Final = 64 * 1024 * 1024
"""The rate at which all large bodies together are read. TLS decrypts a few hundred MB/s, and no other call is
answered meanwhile.
"""
BURST_BYTES: Final = 2 * 1024 * 1024
"""This number of bytes is read at once, without the limit of BYTES_PER_S. It is more than an API server stores in one
object.
"""
DISCARDED_BYTES_PER_S: Final = 16 * 1024 * 1024
"""The rate at which discarded bodies are read: they are not urgent."""
MAX_WAITING: Final = 16
"""How many calls wait in the queue. Each holds up to 640 KB that TLS read before it could stop. If more calls wait, the
last call of the address with the most bodies is refused.
"""


class IncompleteBodyError(CallError):
    """The error for a body that was not whole before the deadline, or is too large. `came` has its beginning."""

    def __init__(self, error: CallError, came: LargeBody) -> None:
        super().__init__(error.code, error.reason, error.message)
        self.came = came


class ClientGone(Exception):
    """The client closed the connection before its whole body had arrived."""


class _BodyPieces(Protocol):
    """Something that stores the pieces of a body."""

    def append(self, piece: bytes, /) -> None:
        """Store the next piece."""
        ...


class _NoClock(ClientClock):
    """Replaces the clock for a call that came over no connection of this server."""

    def pause_clock(self) -> None:
        pass

    resume_clock = require_large_body_pace = pause_clock


_NO_CLOCK: Final = _NoClock()


class BodyBudget:
    """The memory budget for large bodies, and the queue of calls that wait for it.

    The queue is fair between clients: addresses take turns, and requests of one address are served in order of arrival.
    A smaller body does not go before a larger one. Event loop only.

    Attributes:
        reserved: bytes given out now.
        pace: the rate of reading these bodies.
        discarding: the rate of reading discarded bodies.
    """

    def __init__(self, total_bytes: int) -> None:
        self.total_bytes = total_bytes
        self.reserved = 0
        self.pace = ReadingPace(BYTES_PER_S, BURST_BYTES)
        self.discarding = ReadingPace(DISCARDED_BYTES_PER_S, BURST_BYTES)
        self._queues: dict[str, deque[tuple[int, asyncio.Future[None]]]] = {}

    @property
    def waiting_call_count(self) -> int:
        """Return how many calls wait for bytes of the budget."""
        return sum(map(len, self._queues.values()))

    async def reserve(self, size: int, address: str) -> None:
        """Wait until `size` bytes are reserved; the caller must `release` them.

        Raises:
            CallError: 429 when too many wait already.
        """
        if not self._queues and self._fits(size):
            self.reserved += size
            return
        if self.waiting_call_count >= MAX_WAITING:
            self._refuse_one_waiting_call(address)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(address, deque()).append((size, turn))
        try:
            await turn
        except asyncio.CancelledError:
            self._leave(size, turn, address)
            raise

    def _refuse_one_waiting_call(self, address: str) -> None:
        """Refuse the last call of the address with the longest queue, or the new call if the new call has this address.

        Raises:
            CallError: 429, for the new call.
        """
        longest = max(self._queues.values(), key=len)
        if len(longest) <= len(self._queues.get(address, ())) + 1:
            raise self.budget_full_error()
        _, turn = longest.pop()
        if not turn.done():
            turn.set_exception(self.budget_full_error())

    def release(self, size: int) -> None:
        """Return bytes to the budget, and serve the next call in the queue."""
        self.reserved -= size
        self._serve_waiting_calls()

    def budget_full_error(self) -> CallError:
        """Return the error for a call that gets no place or no turn in the queue."""
        text = f"other calls fill the {self.total_bytes} bytes for large bodies; try again"
        return CallError(429, "TooManyRequests", f"{text}, or raise --max-inflight-body-bytes if this happens often")

    def _fits(self, size: int) -> bool:
        """Return whether `size` bytes fit the budget now; a body larger than the whole budget is read alone."""
        return self.reserved + size <= self.total_bytes or not self.reserved

    def _serve_waiting_calls(self) -> None:
        """Serve the queue while the budget lasts; an address that was served moves to the end."""
        while self._queues:
            address, queue = next(iter(self._queues.items()))
            size, turn = queue[0]
            if not turn.cancelled():
                if not self._fits(size):
                    return
                self.reserved += size
                turn.set_result(None)
            queue.popleft()
            del self._queues[address]
            if queue:
                self._queues[address] = queue

    def _leave(self, size: int, turn: asyncio.Future[None], address: str) -> None:
        if turn.done() and not turn.cancelled():  # it was reserved at the same moment
            self.release(size)
            return
        queue = self._queues.get(address, deque())
        if (size, turn) in queue:
            queue.remove((size, turn))
            if not queue:
                del self._queues[address]
        self._serve_waiting_calls()  # a smaller body may wait behind it


class BodyReader:
    """Reads one body: `async with BodyReader(…) as body` keeps the reserved memory until the answer is computed."""

    __slots__ = ("_budget", "_clock", "_deadline", "_first", "_length", "_limit", "_receive", "_reserved", "_scope")

    def __init__(
        self,
        budget: BodyBudget,
        scope: Scope,
        receive: Receive,
        *,
        length: int | None,
        limit: int,
        deadline: float,
        first: Message | None = None,
    ) -> None:
        """Create a reader for a body; at most its first message was read.

        Args:
            budget: the budget in which large bodies are reserved.
            scope: the scope of the call, with the client and its clock.
            receive: returns the pieces.
            length: the declared length, None for a streamed body.
            limit: the most bytes of a body.
            deadline: the time on the monotonic clock after which the answer is useless.
            first: the message that was already received.
        """
        self._budget = budget
        self._scope = scope
        self._receive = receive
        self._length = length
        self._limit = limit
        self._deadline = deadline
        self._first = first
        self._reserved = 0
        self._clock: ClientClock = scope.get("extensions", {}).get(CLOCK, _NO_CLOCK)

    async def __aenter__(self) -> bytes | LargeBody:
        """Read the whole body and return it.

        Raises:
            CallError: 429 when too many wait.
            IncompleteBodyError: 413 if it is longer than the limit, declared or not; 429 if its turn did not come
                before the deadline; 408 if it was not complete by then.
            ClientGone: the client went away.
        """
        try:
            return await self._read()
        except BaseException:
            self._release()
            raise

    async def __aexit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._release()

    async def _read(self) -> bytes | LargeBody:
        length = self._length
        if length is not None and length > self._limit:
            raise await self._discard_rest_of_body(length, LargeBody(BEGINNING_BYTES))
        if length is not None and length > FREE_BYTES:
            return await self._read_reserved(length, [])
        chunks: list[bytes] = []
        size, more = await self._collect(chunks, 0, FREE_BYTES)
        if size > self._limit:
            raise await self._discard_rest_of_body(size, LargeBody(BEGINNING_BYTES, chunks), more=more)
        if not more:
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)
        return await self._read_reserved(self._limit, chunks)

    async def _read_reserved(self, reserved: int, chunks: list[bytes]) -> bytes | LargeBody:
        """Return the body after reserving memory for it; both must end before the call's deadline."""
        clock, size, more = self._clock, sum(map(len, chunks)), True
        body: LargeBody | None = None
        try:
            async with asyncio.timeout(self._deadline - monotonic()):
                if not chunks:  # its first piece, with the sender and the operation, is read without a budget
                    size, more = await self._collect(chunks, 0, 0)
                clock.pause_clock()
                await self._budget.reserve(reserved, client_address(self._scope))
                self._reserved = reserved
                clock.require_large_body_pace()
                body = LargeBody(reserved, chunks)
                chunks.clear()
                if more:
                    size, more = await self._collect(body, size, self._limit)
        except TimeoutError:
            came = LargeBody(size, chunks) if body is None else body
            chunks.clear()  # which the error would keep with this frame
            raise IncompleteBodyError(self._late_body_error(), came) from None
        finally:
            clock.resume_clock()
        if size > self._limit:
            begun = LargeBody(BEGINNING_BYTES, islice(body.pieces(), 1))
            self._release()
            body.close()
            raise await self._discard_rest_of_body(size, begun, more=more)
        return body

    async def _collect(self, into: _BodyPieces, size: int, most: int) -> tuple[int, bool]:
        """Append pieces of the body until it ends or is longer than `most` bytes.

        Returns:
            The bytes, and whether more follow.
        """
        more = True
        while more and size <= most:
            message = await self._next()
            chunk: bytes = message.get("body", b"")
            more = message.get("more_body", False)
            size += len(chunk)
            into.append(chunk)
            if self._reserved and more and (pause := self._budget.pace.record_read(len(chunk), monotonic())):
                await self._pause_reading(pause)
        return size, more

    async def _pause_reading(self, seconds: float) -> None:
        """Pause reading for some seconds without charging the client."""
        self._clock.pause_clock()
        await asyncio.sleep(seconds)
        self._clock.resume_clock()

    async def _discard_rest_of_body(self, size: int, begun: LargeBody, *, more: bool = True) -> CallError:
        """Read and drop the rest of a too long body, and return the error with the body's beginning.

        It needs no budget. Of a far too long body, only the first piece is read.
        """
        read = 0 if self._length is not None else size
        most = DRAINED_FACTOR * self._limit
        while more and monotonic() < self._deadline and (not len(begun) or (size <= most and read <= most)):
            try:
                async with asyncio.timeout(self._deadline - monotonic()):
                    message = await self._next()
            except TimeoutError:
                break
            piece: bytes = message.get("body", b"")
            begun.append(piece)
            came = len(piece)
            read += came
            more = message.get("more_body", False)
            if more and (pause := self._budget.discarding.record_read(came, monotonic())):
                await self._pause_reading(min(pause, max(0.0, self._deadline - monotonic())))
        text = f"the body is larger than {self._limit} bytes (found {max(size, read)})"
        error = CallError(413, "RequestEntityTooLarge", f"{text}; raise --max-body-bytes to accept it")
        return IncompleteBodyError(error, begun)

    async def _next(self) -> Message:
        message, self._first = self._first or await self._receive(), None
        if message["type"] == "http.disconnect":
            raise ClientGone
        return message

    def _late_body_error(self) -> CallError:
        if not self._reserved:
            return self._budget.budget_full_error()
        return CallError(408, "RequestTimeout", "the body was not whole before the call's deadline; see ?timeout=")

    def _release(self) -> None:
        if self._reserved:
            self._budget.release(self._reserved)
            self._reserved = 0
