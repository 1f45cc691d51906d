"""Accepts connections, a few at a time. After a lack of resources of the system, it pauses and tries again.

Knows a listening socket and the event loop, but not TLS and HTTP. `loop.create_server` would accept all waiting
connections (up to 2,048) in one callback, and reset accepted connections of the system when it is closed.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from webhook.logs.structured import Log
from webhook.server.connection_limit import ConnectionLimit
from webhook.server.handshake_log import LimitedLog

_BURST: Final = 8
"""How many sockets are accepted in one callback, so that open connections are served in between."""
_PAUSE_S: Final = 0.1
_LOG_PERIOD_S: Final = 60.0
"""A full system fails ten times a second: five lines a minute tell the cause, and one more counts the rest."""


class Acceptor:
    """Accepts the connections of one listening socket. Event loop only; call `start` and `close` once each."""

    def __init__(
        self, listening: socket.socket, make: Callable[[], asyncio.BaseProtocol], limit: ConnectionLimit, log: Log
    ) -> None:
        """Accept connections from `listening`, which is closed with the acceptor; `make` makes each one's protocol."""
        self._listening = listening
        self._make = make
        self.limit = limit
        self._failures = LimitedLog(log.write, "cannot accept connections", _LOG_PERIOD_S)
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        """Return the number of the port that the socket listens on."""
        number: int = self._listening.getsockname()[1]
        return number

    def start(self) -> None:
        """Begin to accept connections."""
        self._loop = asyncio.get_running_loop()
        self._listening.setblocking(False)
        self._resume()

    async def accept_waiting_and_close(self) -> None:
        """Accept the connections that the system has already accepted, then stop."""
        if self._listening.fileno() < 0:
            return
        self._loop.remove_reader(self._listening)
        while self._accept():  # noqa: ASYNC110 - others get their turn between two bursts
            await asyncio.sleep(0)
        self._listening.close()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _resume(self) -> None:
        if self._listening.fileno() >= 0:
            self._loop.add_reader(self._listening, self._accept)

    def _accept(self) -> bool:
        """Accept up to _BURST waiting connections, and return whether more may wait; no error stops the next call."""
        for _ in range(_BURST):
            try:
                client, _address = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return False
            except OSError as error:  # no file descriptors or no memory for sockets
                self._pause_accepting(error)
                return False
            client.setblocking(False)
            task = self._loop.create_task(self._connect(client))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return True

    async def _connect(self, client: socket.socket) -> None:
        with suppress(OSError):  # the client has already closed it
            await self._loop.connect_accepted_socket(self._make, client)
            return
        client.close()

    def _pause_accepting(self, error: OSError) -> None:
        """End one connection and stop accepting for a moment, because the system has no resources for another
        socket.
        """
        self._failures.write("error", {"error": error.strerror or str(error), "connections": len(self.limit)})
        self.limit.abort_least_needed_connection()
        self._loop.remove_reader(self._listening)
        self._loop.call_later(_PAUSE_S, self._resume)
