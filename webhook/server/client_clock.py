"""What the client of a connection owes the server, and since when; stopped while the client waits for the server.

Knows the clock of an event loop and the timeouts, nothing of HTTP or of bytes.
"""

from __future__ import annotations

import asyncio
from typing import Final

from webhook.server.connection_timeouts import Awaited, ConnectionTimeouts

IDLE: Final[Awaited] = "idle_s"


class ClientClock:
    """The clock of one client.

    Attributes:
        loop: whose time counts.
        waits_for, since: what the client owes, and since when on the loop's clock.
    """

    loop: asyncio.AbstractEventLoop
    waits_for: Awaited = ""
    since = 0.0
    _paused_at: float | None = None
    _is_held = False
    _received = 0

    def pause_clock(self) -> None:
        """Stop the client's clock: from now on the client waits for the server."""
        if self._paused_at is None:
            self._paused_at = self.loop.time()

    def resume_clock(self) -> None:
        """Start the client's clock again without the time since `pause_clock`."""
        if self._paused_at is not None:
            self.since += self.loop.time() - self._paused_at
            self._paused_at = None

    def require_large_body_pace(self) -> None:
        """Require the body to arrive at the pace of large bodies, because memory is reserved for it."""
        if self.waits_for == "body_s":
            self._start_waiting_for_client("body_s")
            self._is_held, self._received = True, 0

    @property
    def is_new(self) -> bool:
        """Return whether no byte of the first request has arrived yet."""
        return self.waits_for == "first_byte_s"

    @property
    def is_idle(self) -> bool:
        """Return whether every request of the connection is answered."""
        return self.waits_for == IDLE

    def _exceeded_wait(self, timeouts: ConnectionTimeouts, now: float) -> str:
        """Return the field of `timeouts` that says how long the client may take, if it has taken longer, or ""."""
        if not self.waits_for or self._paused_at is not None:
            return ""
        return self.waits_for if now - self.since > self._allowed_seconds(timeouts) else ""

    def _allowed_seconds(self, timeouts: ConnectionTimeouts) -> float:
        bound: float = getattr(timeouts, self.waits_for)
        if self._is_held:
            bound = min(bound, timeouts.held_s + self._received / timeouts.held_bytes_per_s)
        return bound

    def _start_waiting_for_client(self, what: Awaited) -> None:
        self.waits_for = what
        self.since = self.loop.time()
        self._paused_at = None
        self._is_held = False
