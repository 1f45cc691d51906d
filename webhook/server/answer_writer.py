"""The head and the body of an answer as one write, which under TLS is one record and one system call instead of two.

Knows how uvicorn writes an answer: first its head, then each piece of its body. Nothing waits between the head and the
first piece, so that keeping the head until then delays nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from webhook.admission.respond import encode_failure_status
from webhook.rules.decisions import DenialStatus

MOST_JOINED: Final = 64 * 1024
"""Joining copies the body; for a larger one the second system call costs less."""
_CONTINUE: Final = b"HTTP/1.1 100 "


class AnswerWriter:
    """Stands in for the connection's transport while uvicorn writes answers to it."""

    __slots__ = ("_close", "_head", "_transport")

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None] | None = None) -> None:
        """Write to `transport`, and call `close` to close the connection; None calls the transport's own `close`."""
        self._transport = transport
        self._close = close or transport.close
        self._head: bytes | None = None
        """The head of the current answer; empty once it was written, None before an answer begins."""

    def write(self, data: bytes) -> None:
        """Write the next piece of an answer; keep the head until the first piece of the body and send both together."""
        if self._head is None and not data.startswith(_CONTINUE):
            self._head = data
            return
        if self._head:
            if len(data) <= MOST_JOINED:
                data = self._head + data
            else:
                self._transport.write(self._head)
            self._head = b""
        self._transport.write(data)

    def end_answer(self) -> None:
        """Write the head of an answer that has no body, and expect the head of the next answer."""
        if self._head:
            self._transport.write(self._head)
        self._head = None

    def close(self) -> None:
        """Close the connection once everything that was written has been sent."""
        self.end_answer()
        self._close()

    def release_close_callback(self) -> None:
        """Drop the reference to the function that closes the connection, which refers to this object."""
        self._close = self._transport.close

    def is_closing(self) -> bool:
        """Return whether the connection is closed or about to be closed."""
        return self._transport.is_closing()


def refusal(code: int, reason: str, message: str) -> bytes:
    """Return a whole HTTP answer with a metav1.Status and `connection: close`."""
    body = encode_failure_status(DenialStatus(code=code, reason=reason, message=message))
    head = f"HTTP/1.1 {code} {reason}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return head.encode() + b"connection: close\r\n\r\n" + body
