"""The shared parts of one serving process: its log, its counters, its readiness and its scheduler."""

from __future__ import annotations

from dataclasses import dataclass, field

from webhook.logs.structured import Log
from webhook.server.counters import Counters
from webhook.server.scheduler import Scheduler
from webhook.server.served_state import Readiness


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerParts:
    """The shared parts.

    Attributes:
        log: where lines of reviews and faults go.
        counters: the counts that /metrics shows.
        readiness: its checks; the listener sets `draining`.
        scheduler: decides which review may use the event loop now.
    """

    log: Log = field(default_factory=Log)
    counters: Counters = field(default_factory=Counters)
    readiness: Readiness = field(default_factory=Readiness)
    scheduler: Scheduler = field(default_factory=Scheduler)
