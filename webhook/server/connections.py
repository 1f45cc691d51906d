"""The bounds of one connection: how slowly, and with how many headers, a client may speak.

Knows uvicorn's httptools protocol and the clock, nothing of reviews. uvicorn by itself keeps a connection open for
minutes that sends nothing, half its headers or half a body, and reads 19 MB of headers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from webhook.admission.respond import status_body
from webhook.decisions import Status

MAX_HEADER_BYTES: Final = 64 * 1024
"""kube-apiserver sends seven short headers; a client certificate or a token in them stays below 16 KB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Seconds for the first byte after the handshake, for the headers, and for the body. Idle keep-alive is exempt."""

    first_byte_s: float = 5.0
    headers_s: float = 5.0
    body_s: float = 10.0


class BoundedConnection(HttpToolsProtocol):
    """uvicorn's HTTP/1.1 connection that remembers what it waits for, so that `overdue` can tell."""

    waits_for: str = "first_byte_s"
    since: float = 0.0
    header_bytes: int = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start waiting for the first byte."""
        super().connection_made(transport)
        self._wait("first_byte_s")

    def data_received(self, data: bytes) -> None:
        """Feed the parser, and refuse headers that do not end."""
        super().data_received(data)
        if self.waits_for != "headers_s":
            self.header_bytes = 0
            return
        self.header_bytes += len(data)
        if self.header_bytes > MAX_HEADER_BYTES and not self.transport.is_closing():
            self.refuse(431, "RequestHeaderFieldsTooLarge", f"the headers are longer than {MAX_HEADER_BYTES} bytes")

    def on_message_begin(self) -> None:
        """Start waiting for the end of the headers."""
        super().on_message_begin()
        self._wait("headers_s")

    def on_headers_complete(self) -> None:
        """Start waiting for the end of the body."""
        self._wait("body_s")
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Wait for nothing: the answer and idle time are the server's own."""
        self.waits_for = ""
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """What does not parse as HTTP is answered with a Status too."""
        self.refuse(400, "BadRequest", msg.rstrip(".").lower())

    def refuse(self, code: int, reason: str, message: str) -> None:
        """Answer with a metav1.Status outside of any request, and close."""
        body = status_body(Status(code=code, reason=reason, message=message))
        head = f"HTTP/1.1 {code} {reason}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        self.transport.write(head.encode() + b"connection: close\r\n\r\n" + body)
        self.transport.close()

    def _wait(self, what: str) -> None:
        self.waits_for = what
        self.since = self.loop.time()


def close_overdue(connections: Iterable[Any], patience: Patience, now: float) -> int:
    """Close every connection whose client took too long, and say how many there were.

    Args:
        connections: uvicorn's; those of other protocols are left alone.
        patience: the bounds.
        now: the event loop's time.
    """
    overdue = [one for one in connections if isinstance(one, BoundedConnection) and _is_overdue(one, patience, now)]
    for connection in overdue:
        connection.transport.close()
    return len(overdue)


def _is_overdue(connection: BoundedConnection, patience: Patience, now: float) -> bool:
    if not connection.waits_for or connection.transport.is_closing():
        return False
    bound: float = getattr(patience, connection.waits_for)
    return now - connection.since > bound
