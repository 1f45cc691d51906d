"""One serving process put together: the door, the desk behind it, the application, and their shared books.

Knows which part needs which; makes no policy, no cluster view and no socket.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass, field
from typing import Any

from webhook import __version__
from webhook.logs import Log
from webhook.server.desk import ReviewDesk, Reviewer
from webhook.server.door import Application, Door, Limits, Receive, Scope, Send
from webhook.server.metrics import Exposition, Gauges
from webhook.server.readiness import Readiness
from webhook.server.tally import Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """What is served (`door`, an ASGI application), what it counts, and whether it is ready."""

    door: Door
    tally: Tally
    readiness: Readiness


@dataclass(slots=True)
class _Later:
    """FastAPI behind the door, imported and made on the first call that is no review.

    Importing it takes half of the start-up; the first probe pays for it, the first review does not wait.
    """

    process: dict[str, Any]
    application: Application | None = field(default=None)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.application is None:
            from webhook.server.app import create

            self.application = create(**self.process)
        await self.application(scope, receive, send)


def process(
    reviewer: Reviewer,
    log: Log,
    limits: Limits,
    *,
    tally: Tally,
    readiness: Readiness,
    gauges: Gauges,
    about: dict[str, str],
) -> Process:
    """Put a process together.

    Args:
        reviewer: the core, its policies and cluster view given.
        log: where the lines of reviews and faults go.
        limits: of one call.
        tally: the counts, shared with whoever reloads.
        readiness: its checks; the listener sets `draining`.
        gauges: further figures for /metrics.
        about: further fields for /version.
    """
    exposition: list[Exposition] = []

    def metrics() -> tuple[bytes, str]:
        if not exposition:
            exposition.append(Exposition(tally, gauges, version=__version__))
        return exposition[0].text()

    version = {"name": "claimgate", "version": __version__, "python": platform.python_version(), **about}
    application = _Later({"readiness": readiness, "metrics": metrics, "version": version})
    desk = ReviewDesk(reviewer, tally, log)
    return Process(door=Door(application, desk, readiness, limits), tally=tally, readiness=readiness)
