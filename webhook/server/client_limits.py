"""The limits of one client: how long it may take, and how large the parts of one request may be.

Knows times, numbers and RFC 9112; nothing of sockets. A connection is in one state at each moment, each state has one
timeout, and no clock runs while the client waits for the server. `connection_limit.py` looks at all clocks five times a
second. The limits of URL, headers and pieces of the body are those beyond what the parser checks. Each keeps one client
from taking the loop's time or the server's memory before a review begins; the texts say which one was broken.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from webhook.settings.serving import DEFAULTS

State: TypeAlias = Literal["handshake", "first_byte", "headers", "body", "serving", "idle", "goodbye"]
"""The event that the server waits for: `serving` means none, because the client waits for its answer."""


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


CLOCK: Final = "claimgate.client_clock"
"""The name in a scope's `extensions` under which an application finds the connection's clock."""


class ClientClock:
    """The clock of one client.

    Attributes:
        loop: the event loop with the clock.
        state, since: what the server waits for, and since when on the loop's clock.
    """

    loop: asyncio.AbstractEventLoop
    state: State = "serving"
    since = 0.0
    _paused_at: float | None = None
    _large_body_bytes: int | None = None

    def enter(self, state: State) -> None:
        """Wait for something else from now on."""
        self.state = state
        self.since = self.loop.time()
        self._paused_at = self._large_body_bytes = None

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
        if self.state == "body":
            self.enter("body")
            self._large_body_bytes = 0

    def count_large_body(self, size: int) -> None:
        """Count received bytes, if a minimum speed is required."""
        if self._large_body_bytes is not None:
            self._large_body_bytes += size

    def has_kept_server_waiting(self, now: float, least_s: float = 0.0) -> bool:
        """Return whether the server has waited for the client for at least `least_s` seconds."""
        return self.state != "serving" and self._paused_at is None and now - self.since >= least_s

    def is_late(self, timeouts: ConnectionTimeouts, now: float) -> bool:
        """Return whether the client is late."""
        if self.state == "serving" or self._paused_at is not None:
            return False
        seconds: float = getattr(timeouts, f"{self.state}_s")
        if self._large_body_bytes is not None:
            seconds = min(seconds, timeouts.held_s + self._large_body_bytes / timeouts.held_bytes_per_s)
        return now - self.since > seconds


MAX_FRAMING_BYTES: Final = 64 * 1024
"""Bytes of chunk headers, extensions and trailers that are allowed in addition to the size of the body. The
parser collects them without bound.
"""
MAX_UNHEARD_BYTES: Final = 256 * 1024
"""Bytes by which a body may continue after its answer. Go's server reads as much before it closes (net/http, server.go,
maxPostHandlerReadBytes).
"""
MAX_LATE_BYTES: Final = DEFAULTS.max_body_bytes
"""The same for a review. A body that waits too long for memory is answered before it has arrived. A client that writes
the whole body first would otherwise see a reset connection and no answer.
"""
MAX_HEADER_BYTES: Final = 64 * 1024
"""kube-apiserver sends seven short headers; a client certificate or a token in them stays below 16 KB."""
MAX_HEADERS: Final = 200
"""An API server sends ten. Each costs a call in Python, and all headers of one read delay other clients."""
MAX_URL_BYTES: Final = 4 * 1024
"""An API server asks for a path and a timeout. The loop takes 15 ms to read a query of 64 KB, and every connection may
send one at the same time."""
MAX_SMALL_PIECES: Final = 200
_SMALL_PIECE_BYTES: Final = 256
"""A body in more pieces must have this number of bytes in each piece. One read of a body in chunks of a single byte has
40,000, and stops the loop for a tenth of a second; Go writes 4 KB at a time, and API servers declare the length."""
_SHOWN: Final = 60
"""How many characters of a header a message shows."""


class MalformedRequestError(ValueError):
    """A request that is refused with code 400. Its text is sent to the client."""


class RequestHead:
    """Counts the parts of one request while it is parsed. A method that raises Malformed ends the connection.

    Attributes:
        body_bytes: of the body, as many as came.
        wrong: why the request is refused, "" if it is not.
    """

    __slots__ = ("_hosts", "_pieces", "body_bytes", "wrong")

    def __init__(self) -> None:
        self._hosts = self._pieces = 0
        self.body_bytes = 0
        self.wrong = ""

    def create_malformed_error(self, text: str) -> MalformedRequestError:
        """Return the error to raise, and keep its text, because the parser raises an error of its own instead."""
        self.wrong = text
        return MalformedRequestError(text)

    def check_url_size(self, size: int) -> None:
        """Refuse a URL of more than MAX_URL_BYTES; `size` is how many bytes have arrived."""
        if size > MAX_URL_BYTES:
            raise self.create_malformed_error(f"the URL is longer than {MAX_URL_BYTES} bytes")

    def check_header(self, name: bytes, value: bytes, before: int) -> None:
        """Check one header, given its name in lower case and the number of headers before it.

        RFC 9112, section 6.1: a server that does not know a coding of the body cannot decode the body.
        """
        if before >= MAX_HEADERS:
            raise self.create_malformed_error(f"there are more than {MAX_HEADERS} headers")
        if name == b"host":
            self._hosts += 1
        elif name == b"transfer-encoding" and value.strip().lower() != b"chunked":
            coding = value.decode("latin-1")[:_SHOWN]
            raise self.create_malformed_error(
                f"transfer-encoding: expected `chunked`, found `{coding}`; send the body without this coding"
            )

    def check_all_headers(self, version: str) -> None:
        """Check the headers as a whole after the last one.

        RFC 9112, section 3.2: a request of HTTP/1.1 without exactly one Host is answered 400.
        """
        if self._hosts != 1 and version == "1.1":
            hosts = f"{self._hosts} `Host` headers" if self._hosts else "no `Host` header"
            raise self.create_malformed_error(f"the request has {hosts}; HTTP/1.1 needs exactly one")

    def count_body_piece(self, size: int) -> None:
        """Count one more piece of the body, and refuse too many small ones."""
        self._pieces += 1
        self.body_bytes += size
        if self._pieces > MAX_SMALL_PIECES and self.body_bytes < self._pieces * _SMALL_PIECE_BYTES:
            raise self.create_malformed_error("the chunks of the body are too small; send at least 256 bytes in each")
