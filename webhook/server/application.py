"""Puts one serving process together: the endpoint of reviews, the other pages, and their counters."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Callable, Iterable, Mapping
from time import thread_time
from typing import Final

from webhook import __version__
from webhook.logs.structured import LEVELS
from webhook.policy.compiled import Policy
from webhook.server.http_exchange import AsgiApp, Receive, Scope, Send, client_address
from webhook.server.probes import create_probes
from webhook.server.review_endpoint import ReviewEndpoint
from webhook.server.review_log import ReviewLog
from webhook.server.scheduler import Scheduler
from webhook.server.served_state import ReviewEvaluation, ServedState
from webhook.server.server_parts import Gauges, ServerParts
from webhook.server.slow_reviews import SlowReviews
from webhook.server.usage import page_tenant
from webhook.server.worker_lane import WorkerLane
from webhook.settings.serving import ServerSettings
from webhook.text.caches import bytes_of_all_caches

_MOST_PAGE_S: Final = 0.005
"""The maximum number of seconds that a page is charged. While a thread renders /metrics, the event loop works for other
tenants, and the measured time includes this work.
"""


class LazyPages:
    """Answers everything except reviews: probes, and the pages of a FastAPI application that is created later.

    FastAPI takes a tenth of the start, and neither reviews nor probes need it. A thread creates the application after
    `load` or the first call for a page. If the creation fails, all waiting calls raise the error, and the next call
    tries again.
    """

    def __init__(self, create: Callable[[], AsgiApp], scheduler: Scheduler, probes: Mapping[str, AsgiApp]) -> None:
        """`create` returns the FastAPI application. `probes` answer their paths without FastAPI."""
        self._create = create
        self._probes = probes
        self._scheduler = scheduler
        self._loading: asyncio.Future[AsgiApp] | None = None

    async def load(self) -> AsgiApp:
        """Return the application; the first call creates it."""
        if self._loading is None:
            self._loading = asyncio.ensure_future(asyncio.to_thread(self._create))
        loading = self._loading
        try:
            return await asyncio.shield(loading)
        except Exception:
            if self._loading is loading:
                self._loading = None
            raise

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one ASGI request when its tenant gets a turn. The tenant is the path and the client's address."""
        application = self._probes.get(scope["path"]) or await self.load()
        tenant = page_tenant(scope["path"], client_address(scope))
        await self._scheduler.wait_for_turn(tenant)
        started_at = thread_time()
        try:
            await application(scope, receive, send)
        finally:
            self._scheduler.worked(tenant, min(thread_time() - started_at, _MOST_PAGE_S))


def create_application(
    state: ServedState,
    parts: ServerParts,
    *,
    gauges: Gauges,
    about: Mapping[str, str],
    policies: Callable[[], Iterable[Policy]] = tuple,
) -> tuple[ReviewEndpoint, LazyPages]:
    """Create the review endpoint and the other pages of one process.

    Args:
        state: evaluates reviews.
        parts: what the parts of the server share.
        gauges: more figures for /metrics.
        about: more fields for /version.
        policies: the policies of /debug/policies.
    """
    evaluation = ReviewEvaluation(
        state, logs_denials=_logs_denials(parts.settings), notes_warnings=parts.events is not None
    )
    lane = WorkerLane(parts, evaluation.evaluate_in_worker, state.version)
    version = {"name": "claimgate", "version": __version__, "python": platform.python_version(), **about}

    def create() -> AsgiApp:
        from webhook.server.metrics import Exposition
        from webhook.server.pages import create as create_pages

        shown = {**gauges, **_gauges_of_server(parts.scheduler, lane, endpoint)}
        metrics = Exposition(parts.counters, shown, version=__version__).text
        return create_pages(metrics, version, policies)

    pages = LazyPages(create, parts.scheduler, create_probes(parts.readiness))
    endpoint = ReviewEndpoint(pages, SlowReviews(evaluation, lane, parts, ReviewLog(parts)), parts)
    return endpoint, pages


def _logs_denials(settings: ServerSettings) -> bool:
    # at the level of --log-denials and at more detailed levels
    level = settings.log_denials
    return level != "never" and LEVELS.index(settings.log_level) <= LEVELS.index(level)


def _gauges_of_server(scheduler: Scheduler, lane: WorkerLane, endpoint: ReviewEndpoint) -> Gauges:
    bodies = endpoint.bodies
    return {
        "current_inflight_requests": ("Reviews that are read or evaluated now.", lambda: endpoint.in_flight),
        "loop_waiting": ("Requests that wait for a turn on the event loop.", lambda: scheduler.waiting_count),
        "workers_busy": ("Worker processes that evaluate a review.", lambda: lane.busy_worker_count),
        "workers_waiting": ("Reviews that wait for a worker process.", lambda: lane.waiting_review_count),
        "inflight_body_bytes": ("Bytes reserved for bodies above 64 KiB.", lambda: bodies.reserved),
        "user_cache_bytes": ("An upper bound for the bytes of cached texts that users write.", bytes_of_all_caches),
        "waiting_bodies": ("Calls that wait until their body may be read.", lambda: bodies.waiting_call_count),
    }
