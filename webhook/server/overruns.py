"""Whose larger reviews took too long for the event loop of late: those go to a worker at once.

Trying each of them on the loop first would stop everybody for some 20 ms each time, to learn what is known. Small ones
are always tried: a worker costs the loop more than most of them do. Knows tenants and sizes, nothing of reviews.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from webhook.server.inline_budget import Tenant
from webhook.server.latest import Latest

SMALL_BYTES: Final = 16 * 1024
"""An ordinary Pod is half as large."""
TRIES: Final = 2
"""One may be bad luck: a busy node, or the copies of pages after a fork."""
REMEMBERED_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class _Overruns:
    times: int
    least_bytes: int
    at: float


class Overruns:
    """Remembers who overran, with how large a body, and when; used by the loop's thread alone."""

    def __init__(self) -> None:
        self._of: Latest[Tenant, _Overruns] = Latest()

    def note(self, tenant: Tenant, size: int, now: float) -> None:
        """A review of so many bytes took too long, at a moment of the monotonic clock."""
        if size <= SMALL_BYTES:
            return
        known = self._recent(tenant, now)
        times, least = (1, size) if known is None else (known.times + 1, min(size, known.least_bytes))
        self._of.note(tenant, _Overruns(times, least, now))

    def expects(self, tenant: Tenant, size: int, now: float) -> bool:
        """Whether a review of so many bytes would most likely take too long again."""
        known = self._recent(tenant, now) if size > SMALL_BYTES else None
        return known is not None and known.times >= TRIES and size >= known.least_bytes // 2

    def _recent(self, tenant: Tenant, now: float) -> _Overruns | None:
        known = self._of.get(tenant)
        return known if known is not None and now - known.at < REMEMBERED_S else None
