"""One connection of a client: the socket, TLS, the client's clock, and the requests, one at a time.

uvicorn counts and drains the connection like its own protocols. client_clock.py says what the client must send in time;
http_exchange.py parses the requests. If a client sends a request before the answer to the previous request, the
connection is closed after this answer, and the client sends the request again (RFC 9112, section 9.3.2). If a client is
late or sends too much, its connection is aborted, because `close()` would wait until the client has read everything.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from webhook.errors import describe_fault
from webhook.server import operating_system
from webhook.server.client_clock import CLOCK, ClientClock, ConnectionTimeouts
from webhook.server.http_exchange import PATHS, AsgiApp, Exchange, RequestParser, refusal
from webhook.server.request_body import FREE_BYTES, ReadingPace
from webhook.server.server_parts import ServerParts
from webhook.server.tls import Certificates, HandshakeLog, TlsStream, certificate_names
from webhook.server.usage import handshake_tenant

CLIENT_GONE: Final = "the client is gone"
"""The message that cancels the task of a review when its connection ends."""
HANDSHAKE_S: Final = 0.003
"""Seconds of the event loop for one connection with ECDSA P-256, from accept to end. A connection took 1 ms on a fast
core, and 2.2 to 3.1 ms on a shared core. With a lower value, an address that connects without end would stay light.
"""
_READ_BYTES: Final = 64 * 1024
"""The maximum number of bytes of one read. For larger blocks the allocator asks the system, which is slow."""
_REFUSED_S: Final = 0.1
"""Seconds for a client to read the answer after the server has stopped reading."""
_ANSWERED_BYTES_PER_S: Final = 16 * 1024 * 1024
_ANSWERED_BURST: Final = 1024 * 1024
"""The pace of reading bodies that were already answered, and the bytes without a pace, for all connections of a port.
"""
_DISCARDED_BYTES: Final = 16 * 1024
"""The maximum number of bytes read after the end of a request: the client's goodbye, and bytes that the client has
already sent.
"""
_UNREAD_BYTES: Final = 8 * 1024
"""An answer with this many unsent bytes is unread. Most answers have 200 bytes."""
_NOTICED_BYTES: Final = 4 * 1024
"""The change of a connection's bytes after which all connections of its port are compared again."""


class _Register(Protocol):
    # ConnectionLimit, which knows this class

    def admit(self, connection: HttpConnection) -> None: ...
    def mark_answered(self, connection: HttpConnection) -> None: ...
    def change_held_bytes(self, connection: HttpConnection, change: int) -> None: ...
    def forget(self, connection: HttpConnection) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """The shared state of the connections of one listening socket.

    Attributes:
        application: answers requests: the endpoint of reviews (review_endpoint.py), or the pages.
        register: counts the connections.
        timeouts: how long a client may take.
        tls: None for plain HTTP.
        handshakes: the log of failed handshakes.
        parts: what the parts of the server share.
        state: uvicorn's ServerState: the connections and tasks to wait for at a stop, and the headers of each answer.
        answered_bodies: the pace of reading bodies that were already answered.
        buffer: for the next bytes of any connection.
    """

    application: AsgiApp
    register: _Register
    timeouts: ConnectionTimeouts
    tls: Certificates | None
    handshakes: HandshakeLog
    parts: ServerParts
    state: Any
    answered_bodies: ReadingPace = field(default_factory=lambda: ReadingPace(_ANSWERED_BYTES_PER_S, _ANSWERED_BURST))
    buffer: memoryview = field(default_factory=lambda: memoryview(bytearray(_READ_BYTES)))


class HttpConnection(ClientClock, asyncio.BufferedProtocol):
    """One connection.

    Attributes:
        address: the client's address, without the port.
        trusted: the authority that accepted the client's certificate; None without TLS.
        is_ended: nothing more is read from the client.
        held_bytes: received and unanswered bytes, except large bodies, which have a budget.
        exchange: the last request with a whole head, and its answer; None before the first.
    """

    transport: asyncio.Transport

    def __init__(self, port: Port) -> None:
        self.loop = asyncio.get_running_loop()
        self._port = port
        self.address = ""
        self._client: tuple[Any, ...] = ("", 0)
        self.trusted = port.tls.current.trusted if port.tls else None
        self._tls = TlsStream(port.tls.current.context) if port.tls else None
        self._handshake: asyncio.Task[None] | None = None
        self._parser: RequestParser | None = None
        self._extensions: dict[str, Any] = {CLOCK: self}
        self.is_ended = self._is_parting = False
        self._has_turn = self._is_throttled = self._is_held = self._is_paused = False
        self._is_undrained = False
        self._unread_since = 0.0
        self._drained: asyncio.Future[None] | None = None
        self.held_bytes = self._unanswered_bytes = self._discarded_bytes = 0
        self.exchange: Exchange | None = None
        self._review: asyncio.Task[None] | None = None

    @property
    def is_new(self) -> bool:
        """Return whether no byte of the first request has arrived yet."""
        return self.state in ("handshake", "first_byte")

    # ---- the socket

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection, and start to wait for its handshake or its first byte."""
        self.transport = transport
        self._client = transport.get_extra_info("peername") or ("", 0)
        self.address = self._client[0]
        shared = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "scheme": "http" if self._tls is None else "https",
            "root_path": "",
            "client": self._client,
            "server": transport.get_extra_info("sockname"),
            "extensions": self._extensions,
        }
        self._parser = RequestParser(self, shared, self._port.state.default_headers)
        self._port.register.admit(self)
        self._port.state.connections.add(self)
        self.enter("handshake" if self._tls is not None else "first_byte")

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - the signature is asyncio's
        """Return the shared buffer; received bytes are used at once."""
        return self._port.buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Continue the handshake, or decrypt and parse the received bytes."""
        data = self._port.buffer[:nbytes]
        if self.is_ended or self.state == "goodbye":
            self._discard(len(data))
        elif self._tls is None:
            self.count_large_body(len(data))
            self._parse(bytes(data))
            self._weigh(len(data))
        else:
            self.count_large_body(len(data))
            self._tls.receive(data)
            if self.state == "handshake":
                self._continue_handshake()
            else:
                self._decrypt()
            self._weigh(len(data))
            if self._is_held:
                self._pause_when_full()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the signature is asyncio's
        """Stop the review, because its client is gone, and break the reference cycles of the connection."""
        self._port.register.forget(self)
        self._port.state.connections.discard(self)
        if self.state == "handshake":
            self._port.handshakes.failed(self._peer, None)
        for task in (self._review, self._handshake):
            if task is not None:
                task.cancel(CLIENT_GONE)
        self._abandon_request()
        self.is_ended = True
        self.resume_writing()
        self._extensions.clear()
        if self._parser is not None:
            self._parser.close()
        self._parser = self._review = self._handshake = None
        self.exchange = None

    def _abandon_request(self) -> None:
        if self.exchange is not None:
            self.exchange.abandon()

    def pause_writing(self) -> None:
        """Let answers wait until the client has read more."""
        self._drained = self.loop.create_future()

    def resume_writing(self) -> None:
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        self._drained = None

    async def drain(self) -> None:
        """Wait until the client has read more."""
        if self._drained is not None:
            await self._drained

    def write(self, data: bytes | memoryview) -> None:
        self.transport.write(data if self._tls is None else self._tls.encrypt(data))

    def abort(self) -> None:
        """End the connection at once, in any state."""
        if self.state == "handshake":
            self.enter("goodbye")
        self.is_ended = True
        self.transport.abort()

    def update_reading(self) -> None:
        """Decrypt and parse the received bytes, or hold them back, depending on the state."""
        is_full = self.exchange is not None and self.exchange.buffered_bytes > FREE_BYTES
        awaits_turn = self._handshake is not None and not self._has_turn
        was_held = self._is_held
        self._is_held = self._is_throttled or awaits_turn or is_full
        self._pause_when_full()
        if was_held and not self._is_held and self._tls is not None:
            self.loop.call_soon(self._decrypt)

    def _pause_when_full(self) -> None:
        # with few held bytes the transport still reads, to notice when the client is gone
        is_full = self._is_held and (self._tls is None or self._tls.waiting_bytes > FREE_BYTES)
        if is_full == self._is_paused or self.is_ended or self.transport.is_closing():
            return
        self._is_paused = is_full
        if is_full:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def has_unread(self) -> bool:
        """Return whether bytes of a request wait in the buffers of the system or of TLS."""
        if self._tls is not None and self._tls.waiting_bytes:
            return True
        return operating_system.is_readable(self.transport.get_extra_info("socket"))

    @property
    def _peer(self) -> str:
        host, number = self._client[:2]
        return f"[{host}]:{number}" if ":" in host else f"{host}:{number}"

    def _discard(self, size: int) -> None:
        # a few bytes are read after the end, to notice when the client closes its side
        self._discarded_bytes += size
        if self._discarded_bytes > _DISCARDED_BYTES and not self.transport.is_closing():
            self.transport.pause_reading()

    def _weigh(self, size: int) -> None:
        # twice FREE_BYTES at most: above that, memory is reserved for the body, or the body is discarded
        if self._large_body_bytes is None and self.state not in ("idle", "goodbye"):
            self._unanswered_bytes = min(self._unanswered_bytes + size, 2 * FREE_BYTES)
        else:
            self._unanswered_bytes = 0
        held_bytes = self._unanswered_bytes + (self._tls.waiting_bytes if self._tls is not None else 0)
        change = held_bytes - self.held_bytes
        if abs(change) >= _NOTICED_BYTES:
            self.held_bytes = held_bytes
            self._port.register.change_held_bytes(self, change)

    # ---- TLS

    def _continue_handshake(self) -> None:
        # the first step costs most: it waits for its turn and for a whole record
        tls = self._tls
        assert tls is not None
        if not self._has_turn:
            if self._handshake is None and tls.has_whole_record:
                self._handshake = self.loop.create_task(self._begin_handshake_in_turn())
                self.update_reading()
            return
        try:
            is_done = tls.continue_handshake()
        except ssl.SSLError as error:
            self._port.handshakes.failed(self._peer, error)
            self._end_tls()
            return
        self._send_outgoing()
        if is_done and self._is_client_allowed(tls):
            self.enter("first_byte")
            self._decrypt()
        elif is_done:
            self.abort()

    async def _begin_handshake_in_turn(self) -> None:
        scheduler, tenant = self._port.parts.scheduler, handshake_tenant(self.address)
        await scheduler.wait_for_turn(tenant)
        scheduler.worked(tenant, HANDSHAKE_S)
        if not self.is_ended:
            self._has_turn = True
            self.update_reading()
            self._continue_handshake()

    def _is_client_allowed(self, tls: TlsStream) -> bool:
        """Return whether the client's authority is still trusted and its certificate has one of the allowed names."""
        port = self._port
        if port.tls is not None and self.trusted != port.tls.current.trusted:
            return False  # the authority was replaced during the handshake; the client may try again
        allowed_names = port.parts.settings.client_name
        if not self.trusted or not allowed_names:
            return True
        names = certificate_names(tls.client_certificate())
        if set(names) & set(allowed_names):
            return True
        port.handshakes.refused(self._peer, names, allowed_names)
        return False

    def _decrypt(self) -> None:
        tls = self._tls
        if tls is None or self.is_ended:
            return
        while not self._is_held and not self.is_ended and self.state != "goodbye":
            try:
                data = tls.read()
            except ssl.SSLError:
                self._abandon_request()  # OpenSSL encrypts no answer any more
                self._end_tls()
                return
            if data is None:
                break
            if data:
                self._parse(data)
            elif tls.has_ended:
                self._end_tls()
                return
        self._send_outgoing()

    def _send_outgoing(self) -> None:
        if self._tls is not None and (outgoing := self._tls.take_outgoing()):
            self.transport.write(outgoing)

    def _end_tls(self) -> None:
        # sends the alert of TLS, if there is one
        self._send_outgoing()
        self.is_ended = True
        self.enter("goodbye")
        self.transport.close()

    # ---- requests

    def _parse(self, data: bytes) -> None:
        if self._parser is not None:
            self._parser.feed(data)

    @property
    def may_stay_open(self) -> bool:
        return not (self._is_parting or self._port.parts.readiness.draining)

    def begin_request(self) -> bool:
        """Start the clock of the headers, and return True. If the previous request has no answer yet, stop reading,
        close the connection after this answer, and return False.
        """
        if self.exchange is not None and not self.exchange.is_answered:
            self.is_ended = True
            self.exchange.keeps_alive = False
            return False
        self.enter("headers")
        return True

    def start(self, exchange: Exchange) -> None:
        """Start to answer a request, while its body arrives."""
        self.exchange = exchange
        self.enter("body")
        task = self.loop.create_task(exchange.run(self._port.application))
        tasks = self._port.state.tasks
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        self._review = task if exchange.scope["path"] in PATHS else None

    def end_request(self) -> None:
        """Stop the client's clock, because the client now waits for the answer."""
        assert self.exchange is not None
        self.exchange.end_body()
        self.enter("idle" if self.exchange.is_answered else "serving")

    def throttle_answered_body(self, size: int) -> None:
        """Slow down the reading of a body that was already answered, to the pace that all such bodies share."""
        pause = self._port.answered_bodies.record_read(size, self.loop.time())
        if pause:
            self._is_throttled = True
            self.update_reading()
            self.loop.call_later(pause, self._end_throttling)

    def _end_throttling(self) -> None:
        self._is_throttled = False
        self.update_reading()

    # ---- answers

    def record_application_error(self, error: Exception) -> None:
        """Log and count an error that an application raised."""
        fields = describe_fault(error)
        self._port.parts.counters.uncaught[str(fields["error"]),] += 1
        self._port.parts.log.error("internal fault", **fields)

    def end_answer(self, exchange: Exchange) -> None:
        """After an answer, close the connection, or wait for the next request."""
        self._is_undrained = True
        self._port.register.mark_answered(self)
        if self.transport.is_closing() or self.state == "goodbye":
            return
        if self._is_parting or not exchange.keeps_alive:
            self._part()
        else:
            if self.state == "serving":
                self.enter("idle")
            self.update_reading()
        self._unanswered_bytes = 0
        self._weigh(0)

    def _part(self) -> None:
        # in the middle of a body, reading stops first, so that the client can read the answer
        if self.state == "body":
            self.is_ended = True
            self.loop.call_later(_REFUSED_S, self.transport.abort)
            return
        if self._tls is not None:
            self.transport.write(self._tls.goodbye())
        if self._is_paused:
            self._is_paused = False
            self.transport.resume_reading()
        self.transport.write_eof()
        self.enter("goodbye")

    def refuse(self, code: int, reason: str, message: str) -> None:
        """Stop reading. Answer the current request with a metav1.Status, unless its answer has begun. The client has
        _REFUSED_S to read the answer.
        """
        self.is_ended = True
        if self.state == "headers" or self.exchange is None or not self.exchange.has_begun_answer:
            self._abandon_request()
            self.write(refusal(code, reason, message))
        self.loop.call_later(_REFUSED_S, self.transport.abort)
        self.enter("serving")

    # ---- the end

    def shutdown(self) -> None:
        """Close an idle connection now, and a busy connection after its answer. uvicorn calls this when it stops."""
        self.close_after_next_answer()
        self.close_if_unused()

    def close_after_next_answer(self) -> None:
        """Close the connection after the next answer, or after the answer to a request that has arrived already."""
        self._is_parting = True

    def close_if_unused(self) -> None:
        """Close a connection without a request, unless bytes of a request wait in a buffer."""
        if self.state in ("first_byte", "idle") and not self.transport.is_closing() and not self.has_unread():
            self._part()

    def exceeded_timeout(self, now: float) -> str:
        """Return the name of the timeout that the client has exceeded, or "".

        Regular calls also note when the client stopped reading.
        """
        timeouts = self._port.timeouts
        if not self._has_unread_answer():
            self._unread_since = 0.0
        else:
            self._unread_since = self._unread_since or now
            if self.state == "goodbye":
                self.since = now
            if now - self._unread_since > timeouts.answer_s:
                return "answer"
        return self.state if self.is_late(timeouts, now) else ""

    def end_late(self) -> None:
        if self.state == "handshake":
            self._port.handshakes.failed(self._peer, TimeoutError())
        self.abort()

    def _has_unread_answer(self) -> bool:
        # much of the answer is unsent because the client does not read it
        if self.transport.get_write_buffer_size():
            return True
        if self._is_undrained:  # the buffer of the system may hold the answer
            self._is_undrained = operating_system.unsent_bytes(self.transport.get_extra_info("socket")) >= _UNREAD_BYTES
        return self._is_undrained
