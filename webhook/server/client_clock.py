"""The clock of one client: how long the client may take for each part of a request.

A connection has one state, and each state has one timeout. No clock runs while the client waits for the server.
`connection_limit.py` checks all clocks five times a second.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

State: TypeAlias = Literal["handshake", "first_byte", "headers", "body", "serving", "idle", "goodbye"]
"""What the server waits for; with `serving`, the client waits for the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionTimeouts:
    """How many seconds a client may take.

    Attributes:
        handshake_s: for the TLS handshake.
        first_byte_s: from the handshake to the first byte of a request.
        headers_s, body_s: for all headers, for the whole body.
        held_s, held_bytes_per_s: a large body has reserved memory, so after `held_s` it must arrive at this pace. 20
            MiB may take 7 s, so the next call in the queue has time for its own body.
        answer_s: to read the answer.
        goodbye_s: to close the client's side.
        idle_s: between requests. An API server reuses idle connections for 90 s, and does not repeat a POST if the
            connection was just closed.
    """

    handshake_s: float = 5.0
    first_byte_s: float = 5.0
    headers_s: float = 5.0
    body_s: float = 10.0
    held_s: float = 2.0
    held_bytes_per_s: float = 4 * 1024 * 1024
    answer_s: float = 10.0
    goodbye_s: float = 1.0
    idle_s: float = 120.0


CLOCK: Final = "claimgate.client_clock"
"""The key of the clock in the `extensions` of a scope."""


class ClientClock:
    """The clock of one client.

    Attributes:
        loop: the event loop.
        state, since: what the server waits for, and since when on the loop's clock.
    """

    loop: asyncio.AbstractEventLoop
    state: State = "serving"
    since = 0.0
    _paused_at: float | None = None
    _large_body_bytes: int | None = None

    def enter(self, state: State) -> None:
        """From now on, wait for the part that `state` names."""
        self.state = state
        self.since = self.loop.time()
        self._paused_at = self._large_body_bytes = None

    def pause_clock(self) -> None:
        """Stop the clock: the client waits for the server."""
        if self._paused_at is None:
            self._paused_at = self.loop.time()

    def resume_clock(self) -> None:
        """Start the clock again, without the time since `pause_clock`."""
        if self._paused_at is not None:
            self.since += self.loop.time() - self._paused_at
            self._paused_at = None

    def require_large_body_pace(self) -> None:
        """Require the pace of large bodies: memory is reserved for this body."""
        if self.state == "body":
            self.enter("body")
            self._large_body_bytes = 0

    def count_large_body(self, size: int) -> None:
        """Count received bytes, if a pace is required."""
        if self._large_body_bytes is not None:
            self._large_body_bytes += size

    def has_kept_server_waiting(self, now: float, least_s: float = 0.0) -> bool:
        return self.state != "serving" and self._paused_at is None and now - self.since >= least_s

    def is_late(self, timeouts: ConnectionTimeouts, now: float) -> bool:
        if self.state == "serving" or self._paused_at is not None:
            return False
        seconds: float = getattr(timeouts, f"{self.state}_s")
        if self._large_body_bytes is not None:
            seconds = min(seconds, timeouts.held_s + self._large_body_bytes / timeouts.held_bytes_per_s)
        return now - self.since > seconds
