"""Limits how many connections a port has, and chooses which one to end when another arrives.

Knows connections by what they tell of themselves; nothing of sockets and TLS. The newcomer is always let in: whoever
fills the port with connections, idle or half open, cannot lock the API server out, only end older ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Final

from webhook.server.connections import BoundedConnection
from webhook.server.counters import Counters
from webhook.server.reading_pace import ReadingPace

MAX_READ_BYTES: Final = 6 * 1024 * 1024
"""Of the largest reads of all connections. The TLS layer keeps 2 to 3 times as much until a connection ends, which a
thousand connections with half a body of 60 KB would make 190 MB. A thousand reviews of usual size make 6 MB."""
_UNHEARD_BYTES_PER_S: Final = 16 * 1024 * 1024
_UNHEARD_BURST: Final = 1024 * 1024
"""At which bodies that were answered before they came are read to their end, all connections together."""
_LARGE_READ: Final = 16 * 1024
_PATIENCE_S: Final = 1.0
"""A connection that is in the middle of a request is only ended for its buffers when its client made us wait so long:
the body of an API server is there within milliseconds."""
_UNPROVEN_SHARE: Final = 4
"""A quarter of the places stays with connections that were not answered yet. Otherwise somebody who had every place
answered once could end each newcomer, an API server's among them, by opening another."""


class ConnectionLimit:
    """The connections of one port, counted from their accept, and the memory of their reads. Event loop only.

    A connection is unproven until its first request was answered; those are kept in the order in which they came.
    """

    def __init__(self, most: int, port: str, counters: Counters) -> None:
        """Count the connections of one port.

        Args:
            most: how many there may be.
            port: its name in metrics.
            counters: the counts.
        """
        self._most = most
        self._port = port
        self._counters = counters
        self._unproven: dict[BoundedConnection, None] = {}
        self._proven: dict[BoundedConnection, None] = {}
        self.read_bytes = 0
        self._unheard = ReadingPace(_UNHEARD_BYTES_PER_S, _UNHEARD_BURST)

    def __len__(self) -> int:
        return len(self._unproven) + len(self._proven)

    def admit(self, connection: BoundedConnection) -> None:
        """Count a new connection; when the port is full, first abort the connection that is needed least."""
        while len(self) >= self._most:
            self.abort_least_needed_connection()
        connection.register = self
        connection.since = connection.loop.time()
        self._unproven[connection] = None
        self._update_connection_gauge()

    def mark_first_request_answered(self, connection: BoundedConnection) -> None:
        """Note that the first request of a connection was answered."""
        if connection in self._unproven:  # not aborted while its answer was computed
            del self._unproven[connection]
            self._proven[connection] = None

    def add_read_bytes(self, connection: BoundedConnection, grown: int) -> None:
        """Note that the largest read of a connection grew by so many bytes."""
        if connection in self._unproven or connection in self._proven:
            self.read_bytes += grown

    def throttle_answered_body(self, size: int, now: float) -> float:
        """Count bytes of a body that was answered already, and return the seconds until more may be read."""
        return self._unheard.record_read(size, now)

    def forget(self, connection: BoundedConnection) -> None:
        """Stop counting a connection that has ended."""
        if connection in self._unproven or connection in self._proven:
            self._unproven.pop(connection, None)
            self._proven.pop(connection, None)
            self.read_bytes -= connection.largest_read
            self._update_connection_gauge()

    def abort_least_needed_connection(self) -> None:
        """Abort the connection that is needed least, if there is any."""
        victim = self._connection_to_end()
        if victim is not None:
            self._end(victim, "limit")

    def abort_connections_with_large_buffers(self, now: float) -> None:
        """Abort idle and then slow connections with large buffers until all buffers fit MAX_READ_BYTES."""
        if self.read_bytes <= MAX_READ_BYTES:
            return
        large = [one for one in (*self._proven, *self._unproven) if one.largest_read >= _LARGE_READ]
        slow = [one for one in large if _is_connection_idle(one) or one.has_kept_server_waiting(now, _PATIENCE_S)]
        for one in sorted(slow, key=lambda one: (not _is_connection_idle(one), one.since)):
            if self.read_bytes <= MAX_READ_BYTES:
                return
            self._end(one, "buffers")

    def _connection_to_end(self) -> BoundedConnection | None:
        """Return the connection to abort: a quarter of the places is left to unproven ones, after that the longest idle
        goes.
        """
        unproven = next((one for one in self._unproven if one.has_kept_server_waiting(one.loop.time())), None)
        if unproven is not None and len(self._unproven) * _UNPROVEN_SHARE > self._most:
            return unproven
        idle = min(filter(_is_connection_idle, self._proven), key=attrgetter("since"), default=None)
        return idle or unproven or _first_connection(self._proven) or _first_connection(self._unproven)

    def _end(self, connection: BoundedConnection, reason: str) -> None:
        self.forget(connection)
        connection.abort()
        self._counters.connections_aborted[reason,] += 1

    def _update_connection_gauge(self) -> None:
        self._counters.connections[self._port,] = len(self)


def _first_connection(connections: Iterable[BoundedConnection]) -> BoundedConnection | None:
    return next(iter(connections), None)


def _is_connection_idle(connection: BoundedConnection) -> bool:
    return connection.waits_for == "idle_s"
