"""Chooses the connections that the server ends: connections with late clients, and idle connections when the server
stops.

HTTP/1.1 has no way to end an idle connection that the client may be using at this moment. An idle connection is closed
only while nothing of a request is here, not even in the system's buffers, and few are closed between two looks at the
sockets.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from webhook.server.http_connection import HttpConnection

_CLOSED_AT_ONCE: Final = 10
"""How many connections are closed in a row: under TLS each needs an encrypted goodbye while requests wait."""
_MOST_IDLE: Final = 20
"""How many connections that were idle for long are closed in one sweep."""
_LOOK_S: Final = 0.02
_FIRST_REQUEST_S: Final = 1.0
"""Seconds for a client that has connected and not sent a request yet."""


async def close_idle_connections(
    connections: Callable[[], Iterable[HttpConnection]], is_hurried: Callable[[], bool] = lambda: False
) -> None:
    """Close idle connections a few at a time, and return when all others wait for a request or an answer.

    Args:
        connections: those to end; asked again in each round.
        is_hurried: whether to leave the rest unchanged.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + _FIRST_REQUEST_S
    while not is_hurried():
        chosen = list(connections())
        for connection in chosen:
            connection.close_after_next_answer()
        is_over = loop.time() > end
        idle = [one for one in chosen if one.state == "idle" or (is_over and one.is_new)]
        for number, connection in enumerate(idle):
            connection.close_if_unused()
            if number % _CLOSED_AT_ONCE == _CLOSED_AT_ONCE - 1:
                await asyncio.sleep(0)
        if is_over or not any(one.is_new for one in chosen):
            return
        await asyncio.sleep(_LOOK_S)


def abort_overdue(connections: Iterable[HttpConnection], now: float) -> Counter[str]:
    """Abort every connection with a late client, and close connections that were idle for long.

    Args:
        connections: the connections to check.
        now: the event loop's time.

    Returns:
        How many were aborted, by the timeout that they exceeded; handshakes are counted where they are logged.
    """
    overdue = [(one, exceeded) for one in connections if (exceeded := one.exceeded_timeout(now))]
    for connection in [one for one, exceeded in overdue if exceeded == "idle"][:_MOST_IDLE]:
        connection.close_if_unused()
    slow = [(one, exceeded) for one, exceeded in overdue if exceeded != "idle"]
    for connection, _ in slow:
        connection.end_late()
    return Counter(exceeded for _, exceeded in slow if exceeded != "handshake")
