"""The head and the body of an answer as one write, which under TLS is one record and one system call instead of two.

Knows how uvicorn writes an answer: first its head, then each piece of its body. Nothing waits between the head and the
first piece, so that keeping the head until then delays nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from webhook.admission.respond import status_body
from webhook.decisions import Status

MOST_JOINED: Final = 64 * 1024
"""Joining copies; of a larger body the second system call is not felt."""
_CONTINUE: Final = b"HTTP/1.1 100 "


class AnswerWriter:
    """What uvicorn uses of a connection's transport to answer one request after another."""

    __slots__ = ("_close", "_head", "_transport")

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None] | None = None) -> None:
        """Write to a transport, which `close` ends after what was written; None where it ends itself."""
        self._transport = transport
        self._close = close or transport.close
        self._head: bytes | None = None
        """What is kept; empty once it was written; None before an answer has begun."""

    def write(self, data: bytes) -> None:
        """Write the next piece of an answer, the first of its body together with its head."""
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
        """Write the head of an answer without a body; the next piece begins another answer."""
        if self._head:
            self._transport.write(self._head)
        self._head = None

    def close(self) -> None:
        """Close the connection once everything that was written has been sent."""
        self.end_answer()
        self._close()

    def let_go(self) -> None:
        """Nothing more is written: keep nothing of whoever said how to close, which keeps this."""
        self._close = self._transport.close

    def is_closing(self) -> bool:
        """Whether the connection is closed, or is about to be."""
        return self._transport.is_closing()


def refusal(code: int, reason: str, message: str) -> bytes:
    """A whole answer with a metav1.Status, after which the connection is closed."""
    body = status_body(Status(code=code, reason=reason, message=message))
    head = f"HTTP/1.1 {code} {reason}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return head.encode() + b"connection: close\r\n\r\n" + body
