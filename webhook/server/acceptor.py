"""Accepting connections: every socket is counted from the first moment, and its TLS handshake is bounded.

Knows listening sockets and the event loop; nothing of HTTP. A handshake costs the loop as much as a quick review, most
of it in answer to the client's first message. So a socket is given to TLS when that message is whole, and when it is
its turn: hundreds of clients that send theirs at the same time do not stop the loop. `loop.create_server` would hide
connections until their handshake is done, so nobody could count, bound or log those that never get there. Sockets are
taken by a callback of the loop and not by a task: a callback that fails is called again for the next client.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from webhook.server.connection_limit import ConnectionLimit
from webhook.server.connections import BoundedConnection, ConnectionTimeouts
from webhook.server.handshake_log import HandshakeLog, certificate_names
from webhook.server.server_parts import ServerParts
from webhook.server.tls import Certificates
from webhook.server.usage import handshake_tenant

_BURST: Final = 8
"""How many sockets are accepted in one callback, so that open connections are served in between."""
_PAUSE_S: Final = 0.1
_HANDSHAKE_S: Final = 0.003
"""Seconds of the loop that one connection with ECDSA P-256 costs at most from its accept to its end: 1 ms measured on a
quick core, 2.2 to 3.1 on one that is shared. Too little would let an address that connects without end stay light."""
_RECORD_HEAD: Final = 5
_HANDSHAKE: Final = 22
"""Bytes before a TLS record: its type, 22 for a handshake, a version, and in the last two how many follow (RFC 8446,
section 5.1)."""
_MOST_PEEKED: Final = 4096
"""How many bytes of a first message are looked at; such a message has 300 to 2,000 bytes."""
_PEEK_S: Final = 0.02
_MOST_PEEK_S: Final = 0.32
"""Seconds between the first two looks at a first message that arrives in pieces, and at most between later ones. Each
look takes longer than a wait: a thousand messages that never end would keep a processor busy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientAdmission:
    """Which clients an acceptor lets in.

    Attributes:
        tls: what to show and whom to trust, or None for plain HTTP.
        timeouts: bound the handshake.
        client_names: only clients whose certificate is for one of these names are let in; empty lets in all.
    """

    tls: Certificates | None
    timeouts: ConnectionTimeouts
    client_names: tuple[str, ...] = ()


class Acceptor:
    """Accepts the connections of one listening socket. Event loop only; call `start` and `close` once each."""

    def __init__(
        self,
        listening: socket.socket,
        make: Callable[[], BoundedConnection],
        limit: ConnectionLimit,
        *,
        admission: ClientAdmission,
        handshakes: HandshakeLog,
        parts: ServerParts,
    ) -> None:
        """Describe what to do with clients.

        Args:
            listening: the socket; it is closed with the acceptor.
            make: makes the protocol of one connection.
            limit: where connections are counted.
            admission: which clients are let in, and how long their handshakes may take.
            handshakes: where failed handshakes are noted.
            parts: what the parts of the server share.
        """
        self._listening = listening
        self._make = make
        self.limit = limit
        timeouts = admission.timeouts
        self._client_names = admission.client_names
        self._handshakes = handshakes
        self._scheduler = parts.scheduler
        self._handshake_s = timeouts.handshake_s
        self._log = parts.log
        self._tasks: set[asyncio.Task[None]] = set()
        self._tls = admission.tls
        self._bounds = {"ssl_handshake_timeout": timeouts.handshake_s, "ssl_shutdown_timeout": timeouts.goodbye_s}

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

    def close(self) -> None:
        """Stop accepting connections, and cancel the handshakes that are not finished."""
        if self._listening.fileno() >= 0:
            self._loop.remove_reader(self._listening)
            self._listening.close()
        for task in self._tasks:
            task.cancel()

    async def finish_handshakes_and_close(self, patience_s: float) -> None:
        """Accept the connections that the system holds already, wait for their handshakes, then stop accepting."""
        if self._listening.fileno() >= 0:
            self._loop.remove_reader(self._listening)
            while self._accept():  # noqa: ASYNC110 - others get their turn between two bursts
                await asyncio.sleep(0)
            self._listening.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=patience_s)
        self.close()

    def _resume(self) -> None:
        if self._listening.fileno() >= 0:
            self._loop.add_reader(self._listening, self._accept)

    def _accept(self) -> bool:
        """Accept up to _BURST waiting connections, and return whether more may wait; no error stops the next call."""
        for _ in range(_BURST):
            try:
                client, address = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return False
            except OSError as error:  # no file descriptors or no memory for sockets
                self._pause_accepting(error)
                return False
            client.setblocking(False)
            self._start_connection(client, address[0])
        return True

    def _pause_accepting(self, error: OSError) -> None:
        """End one connection and stop accepting for a moment, because the system has no resources for another
        socket.
        """
        self._log.error("cannot accept connections", error=error.strerror or str(error), connections=len(self.limit))
        self.limit.abort_least_needed_connection()
        self._loop.remove_reader(self._listening)
        self._loop.call_later(_PAUSE_S, self._resume)

    def _start_connection(self, client: socket.socket, address: str) -> None:
        connection = self._make()
        self.limit.admit(connection, address)
        if self._tls is not None and self._tls.trusted:
            connection.admits = partial(self._is_client_allowed, connection)
        task = self._loop.create_task(self._perform_handshake(connection, client))
        connection.handshake = task
        self._tasks.add(task)

        def done(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            connection.handshake = None
            if connection.transport is None:
                self.limit.forget(connection)
                connection.release_parser()
                client.close()

        task.add_done_callback(done)

    async def _perform_handshake(self, connection: BoundedConnection, client: socket.socket) -> None:
        """Perform the TLS handshake and hand the socket to its connection; log a handshake that fails."""
        peer = _address_of_peer(client)
        try:
            if self._tls is not None:
                async with asyncio.timeout(self._handshake_s):
                    await self._wait_for_handshake_turn(client, connection.address)
            options = self._tls_options(connection)
            await self._loop.connect_accepted_socket(lambda: connection, client, **options)
        except Exception as error:  # noqa: BLE001 - whatever a client can cause is one line and one count
            self._handshakes.failed(peer, error)
        else:
            if connection.transport is None:
                self._handshakes.failed(peer, None)

    def _tls_options(self, connection: BoundedConnection) -> dict[str, Any]:
        """Return the TLS options of a new connection, and note on the connection which authority it is verified with.
        The authority is noted first, so that a change in between ends the connection rather than misses it.
        """
        if self._tls is None:
            return {}
        connection.trusted = self._tls.trusted
        return {"ssl": self._tls.context, **self._bounds}

    async def _wait_for_handshake_turn(self, client: socket.socket, address: str) -> None:
        """Wait until the client's first TLS record has arrived and the scheduler has time for the handshake."""
        pause = _PEEK_S
        while not _has_first_tls_record(await self._peek(client)):
            await asyncio.sleep(pause)  # the socket stays readable: waiting for more would wake at once
            pause = min(2 * pause, _MOST_PEEK_S)
        tenant = handshake_tenant(address)
        await self._scheduler.wait_for_turn(tenant)
        self._scheduler.worked(tenant, _HANDSHAKE_S)

    async def _peek(self, client: socket.socket) -> bytes:
        """Return the bytes that a client has sent, without removing them from the socket; empty when the client has
        gone away.
        """
        readable = self._loop.create_future()
        self._loop.add_reader(client, _resolve_future, readable)
        try:
            await readable
        finally:
            self._loop.remove_reader(client)
        try:
            return client.recv(_MOST_PEEKED, socket.MSG_PEEK)
        except OSError:
            return b""

    def _is_client_allowed(self, connection: BoundedConnection, transport: asyncio.BaseTransport) -> bool:
        """Return whether the client's authority is still trusted and its certificate has one of the allowed names."""
        if self._tls is not None and connection.trusted is not self._tls.trusted:
            return False  # replaced during the handshake: the client may try again
        if not self._client_names:
            return True
        names = certificate_names(transport.get_extra_info("peercert") or {})
        if set(names) & set(self._client_names):
            return True
        address = transport.get_extra_info("peername")
        self._handshakes.refused(_address_as_text(address), names, self._client_names)
        return False


def _resolve_future(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _has_first_tls_record(sent: bytes) -> bool:
    """Return whether the first TLS record has arrived whole, fills what is looked at, or cannot be a handshake."""
    if not sent or sent[0] != _HANDSHAKE or len(sent) == _MOST_PEEKED:
        return True
    return len(sent) >= _RECORD_HEAD and len(sent) >= _RECORD_HEAD + (sent[3] << 8 | sent[4])


def _address_of_peer(client: socket.socket) -> str:
    try:
        return _address_as_text(client.getpeername())
    except OSError:  # it is gone already
        return ""


def _address_as_text(name: Any) -> str:
    return f"[{name[0]}]:{name[1]}" if ":" in name[0] else f"{name[0]}:{name[1]}"
