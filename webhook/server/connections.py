"""One connection of a client: what the server waits for, since when, and the limits of its requests.

It knows uvicorn's httptools protocol, the clock and the paths of reviews. uvicorn by itself keeps a connection open for
minutes that sends nothing, half its headers or half a body, and reads 19 MB of headers. Each state of a connection has
a timeout; the clock stops while the client waits for the server. A connection whose client is late ends with
`transport.abort()`. `close()` would wait until the client has read everything, which an attacker never does.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, TypeAlias

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from webhook.apimachinery.attributes import Phase
from webhook.server import operating_system
from webhook.server.answer_writer import AnswerWriter, refusal
from webhook.server.request_head import (
    MAX_FRAMING_BYTES,
    MAX_HEADER_BYTES,
    MAX_LATE_BYTES,
    MAX_UNHEARD_BYTES,
    RequestHead,
)
from webhook.server.tls import RecordwiseTlsObject

Awaited: TypeAlias = Literal["first_byte_s", "headers_s", "body_s", "idle_s", ""]
"""Which timeout runs, as a field of ConnectionTimeouts; "" while the server computes the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionTimeouts:
    """How many seconds a client may take.

    handshake_s: for the TLS handshake. first_byte_s: from then to the first byte of a request. headers_s, body_s: for
    each whole. held_s, held_bytes_per_s: for a large body, for which memory is held, the first seconds are free and
    then this pace is due; 20 MiB may take 7 s, so that a call behind it in the queue still has time for its own.
    answer_s: to read what was sent. goodbye_s: to close its side. idle_s: between requests; an API server reuses idle
    connections for 90 s, and does not retry a POST that meets a closed one.
    """

    handshake_s: float = 5.0
    first_byte_s: float = 5.0
    headers_s: float = 5.0
    body_s: float = 10.0
    held_s: float = 2.0
    held_bytes_per_s: float = 4 * 1024 * 1024
    answer_s: float = 10.0
    goodbye_s: float = 1.0
    idle_s: float = 120.0


IDLE: Final[Awaited] = "idle_s"


class ClientClock:
    """The clock of one client.

    Attributes:
        loop: whose time counts.
        waits_for, since: what the client owes, and since when on the loop's clock.
    """

    loop: asyncio.AbstractEventLoop
    waits_for: Awaited = ""
    since = 0.0
    _paused_at: float | None = None
    _is_held = False
    _received = 0

    def pause_clock(self) -> None:
        """Stop the client's clock: from now on the client waits for the server."""
        if self._paused_at is None:
            self._paused_at = self.loop.time()

    def resume_clock(self) -> None:
        """Start the client's clock again without the time since `pause_clock`."""
        if self._paused_at is not None:
            self.since += self.loop.time() - self._paused_at
            self._paused_at = None

    def require_large_body_pace(self) -> None:
        """Require the body to arrive at the pace of large bodies, because memory is reserved for it."""
        if self.waits_for == "body_s":
            self._start_waiting_for_client("body_s")
            self._is_held, self._received = True, 0

    @property
    def is_new(self) -> bool:
        """Return whether no byte of the first request has arrived yet."""
        return self.waits_for == "first_byte_s"

    @property
    def is_idle(self) -> bool:
        """Return whether every request of the connection is answered."""
        return self.waits_for == IDLE

    def _exceeded_wait(self, timeouts: ConnectionTimeouts, now: float) -> str:
        """Return the field of `timeouts` that says how long the client may take, if it has taken longer, or ""."""
        if not self.waits_for or self._paused_at is not None:
            return ""
        return self.waits_for if now - self.since > self._allowed_seconds(timeouts) else ""

    def _allowed_seconds(self, timeouts: ConnectionTimeouts) -> float:
        bound: float = getattr(timeouts, self.waits_for)
        if self._is_held:
            bound = min(bound, timeouts.held_s + self._received / timeouts.held_bytes_per_s)
        return bound

    def _start_waiting_for_client(self, what: Awaited) -> None:
        self.waits_for = what
        self.since = self.loop.time()
        self._paused_at = None
        self._is_held = False


PATHS: Final = {f"/{phase.value}": phase for phase in Phase}
"""The phase of a review by the path that it is sent to."""
MAX_PIPELINED: Final = 8
"""Requests that may follow one another before the first is answered. Go never does that; 256 KB of them, read at one
time, would be 14,000, and cost 40 MB."""
_REFUSED_S: Final = 0.1
_UNREAD_BYTES: Final = 8 * 1024
"""How many unsent bytes count as an unread answer: most answers have 200 bytes and may be on their way."""
CLOCK: Final = "claimgate.client_clock"
"""The name in a scope's `extensions` under which an application finds the connection's clock."""
CLIENT_GONE: Final = "the client is gone"
"""The message with which the task of a review is cancelled when its connection ends."""


class BoundedConnection(ClientClock, HttpToolsProtocol):
    """uvicorn's HTTP/1.1 connection that knows what its client owes, so that `abort_overdue` can tell.

    Attributes:
        address: of the client, without the port.
        register: told when the first request is completed, when buffers grow and when the connection is gone.
        admits: asked once after the handshake; a connection that it refuses is aborted before any HTTP is read.
        handshake: the task that connects it, until that is done.
        is_ended: it was told that nothing more is taken from it.
        is_parting: it is closed after the next answer, which says so.
        is_proven: a request was answered.
        is_last: asked for each request, whether the connection is closed after its answer because the server stops.
        trusted: the authority that the client's certificate was compared with; None without TLS.
        largest_read: bytes that came at one time; the TLS layer keeps 2 to 3 times as much until the connection ends.
    """

    address = ""
    register: Register | None = None
    admits: Callable[[asyncio.Transport], bool] | None = None
    handshake: asyncio.Task[None] | None = None
    is_refused = is_ended = is_parting = False
    is_proven = False
    is_last: Callable[[], bool] = staticmethod(lambda: False)
    trusted: bytes | None = None
    largest_read = 0
    _header_bytes = 0
    _begun = 0
    _head = RequestHead()
    _refusal: tuple[int, str, str] | None = None
    _unanswered = _unheard_bytes = _unheard_now = _framing_bytes = 0
    _unread_since = 0.0
    _is_undrained = False
    _closing_since = 0.0
    _review: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start to measure how long the client takes to send its first byte."""
        self._extensions: dict[str, Any] = {CLOCK: self}
        if self.admits is not None and not self.admits(transport):
            self.is_refused = True
            self.transport = transport
            transport.abort()
            return
        super().connection_made(transport)
        self._answers = AnswerWriter(transport, self._close)
        self._start_waiting_for_client("first_byte_s")

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the review that nobody waits for any more, and remove what would keep the connection in memory."""
        if self._review is not None:
            self._review.cancel(CLIENT_GONE)
        if self.register is not None:
            self.register.forget(self)
        self._extensions.clear()
        self._drop_pipelined_requests()
        if not self.is_refused:
            self._answers.release_close_callback()
            super().connection_lost(exc)

    def release_parser(self) -> None:
        """Release the parser of a connection that was never established, since parser and connection refer to each
        other.

        Thousands of failed handshakes would else wait in memory for the garbage collector.
        """
        self.parser = None  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        """Pass the bytes to the parser, and refuse headers that are too long and bodies with too much framing."""
        if self.is_refused or self.is_ended:
            return
        if len(data) > self.largest_read:
            self._record_largest_read(len(data))
            if self.transport.is_closing():  # too much was read of all
                return
        if self._is_held:
            self._received += len(data)
        self._begun, self._unheard_now, waited_for = 0, 0, self.waits_for
        self._framing_bytes += len(data)
        super().data_received(data)
        if self.is_ended:  # refused by now
            return
        if self._unheard_now:
            self._throttle_answered_body()
        if self.waits_for != "body_s":  # between requests there is nothing to count
            self._framing_bytes = 0
        else:
            self._refuse_excessive_framing()
        if self.waits_for != "headers_s" or self._begun > 1 or waited_for == "body_s":
            self._header_bytes = 0  # or nobody knows where the last request began
            return
        self._header_bytes += len(data)
        if self._header_bytes > MAX_HEADER_BYTES and not self.transport.is_closing():
            self.refuse(431, "RequestHeaderFieldsTooLarge", f"the headers are longer than {MAX_HEADER_BYTES} bytes")

    def _throttle_answered_body(self) -> None:
        """Pause reading a body that was answered already, at the pace that all such bodies share."""
        pause = (
            self.register.throttle_answered_body(self._unheard_now, self.loop.time())
            if self.register is not None
            else 0.0
        )
        if pause and not self.transport.is_closing():
            self.flow.pause_reading()
            self.loop.call_later(pause, self.flow.resume_reading)

    def _refuse_excessive_framing(self) -> None:
        """Refuse a body that has more bytes of chunk headers and trailers than of data."""
        if self._framing_bytes > MAX_FRAMING_BYTES + self._head.body_bytes and not self.transport.is_closing():
            self.refuse(400, "BadRequest", "the body has more chunk headers and trailers than data; send larger chunks")

    def on_message_begin(self) -> None:
        """Start to measure how long the client takes to send its headers."""
        super().on_message_begin()
        self.scope["extensions"] = self._extensions
        self._begun += 1
        self._head = RequestHead()
        self._unheard_bytes = 0
        self._start_waiting_for_client("headers_s")

    def on_url(self, url: bytes) -> None:
        """Refuse a URL that is longer than a server needs."""
        self._head.check_url_size(len(self.url) + len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add one header to the request, or refuse the request. uvicorn's own method is not called: its work is done
        here.
        """
        headers = self.headers
        name = name.lower()
        self._head.check_header(name, value, len(headers))
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Start waiting for the body, and stop the client's clock when an earlier request is not answered yet."""
        self._head.check_all_headers(self.parser.get_http_version())
        self._start_waiting_for_client("body_s")
        super().on_headers_complete()
        if self.cycle is not None:  # of a request for another protocol uvicorn makes none
            self.cycle.transport = self._answers  # type: ignore[assignment]
            self.cycle.keep_alive = self.cycle.keep_alive and not (self.is_parting or self.is_last())
            self._unanswered += 1
        if self.pipeline:
            self.pause_clock()
            if len(self.pipeline) > MAX_PIPELINED:
                raise self._head.create_malformed_error(
                    f"more than {MAX_PIPELINED} requests came before the first answer"
                )

    def on_body(self, body: bytes) -> None:
        """Count one piece of the body, and refuse a body in too many small pieces or one that goes on after its
        answer.
        """
        self._head.count_body_piece(len(body))
        self._framing_bytes -= len(body)
        if self.cycle.response_complete:
            self._unheard_bytes += len(body)
            self._unheard_now += len(body)
            is_review = self.scope["method"] == "POST" and self.scope["path"] in PATHS
            if self._unheard_bytes > (MAX_LATE_BYTES if is_review else MAX_UNHEARD_BYTES):
                raise self._head.create_malformed_error("the body goes on after its answer")
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Stop the client's clock, since the server owes the answer now; start the idle timeout if the answer
        was sent.
        """
        self._start_waiting_for_client(IDLE if self.cycle.response_complete else "")
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request, for the rest of a body that was answered early, or start the next pipelined
        request.

        What uvicorn's own does is done here, but for the timer that it sets after each answer: `abort_overdue` looks.
        """
        self._answers.end_answer()
        self.server_state.total_requests += 1
        self._unanswered -= 1
        self._is_undrained = True
        if not self.transport.is_closing():
            self.flow.resume_reading()
            if self.pipeline:
                self._start_asgi_task(*self.pipeline.pop())
            elif self._refusal is not None and not self._unanswered:
                self._write_refusal()
        if self._paused_at is not None:
            self.resume_clock()
        if not self.waits_for and self.cycle.response_complete:
            self._start_waiting_for_client(IDLE)
        if not self.is_proven:
            self.is_proven = True
            if self.register is not None:
                self.register.mark_first_request_answered(self)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Start to answer a request as uvicorn does, and remember the task when it answers a review."""
        task = self.loop.create_task(cycle.run_asgi(app))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)
        self._review = task if cycle.scope["path"] in PATHS else None

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are not valid HTTP with a metav1.Status that names the cause."""
        error = sys.exception()
        told = self._head.wrong or f"{msg.rstrip('.').lower()}{f': {error}'.lower() if error else ''}"
        self.refuse(400, "BadRequest", told)

    def refuse(self, code: int, reason: str, message: str) -> None:
        """Stop reading, and answer with a metav1.Status once the earlier requests are answered; then close."""
        self._read_no_more()
        self._refusal = code, reason, message
        self._abandon_unread()
        if self._unanswered:
            self._start_waiting_for_client("")  # the client waits for us until then
        else:
            self._write_refusal()

    def _read_no_more(self) -> None:
        self.is_ended = True
        self.flow.pause_reading()  # close() would go on decrypting what else it sends,
        self.flow.read_paused = False  # and so would uvicorn, which resumes what it believes to be paused

    def _close(self) -> None:
        """Close after an answer; in the middle of a body wait _REFUSED_S first, so that the client can read the
        answer.
        """
        if self.waits_for != "body_s":
            self.transport.close()
        elif not self.is_ended:
            self._read_no_more()
            self.loop.call_later(_REFUSED_S, self.transport.abort)

    def _abandon_unread(self) -> None:
        """Drop the request whose body is being read, because the refusal is its answer."""
        cycle = self.cycle
        if cycle is None or self.waits_for != "body_s" or cycle.response_complete:
            return
        if self.pipeline and self.pipeline[0][0] is cycle:
            cycle.on_response = lambda: None
            self.pipeline.popleft()
        else:
            cycle.disconnected = True
            cycle.message_event.set()
        self._unanswered -= 1

    def _write_refusal(self) -> None:
        """Send the refusal, and abort the connection after _REFUSED_S."""
        assert self._refusal is not None
        self.transport.write(refusal(*self._refusal))
        self.loop.call_later(_REFUSED_S, self.transport.abort)

    def has_kept_server_waiting(self, now: float, least_s: float = 0.0) -> bool:
        """Return whether the server has waited for the client for at least `least_s` seconds."""
        owes = self.waits_for != "" or self.transport is None
        return owes and self._paused_at is None and now - self.since >= least_s

    def close_after_next_answer(self) -> None:
        """Close the connection after the next answer, or after the answer to a request that has arrived already."""
        self.is_parting = True
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.keep_alive = False

    def close_if_unused(self) -> None:
        """Close an idle connection unless bytes of a request wait in a buffer."""
        if (self.is_idle or self.is_new) and not self.transport.is_closing() and not self.has_unread():
            self.transport.close()

    def has_unread(self) -> bool:
        """Return whether bytes of a request wait in the buffers of the system or of TLS."""
        tls = self.transport.get_extra_info("ssl_object")
        if isinstance(tls, RecordwiseTlsObject) and tls.has_unread:
            return True
        connected = self.transport.get_extra_info("socket")
        return connected is not None and operating_system.is_readable(connected)

    def abort(self) -> None:
        """End the connection at once, whatever state it is in."""
        if self.transport is not None:
            self.transport.abort()
        elif self.handshake is not None:
            self.handshake.cancel()

    def exceeded_timeout(self, timeouts: ConnectionTimeouts, now: float) -> str:
        """Return the field of `timeouts` that the client has exceeded, or "".

        Called regularly: this is also where it is noticed since when the client does not read or does not part.
        """
        if self.transport.is_closing():
            self._closing_since = self._closing_since or now
            return "goodbye_s" if now - self._closing_since > timeouts.goodbye_s else ""
        if not self._has_unread_answer_bytes():
            self._unread_since = 0.0
        else:
            self._unread_since = self._unread_since or now
            if now - self._unread_since > timeouts.answer_s:
                return "answer_s"
        return self._exceeded_wait(timeouts, now)

    def _has_unread_answer_bytes(self) -> bool:
        """Return whether much of the answer is unsent because the client does not read it."""
        if self.transport.get_write_buffer_size():
            return True
        if self._is_undrained:  # TLS hides what the transport below it holds; the system's buffer is full, too, then
            self._is_undrained = operating_system.unsent_bytes(self.transport.get_extra_info("socket")) >= _UNREAD_BYTES
        return self._is_undrained

    def _drop_pipelined_requests(self) -> None:
        """Drop the pipelined requests, which are not answered any more and refer to the connection."""
        for cycle, _app in self.pipeline:
            cycle.on_response = lambda: None
        self.pipeline.clear()

    def _record_largest_read(self, size: int) -> None:
        grown, self.largest_read = size - self.largest_read, size
        if self.register is not None:
            self.register.add_read_bytes(self, grown)


class Register(Protocol):
    """Receives the progress of a connection, and counts it."""

    def mark_first_request_answered(self, connection: BoundedConnection) -> None:
        """Note that the first request of the connection was answered."""
        ...

    def add_read_bytes(self, connection: BoundedConnection, grown: int) -> None:
        """Note that the largest read of the connection is `grown` bytes larger than before."""
        ...

    def throttle_answered_body(self, size: int, now: float) -> float:
        """Count bytes of a body that was answered already, and return the seconds until more may be read."""
        ...

    def forget(self, connection: BoundedConnection) -> None:
        """Stop counting the connection: it has ended, or was never established."""
        ...
