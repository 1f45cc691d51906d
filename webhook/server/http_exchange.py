"""HTTP/1.1 (RFC 9112): parses requests, and writes answers.

Knows the messages of ASGI (asgi.readthedocs.io, HTTP, version 2.3), and no sockets. The head of an answer waits for its
body, so that both are one write: one TLS record and one system call. The endpoint of reviews, the probes and Starlette
answer with one body and its content-length. Other answers are not supported.

httptools does not limit the URL, the headers and the pieces of the body. The limits here keep one client from taking
the event loop's time or the server's memory before a review begins.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from http import HTTPStatus
from typing import Any, Final, Protocol, TypeAlias
from urllib.parse import unquote

import httptools

from webhook.admission.respond import encode_failure_status
from webhook.apimachinery.attributes import Phase
from webhook.rules.decisions import DenialStatus
from webhook.server.client_clock import State
from webhook.settings.serving import DEFAULTS

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
AsgiApp: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers: TypeAlias = Iterable[tuple[bytes, bytes]]

PATHS: Final = {f"/{phase.value}": phase for phase in Phase}
"""The phase of a review by the path that it is sent to."""
PIECE_BYTES: Final = 64 * 1024
"""The maximum number of bytes encrypted at a time: an answer that the client does not read is not encrypted as a whole.
"""
_STATUS_LINES: Final = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
_CONTROL: Final = re.compile(b"[\x00-\x08\x0a-\x1f\x7f]")
_INTERNAL_ERROR: Final = b"Internal Server Error"
MAX_FRAMING_BYTES: Final = 64 * 1024
"""The maximum number of bytes of chunk headers, extensions and trailers beyond the body; the parser collects them
without bound.
"""
MAX_UNHEARD_BYTES: Final = 256 * 1024
"""The maximum number of bytes of a body that may follow its answer, as in Go (net/http, server.go,
maxPostHandlerReadBytes).
"""
MAX_LATE_BYTES: Final = 2 * DEFAULTS.max_body_bytes
"""The maximum number of bytes of a review's body that may follow its answer.

A body that is too large, or waits too long for memory, is answered before it is whole. A client that first writes the
whole body would otherwise see a reset connection and no answer.
"""
MAX_HEADER_BYTES: Final = 64 * 1024
"""kube-apiserver sends seven short headers; a client certificate or a token in them stays below 16 KB."""
MAX_HEADERS: Final = 200
"""An API server sends ten. Each header is a call in Python, and the headers of one read delay other clients."""
MAX_URL_BYTES: Final = 4 * 1024
"""An API server sends a path and a timeout. A query of 64 KB takes 15 ms of the event loop, on every connection."""
MAX_SMALL_PIECES: Final = 200
_SMALL_PIECE_BYTES: Final = 256
"""The least mean size of the pieces of a body, checked after MAX_SMALL_PIECES pieces.

40,000 chunks of one byte in one read would stop the event loop for 0.1 s. Go writes 4 KB at a time, and API servers
declare the length.
"""
_SHOWN: Final = 60
"""The maximum number of characters of a header in a message."""


class MalformedRequestError(ValueError):
    """A request that is refused with code 400; the client gets the text."""


def client_address(scope: Scope) -> str:
    """Return the address of the client, "" if the system does not know it."""
    address: str = scope["client"][0]
    return address


class _Wire(Protocol):
    # HttpConnection, which knows the classes of this module
    state: State
    is_ended: bool
    exchange: Exchange | None

    @property
    def may_stay_open(self) -> bool: ...
    def begin_request(self) -> bool: ...
    def start(self, exchange: Exchange) -> None: ...
    def end_request(self) -> None: ...
    def refuse(self, code: int, reason: str, message: str) -> None: ...
    def throttle_answered_body(self, size: int) -> None: ...
    def update_reading(self) -> None: ...
    async def drain(self) -> None: ...
    def write(self, data: bytes | memoryview) -> None: ...
    def end_answer(self, exchange: Exchange) -> None: ...
    def record_application_error(self, error: Exception) -> None: ...
    def abort(self) -> None: ...


class Exchange:
    """One request and its answer.

    Attributes:
        scope: the request as ASGI describes it.
        keeps_alive: the connection stays open after the answer.
        is_answered: the whole answer was written.
        is_abandoned: the client is gone, or gets another answer.
        buffered_bytes: bytes of the body that arrived, and that the application has not received.
        has_begun_answer: the application has begun to answer.
    """

    def __init__(
        self, wire: _Wire, scope: Scope, headers: Headers, *, keeps_alive: bool, expects_continue: bool
    ) -> None:
        self._wire = wire
        self.scope = scope
        self._headers = headers
        self.keeps_alive = keeps_alive
        self._expects_continue = expects_continue
        self._pieces: list[bytes] = []
        self.buffered_bytes = 0
        self._has_whole_body = self._news = False
        self._waiting: asyncio.Future[None] | None = None
        self._head = b""
        self.has_begun_answer = self.is_answered = self.is_abandoned = False

    # ---- the request

    def add_body(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self.buffered_bytes += len(piece)
        self._tell_application()

    def end_body(self) -> None:
        self._has_whole_body = True
        self._tell_application()

    def abandon(self) -> None:
        """Write nothing more, and tell the application that the client is gone."""
        self.is_abandoned = True
        self._end_request()

    def _end_request(self) -> None:
        self._pieces.clear()
        self.buffered_bytes = 0
        self._tell_application()

    def _tell_application(self) -> None:
        self._news = True
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def receive(self) -> Message:
        """Return the next message of ASGI: a part of the body, or that the client is gone."""
        if self._expects_continue:
            self._expects_continue = False
            if not self.is_abandoned and not self.has_begun_answer:
                self._wire.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        while not (self._news or self.is_answered or self.is_abandoned):
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        if self.is_answered or self.is_abandoned:
            return {"type": "http.disconnect"}
        self._news = False
        body = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self.buffered_bytes = 0
        self._wire.update_reading()
        return {"type": "http.request", "body": body, "more_body": not self._has_whole_body}

    # ---- the answer

    async def run(self, application: AsgiApp) -> None:
        """Let the application answer. If the application fails, answer 500, or abort an answer that has begun."""
        try:
            await application(self.scope, self.receive, self.send)
        except asyncio.CancelledError:
            self._wire.abort()
            raise
        except Exception as error:  # noqa: BLE001 - any failure here is our own bug
            self._wire.record_application_error(error)
        if self.is_answered or self.is_abandoned:
            return
        if self.has_begun_answer:
            self._wire.abort()
            return
        headers = [(b"content-length", b"%d" % len(_INTERNAL_ERROR)), (b"connection", b"close")]
        await self.send({"type": "http.response.start", "status": 500, "headers": headers})
        await self.send({"type": "http.response.body", "body": _INTERNAL_ERROR})

    async def send(self, message: Message) -> None:
        """Note the head of the answer, or write the answer with its body."""
        if self.is_abandoned:
            return
        if not self.has_begun_answer:
            self.has_begun_answer = True
            self._begin_answer(message["status"], message.get("headers", ()))
            return
        await self._write(b"" if self.scope["method"] == "HEAD" else message.get("body", b""))
        if not self.is_abandoned:
            self.is_answered = True
            self._end_request()
            self._wire.end_answer(self)

    def _begin_answer(self, status: int, headers: Headers) -> None:
        self.keeps_alive = self.keeps_alive and self._wire.may_stay_open
        lines = [_STATUS_LINES[status]]
        for name, value in (*self._headers, *headers):
            if _CONTROL.search(name) or _CONTROL.search(value):
                raise RuntimeError("a header has a control character")
            name = name.lower()  # noqa: PLW2901
            if name == b"connection":
                self.keeps_alive = self.keeps_alive and value.lower() != b"close"
                continue
            lines.append(b"%b: %b\r\n" % (name, value))
        lines.append(b"\r\n" if self.keeps_alive else b"connection: close\r\n\r\n")
        self._head = b"".join(lines)

    async def _write(self, body: bytes) -> None:
        whole = memoryview(self._head + body)
        for start in range(0, len(whole), PIECE_BYTES):
            await self._wire.drain()
            if self.is_abandoned:
                return
            self._wire.write(whole[start : start + PIECE_BYTES])


class RequestParser:
    """Parses the requests of one connection, and refuses malformed or too large requests.

    A callback that raises a MalformedRequestError ends the connection.
    """

    def __init__(self, wire: _Wire, shared: Scope, answer_headers: Headers) -> None:
        """Create a parser; `shared` has the fields that the scopes of all requests of the connection share."""
        self._wire = wire
        self._shared = shared
        self._answer_headers = answer_headers
        self._parser: Any = httptools.HttpRequestParser(self)
        self._header_bytes = self._framing_bytes = self._late_bytes = self._late_bytes_now = 0
        self._forget_request()

    def _forget_request(self) -> None:
        self._url, self._expects_continue = b"", False
        self._headers: list[tuple[bytes, bytes]] = []
        self._hosts = self._pieces = self._body_bytes = 0
        self._malformed = ""

    def feed(self, data: bytes) -> None:
        """Parse bytes of the client; refuse too long headers, and bodies with too much framing."""
        wire, size, was_in_body = self._wire, len(data), self._wire.state == "body"
        self._late_bytes_now = 0
        self._framing_bytes += size
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError:
            if self._malformed:
                wire.refuse(400, "BadRequest", self._malformed)
            elif not wire.is_ended:
                raise
        except httptools.HttpParserError as error:
            wire.refuse(400, "BadRequest", f"invalid http request received: {error}".lower())
        if wire.is_ended or wire.state == "goodbye":
            return
        if wire.exchange is not None and wire.exchange.buffered_bytes:
            wire.update_reading()
        if self._late_bytes_now:
            wire.throttle_answered_body(self._late_bytes_now)
        if wire.state != "body":
            self._framing_bytes = 0
        elif self._framing_bytes > MAX_FRAMING_BYTES + self._body_bytes:
            wire.refuse(400, "BadRequest", "the body has more chunk headers and trailers than data; send larger chunks")
        if wire.state != "headers" or was_in_body:
            self._header_bytes = 0  # the parser does not know where the next request begins
            return
        self._header_bytes += size
        if self._header_bytes > MAX_HEADER_BYTES:
            wire.refuse(431, "RequestHeaderFieldsTooLarge", f"the headers are longer than {MAX_HEADER_BYTES} bytes")

    def close(self) -> None:
        """Drop the parser of httptools, which refers to this parser."""
        self._parser = None

    def _malformed_error(self, text: str) -> MalformedRequestError:
        # the text is kept because httptools raises an error of its own
        self._malformed = text
        return MalformedRequestError(text)

    # ---- callbacks of httptools

    def on_message_begin(self) -> None:
        """Begin a request; the clock of its headers starts."""
        self._forget_request()
        if not self._wire.begin_request():
            raise MalformedRequestError  # ends the parsing

    def on_url(self, url: bytes) -> None:
        """Append a piece of the URL, and refuse a URL that is too long."""
        self._url += url
        if len(self._url) > MAX_URL_BYTES:
            raise self._malformed_error(f"the URL is longer than {MAX_URL_BYTES} bytes")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store one header, or refuse the request.

        A server must not read a body with a coding that it does not know (RFC 9112, section 6.1).
        """
        name = name.lower()
        if len(self._headers) >= MAX_HEADERS:
            raise self._malformed_error(f"there are more than {MAX_HEADERS} headers")
        if name == b"host":
            self._hosts += 1
        elif name == b"transfer-encoding" and value.strip().lower() != b"chunked":
            coding = value.decode("latin-1")[:_SHOWN]
            raise self._malformed_error(
                f"transfer-encoding: expected `chunked`, found `{coding}`; send the body without this coding"
            )
        elif name == b"expect" and value.lower() == b"100-continue":
            self._expects_continue = True
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Check the headers as a whole, and start the answer.

        A request of HTTP/1.1 needs exactly one Host (RFC 9112, section 3.2).
        """
        version = self._parser.get_http_version()
        if self._hosts != 1 and version == "1.1":
            hosts = f"{self._hosts} `Host` headers" if self._hosts else "no `Host` header"
            raise self._malformed_error(f"the request has {hosts}; HTTP/1.1 needs exactly one")
        if self._parser.should_upgrade():  # the parser would read the body as bytes of the new protocol
            raise self._malformed_error("this server speaks HTTP/1.1 alone; send no `Upgrade` header")
        self._late_bytes = 0
        self._wire.start(
            Exchange(
                self._wire,
                self._scope(version),
                self._answer_headers,
                keeps_alive=version == "1.1" and self._parser.should_keep_alive(),
                expects_continue=self._expects_continue,
            )
        )

    def _scope(self, version: str) -> Scope:
        try:
            url = httptools.parse_url(self._url)
            path = (url.path or b"").decode("ascii")
        except (httptools.HttpParserInvalidURLError, UnicodeDecodeError):
            raise self._malformed_error("the URL cannot be read") from None
        return {
            **self._shared,
            "http_version": version,
            "method": self._parser.get_method().decode("ascii"),
            "path": unquote(path) if "%" in path else path,
            "raw_path": url.path,
            "query_string": url.query or b"",
            "headers": self._headers,
        }

    def on_body(self, piece: bytes) -> None:
        """Store one piece of the body, refuse too many small pieces, and discard bytes after the answer."""
        size = len(piece)
        self._pieces += 1
        self._body_bytes += size
        if self._pieces > MAX_SMALL_PIECES and self._body_bytes < self._pieces * _SMALL_PIECE_BYTES:
            raise self._malformed_error("the chunks of the body are too small; send at least 256 bytes in each")
        self._framing_bytes -= size
        exchange = self._wire.exchange
        assert exchange is not None
        if not exchange.is_answered:
            exchange.add_body(piece)
            return
        self._late_bytes += size
        self._late_bytes_now += size
        is_review = exchange.scope["method"] == "POST" and exchange.scope["path"] in PATHS
        if self._late_bytes > (MAX_LATE_BYTES if is_review else MAX_UNHEARD_BYTES):
            raise self._malformed_error("the body continues after the answer")

    def on_message_complete(self) -> None:
        self._wire.end_request()


def refusal(code: int, reason: str, message: str) -> bytes:
    """Return a whole HTTP answer with a metav1.Status and `connection: close`."""
    body = encode_failure_status(DenialStatus(code=code, reason=reason, message=message))
    head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(body)
    return _STATUS_LINES[code] + head + body
