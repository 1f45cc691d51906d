"""The job of a worker process, and how it travels: two lengths, then the instructions, then the body of the call.

Knows bytes and sockets, nothing of reviews.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from dataclasses import dataclass
from typing import Final

from webhook.server.large_body import LargeBody

_LENGTHS: Final = struct.Struct("!II")


@dataclass(frozen=True, slots=True)
class Job:
    """What one worker does with the body of a call, and with which instructions."""

    instructions: bytes
    body: bytes | LargeBody

    async def send(self, channel: socket.socket) -> None:
        """Send the job through a socket that does not block, in pieces: others use the loop while the worker reads.

        Raises:
            ConnectionError: the worker has ended.
        """
        loop, body = asyncio.get_running_loop(), self.body
        head = _LENGTHS.pack(len(self.instructions), len(body)) + self.instructions
        for piece in (head, *(body.pieces() if isinstance(body, LargeBody) else (body,))):
            await loop.sock_sendall(channel, piece)


def receive(channel: socket.socket) -> tuple[bytes, bytes]:
    """Return, in a worker, the instructions and the body; waits for them.

    Raises:
        EOFError: the server has ended, or given up.
    """
    instruction_bytes, body_bytes = _LENGTHS.unpack(_receive_exactly(channel, _LENGTHS.size))
    return _receive_exactly(channel, instruction_bytes), _receive_exactly(channel, body_bytes)


def _receive_exactly(channel: socket.socket, count: int) -> bytes:
    """Return so many bytes, which mostly come in one piece of memory: a second copy of 20 MB would count."""
    received = b""
    while len(received) < count:
        if not (more := channel.recv(count - len(received), socket.MSG_WAITALL)):
            raise EOFError
        received += more
    return received
