"""Who counts the connections of a server, as a connection sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from webhook.server.connections import BoundedConnection


class Register(Protocol):
    """Receives the progress of a connection, and counts it."""

    def mark_first_request_answered(self, connection: BoundedConnection) -> None:
        """Note that the first request of the connection was answered."""
        ...

    def add_read_bytes(self, connection: BoundedConnection, grown: int) -> None:
        """Note that the largest read of the connection is `grown` bytes larger than before."""
        ...

    def throttle_answered_body(self, size: int, now: float) -> float:
        """Count bytes of a body that was answered already, and return the seconds until more may be read."""
        ...

    def forget(self, connection: BoundedConnection) -> None:
        """Stop counting the connection: it has ended, or was never established."""
        ...
