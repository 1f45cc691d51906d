"""One serving process put together: the endpoint of reviews, its handler, the other pages, and what they count.

Knows which part needs which; makes no policy, no cluster view and no socket.
"""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from webhook import __version__
from webhook.logs import Log
from webhook.server.counters import Counters
from webhook.server.inline_budget import InlineBudget
from webhook.server.metrics import Exposition, Gauges
from webhook.server.readiness import Readiness
from webhook.server.request_body import BodyBudget, Receive, Scope
from webhook.server.review_endpoint import AsgiApp, Limits, ReviewEndpoint, Send
from webhook.server.review_handler import Reviewer, ReviewHandler
from webhook.server.worker_lane import WorkerLane, WorkerLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """What is served, what it counts, whether it is ready, and its background work.

    `endpoint` is what the port of the reviews serves, `probes` the same without reviews.
    `budget` is what single reviews may take of the event loop.
    """

    endpoint: ReviewEndpoint
    probes: AsgiApp
    budget: InlineBudget
    counters: Counters
    readiness: Readiness
    warm: Callable[[], Coroutine[Any, Any, None]]


class _Later:
    """FastAPI behind the endpoint, imported and made during the first reviews.

    Importing it takes a third of the start-up, and a review does not need it: it happens in a thread, started by
    `Application.warm`, or by the first call that is no review.
    """

    def __init__(self, create: Callable[[], AsgiApp]) -> None:
        self._create = create
        self._made: asyncio.Future[AsgiApp] | None = None

    async def make(self) -> AsgiApp:
        """The application; whoever comes first has it made, everybody waits for the same one."""
        if self._made is None:
            self._made = asyncio.ensure_future(asyncio.to_thread(self._create))
        return await asyncio.shield(self._made)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        application = await self.make()
        await application(scope, receive, send)


def compose(
    reviewer: Reviewer,
    log: Log,
    limits: Limits,
    *,
    counters: Counters,
    readiness: Readiness,
    gauges: Gauges,
    about: dict[str, str],
    workers: WorkerLimits = WorkerLimits(),  # noqa: B008 - frozen
) -> Application:
    """Put a process together.

    Args:
        reviewer: the core, its policies and cluster view given.
        log: where the lines of reviews and faults go.
        limits: of one call.
        counters: the counts, shared with whoever reloads.
        readiness: its checks; the listener sets `draining`.
        gauges: further figures for /metrics.
        about: further fields for /version.
        workers: how many processes evaluate what takes long, and what each may take.
    """
    exposition: list[Exposition] = []
    lane = WorkerLane(workers, counters)
    busy = ("Worker processes that evaluate a review.", lambda: float(lane.busy))
    waiting = ("Reviews that wait for a worker process.", lambda: float(lane.waiting))
    gauges = {**gauges, "workers_busy": busy, "workers_waiting": waiting}

    def metrics() -> tuple[bytes, str]:
        if not exposition:
            exposition.append(Exposition(counters, {**gauges, **_body_gauges(endpoint.bodies)}, version=__version__))
        return exposition[0].text()

    version = {"name": "claimgate", "version": __version__, "python": platform.python_version(), **about}

    def create() -> AsgiApp:
        from webhook.server.pages import create as make

        return make(readiness, metrics, version)

    application = _Later(create)

    async def warm() -> None:
        await application.make()

    handler = ReviewHandler(reviewer, lane, counters, log)
    endpoint = ReviewEndpoint(application, handler, readiness, limits)
    return Application(
        endpoint=endpoint, probes=application, budget=handler.budget, counters=counters, readiness=readiness, warm=warm
    )


def _body_gauges(bodies: BodyBudget) -> Gauges:
    return {
        "inflight_body_bytes": ("Bytes reserved for bodies above 64 KiB.", lambda: bodies.reserved),
        "waiting_bodies": ("Calls that wait until their body may be read.", lambda: bodies.waiting),
    }
