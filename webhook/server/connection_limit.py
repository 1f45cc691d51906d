"""Chooses the connections that the server ends: above the limit of a port, with full buffers, with late clients, and
when the server stops.

A new connection is always accepted. At the limit, the address with the most connections loses one connection. So a
client that fills the port cannot lock the API server out.

An HTTP/1.1 client may send a request while the server closes the idle connection. So an idle connection is closed only
if no byte of a request has arrived, not even in the system's buffers. Few connections are closed between two polls of
the sockets.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from heapq import nsmallest
from operator import attrgetter
from typing import Final

from webhook.server.counters import Counters
from webhook.server.http_connection import HttpConnection

MAX_HELD_BYTES: Final = 6 * 1024 * 1024
"""Above this number of bytes of unanswered requests, slow connections are ended. A thousand reviews of usual size
make 6 MB; a thousand unfinished bodies of 60 KB make 60 MB."""
_MOST_HELD_BYTES: Final = 32 * 1024 * 1024
"""Above this number of bytes, the connections that hold the most are ended, slow or not. A thousand connections may
send 240 MB at one moment. An API server sends less: some hundreds of requests are in flight, and few large bodies are
read at a time."""
_LARGE_BYTES: Final = 16 * 1024
_PATIENCE_S: Final = 1.0
"""If the server has waited this long for the rest of a request, the connection is slow. A slow connection is ended
before idle connections, and also above MAX_HELD_BYTES. The body of an API server arrives within milliseconds.
"""
_UNPROVEN_SHARE: Final = 4
"""A quarter of the places is for connections without an answer yet. Otherwise a client that fills the port with
answered connections could end each new connection of an API server, by opening another connection.
"""
_MOST_IDLE_TRIED: Final = 8
"""The maximum number of idle connections that are checked for a request in their buffers: one system call each."""


class _ClientAddress:
    """The connections of one address, in order of arrival; a connection is proven after its first answer."""

    __slots__ = ("held_bytes", "proven", "unproven")

    def __init__(self) -> None:
        self.unproven: dict[HttpConnection, None] = {}
        self.proven: dict[HttpConnection, None] = {}
        self.held_bytes = 0

    def __len__(self) -> int:
        return len(self.unproven) + len(self.proven)

    def __iter__(self) -> Iterator[HttpConnection]:
        yield from self.proven
        yield from self.unproven

    def __contains__(self, connection: HttpConnection) -> bool:
        return connection in self.unproven or connection in self.proven

    def least_needed(self, now: float, most_unproven: float) -> HttpConnection:
        # in this order: an unproven connection if there are more than most_unproven; a proven connection that stalls in
        # the middle of a request; the connection that is idle longest; an unproven connection; the oldest connection
        unproven = next((connection for connection in self.unproven if connection.has_kept_server_waiting(now)), None)
        if unproven is not None and len(self.unproven) > most_unproven:
            return unproven
        slow = next(
            (
                connection
                for connection in self.proven
                if connection.state != "idle" and connection.has_kept_server_waiting(now, _PATIENCE_S)
            ),
            None,
        )
        return slow or next(_longest_unused(self.proven), None) or unproven or next(iter(self))

    def slow_holders(self, now: float) -> list[HttpConnection]:
        # the longest wait first
        slow = (
            connection
            for connection in self
            if connection.held_bytes >= _LARGE_BYTES and connection.has_kept_server_waiting(now, _PATIENCE_S)
        )
        return sorted(slow, key=attrgetter("since"))


class ConnectionLimit:
    """The connections of one port, from their accept, and the bytes that they hold.

    Use an instance on one event loop only.
    """

    def __init__(self, max_connections: int, port: str, counters: Counters) -> None:
        self._max_connections = max_connections
        self._port = port
        self._counters = counters
        self._addresses: dict[str, _ClientAddress] = {}
        self._count = 0
        self.held_bytes = 0

    def __len__(self) -> int:
        return self._count

    def admit(self, connection: HttpConnection) -> None:
        """Count a new connection. If the port is full, first abort the least needed connection."""
        while self._count >= self._max_connections:
            self.abort_least_needed_connection()
        self._addresses.setdefault(connection.address, _ClientAddress()).unproven[connection] = None
        self._change_count(1)

    def mark_answered(self, connection: HttpConnection) -> None:
        """Note that a request of a connection was answered."""
        client = self._addresses.get(connection.address)
        if client is not None and connection in client.unproven:  # not aborted while its answer was computed
            del client.unproven[connection]
            client.proven[connection] = None

    def change_held_bytes(self, connection: HttpConnection, change: int) -> None:
        """Note that a connection holds `change` more bytes. Abort a connection if all connections together hold too
        many bytes.
        """
        client = self._addresses.get(connection.address)
        if client is not None and connection in client:
            client.held_bytes += change
            self.held_bytes += change
            if self.held_bytes > _MOST_HELD_BYTES:
                self._abort_largest_holder(connection)

    def _abort_largest_holder(self, reader: HttpConnection) -> None:
        # aborts a connection of the address that holds the most bytes: the one that reads now, or else the largest
        largest = max(self._addresses.values(), key=attrgetter("held_bytes"))
        self._end(reader if reader in largest else max(largest, key=attrgetter("held_bytes")), "buffers")

    def forget(self, connection: HttpConnection) -> None:
        """Stop counting a connection that has ended."""
        client = self._addresses.get(connection.address)
        if client is None or connection not in client:
            return
        client.unproven.pop(connection, None)
        client.proven.pop(connection, None)
        client.held_bytes -= connection.held_bytes
        self.held_bytes -= connection.held_bytes
        if not client:
            del self._addresses[connection.address]
        self._change_count(-1)

    def abort_least_needed_connection(self) -> None:
        if self._addresses:
            largest = max(self._addresses.values(), key=len)
            now = next(iter(largest)).loop.time()
            self._end(largest.least_needed(now, self._max_connections / _UNPROVEN_SHARE), "limit")

    def abort_slow_holders(self, now: float) -> None:
        """Abort slow connections until all connections together fit MAX_HELD_BYTES. The address with the most bytes
        comes first.
        """
        if self.held_bytes <= MAX_HELD_BYTES:
            return
        for client in sorted(self._addresses.values(), key=attrgetter("held_bytes"), reverse=True):
            for connection in client.slow_holders(now):
                if self.held_bytes <= MAX_HELD_BYTES:
                    return
                self._end(connection, "buffers")

    def _end(self, connection: HttpConnection, reason: str) -> None:
        self.forget(connection)
        connection.abort()
        self._counters.connections_aborted[reason,] += 1

    def _change_count(self, change: int) -> None:
        self._count += change
        self._counters.connections[self._port,] = self._count


def _longest_unused(connections: Iterable[HttpConnection]) -> Iterator[HttpConnection]:
    # without connections on which a request has arrived
    idle = nsmallest(
        _MOST_IDLE_TRIED,
        (connection for connection in connections if connection.state == "idle"),
        key=attrgetter("since"),
    )
    return (connection for connection in idle if not connection.has_unread())


_CLOSED_AT_ONCE: Final = 10
"""The maximum number of connections closed in a row. Requests wait meanwhile, because each close encrypts a TLS
goodbye.
"""
_MOST_IDLE: Final = 20
"""The maximum number of long-idle connections closed in one sweep."""
_LOOK_S: Final = 0.02
_FIRST_REQUEST_S: Final = 1.0
"""Seconds for a client that has connected and not sent a request yet."""


async def close_idle_connections(
    connections: Callable[[], Iterable[HttpConnection]], is_hurried: Callable[[], bool] = lambda: False
) -> None:
    """Close idle connections a few at a time, and busy connections after their next answer.

    Clients that have just connected get a second for their first request.

    Args:
        connections: returns the connections to close; called in each round.
        is_hurried: returns whether to stop and leave the remaining connections open.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + _FIRST_REQUEST_S
    while not is_hurried():
        chosen = list(connections())
        for connection in chosen:
            connection.close_after_next_answer()
        is_over = loop.time() > end
        idle = [connection for connection in chosen if connection.state == "idle" or (is_over and connection.is_new)]
        for number, connection in enumerate(idle):
            connection.close_if_unused()
            if number % _CLOSED_AT_ONCE == _CLOSED_AT_ONCE - 1:
                await asyncio.sleep(0)
        if is_over or not any(connection.is_new for connection in chosen):
            return
        await asyncio.sleep(_LOOK_S)


def abort_overdue(connections: Iterable[HttpConnection], now: float) -> Counter[str]:
    """Abort every connection with a late client, and close connections that were idle for long.

    Return how many were aborted, by the exceeded timeout. The log of handshakes counts late handshakes.
    """
    overdue = [(connection, exceeded) for connection in connections if (exceeded := connection.exceeded_timeout(now))]
    for connection in [connection for connection, exceeded in overdue if exceeded == "idle"][:_MOST_IDLE]:
        connection.close_if_unused()
    slow = [(connection, exceeded) for connection, exceeded in overdue if exceeded != "idle"]
    for connection, _ in slow:
        connection.end_late()
    return Counter(exceeded for _, exceeded in slow if exceeded != "handshake")
