"""One request and its answer: what ASGI's `receive` and `send` do (asgi.readthedocs.io, HTTP, version 2.3).

Knows the messages of ASGI and how HTTP/1.1 frames an answer (RFC 9112), but no sockets and no parsing. The head of
an answer waits for the first piece of its body, so that both are one write: under TLS one record and one system call.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from http import HTTPStatus
from typing import Any, Final, Protocol, TypeAlias

from webhook.admission.respond import encode_failure_status
from webhook.rules.decisions import DenialStatus

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
AsgiApp: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers: TypeAlias = Iterable[tuple[bytes, bytes]]

PIECE_BYTES: Final = 64 * 1024
"""Answers are written in pieces of this size, so that an answer that the client does not read is not encrypted as a
whole."""
_BODILESS: Final = frozenset((204, 304))
_STATUS_LINES: Final = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
_CONTROL: Final = re.compile(b"[\x00-\x08\x0a-\x1f\x7f]")
_INTERNAL_ERROR: Final = b"Internal Server Error"


def client_address(scope: Scope) -> str:
    """Return the address of the client, "" if the server does not report it."""
    address: str = (scope.get("client") or ("",))[0]
    return address


def body_of_single_message(message: Message) -> bytes | None:
    """Return the body if the first message has all of it, otherwise None."""
    if message["type"] != "http.request" or message.get("more_body"):
        return None
    body: bytes = message.get("body", b"")
    return body


class Wire(Protocol):
    """The connection of an exchange."""

    def write(self, data: bytes | memoryview) -> None:
        """Send bytes to the client."""
        ...

    async def drain(self) -> None:
        """Wait while the client has much to read."""
        ...

    def abort(self) -> None:
        """End the connection at once."""
        ...

    def update_reading(self) -> None:
        """Read on if the request has room for more of its body."""
        ...

    def end_answer(self, exchange: Exchange) -> None:
        """Note that the answer was written whole."""
        ...

    def record_application_error(self, error: Exception) -> None:
        """Note an error that the application raised."""
        ...


class Exchange:
    """One request and its answer.

    Attributes:
        scope: the request as ASGI describes it.
        keeps_alive: whether the connection stays after the answer.
        is_answered: the answer was written whole.
        is_abandoned: the client is gone, or gets another answer.
        buffered_bytes: of the body, as many as came and were not received by the application.
        has_begun_answer: the application has begun to answer.
    """

    __slots__ = (
        "_expects_continue",
        "_has_whole_body",
        "_head",
        "_headers",
        "_is_chunked",
        "_missing_bytes",
        "_news",
        "_pieces",
        "_waiting",
        "_wire",
        "buffered_bytes",
        "has_begun_answer",
        "is_abandoned",
        "is_answered",
        "keeps_alive",
        "scope",
    )

    def __init__(
        self, wire: Wire, scope: Scope, headers: Headers, *, keeps_alive: bool, expects_continue: bool
    ) -> None:
        """Begin an exchange.

        Args:
            wire: where the answer is written.
            scope: the request.
            headers: of each answer.
            keeps_alive: whether the request allows the connection to stay open.
            expects_continue: whether the client waits for a word before it sends the body.
        """
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
        self._is_chunked = False
        self._missing_bytes = 0
        self.has_begun_answer = self.is_answered = self.is_abandoned = False

    # ---- the request

    def add_body(self, piece: bytes) -> None:
        """Add a piece of the body."""
        self._pieces.append(piece)
        self.buffered_bytes += len(piece)
        self._tell_application()

    def end_body(self) -> None:
        """Note that the body is whole."""
        self._has_whole_body = True
        self._tell_application()

    def abandon(self) -> None:
        """Tell the application that the client sends nothing more, and write nothing more."""
        self.is_abandoned = True
        self._end_request()

    def _end_request(self) -> None:
        """Drop data without a receiver, and notify the application."""
        self._pieces.clear()
        self.buffered_bytes = 0
        self._tell_application()

    def _tell_application(self) -> None:
        self._news = True
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def receive(self) -> Message:
        """Return the next message of ASGI: the received part of the body, or that the client is gone."""
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
        """Let the application answer; if it does not, answer 500, or abort the started answer."""
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
        """Write the next message of ASGI: the head of the answer, or a piece of its body."""
        if self.is_abandoned:
            return
        if not self.has_begun_answer:
            self.has_begun_answer = True
            self._begin_answer(message["status"], message.get("headers", ()))
            return
        if self.is_answered:
            raise RuntimeError("the answer is complete already")
        await self._write(self._framed(message.get("body", b""), is_last=not message.get("more_body", False)))
        if not message.get("more_body", False) and not self.is_abandoned:
            if self._missing_bytes:
                raise RuntimeError(f"the answer lacks {self._missing_bytes} bytes of its content-length")
            self.is_answered = True
            self._end_request()
            self._wire.end_answer(self)

    def _begin_answer(self, status: int, headers: Headers) -> None:
        lines, is_sized = [_STATUS_LINES[status]], False
        for name, value in (*self._headers, *headers):
            if _CONTROL.search(name) or _CONTROL.search(value):
                raise RuntimeError("a header has a control character")
            name = name.lower()  # noqa: PLW2901
            if name == b"connection":
                self.keeps_alive = self.keeps_alive and value.lower() != b"close"
                continue
            if name == b"content-length":
                is_sized, self._missing_bytes = True, int(value)
            lines.append(b"%b: %b\r\n" % (name, value))
        if self._is_bodiless(status):
            self._missing_bytes = 0
        elif not is_sized:
            self._is_chunked = True
            lines.append(b"transfer-encoding: chunked\r\n")
        lines.append(b"\r\n" if self.keeps_alive else b"connection: close\r\n\r\n")
        self._head = b"".join(lines)

    def _is_bodiless(self, status: int) -> bool:
        return self.scope["method"] == "HEAD" or status in _BODILESS

    def _framed(self, body: bytes, *, is_last: bool) -> bytes:
        """Return a piece of the body in its sent form."""
        if self._is_chunked:
            chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            return chunk + b"0\r\n\r\n" if is_last else chunk
        if self.scope["method"] == "HEAD":
            return b""
        self._missing_bytes -= len(body)
        if self._missing_bytes < 0:
            raise RuntimeError("the answer is longer than its content-length")
        return body

    async def _write(self, data: bytes) -> None:
        """Write the head, if it still waits, and a piece of the body."""
        whole = memoryview(self._head + data)
        self._head = b""
        for start in range(0, len(whole), PIECE_BYTES):
            await self._wire.drain()
            if self.is_abandoned:
                return
            self._wire.write(whole[start : start + PIECE_BYTES])


def refusal(code: int, reason: str, message: str) -> bytes:
    """Return a whole HTTP answer with a metav1.Status and `connection: close`."""
    body = encode_failure_status(DenialStatus(code=code, reason=reason, message=message))
    head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(body)
    return _STATUS_LINES[code] + head + body
