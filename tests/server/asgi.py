"""A serving process in memory. Its endpoint and pages are the real ones, and the test provides the reviewer."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from webhook.admission.review import NotEvaluated
from webhook.apimachinery.attributes import Attributes, Phase
from webhook.cel.library.authorizer import Authorizer
from webhook.cluster import Cluster
from webhook.deadline import Deadline
from webhook.logs.structured import Log, LogWriter
from webhook.rules.decisions import DenialStatus, Verdict
from webhook.server.application import create_application
from webhook.server.client_clock import CLOCK, ClientClock
from webhook.server.counters import Counters
from webhook.server.server_parts import Readiness, ServerParts
from webhook.server.warning_events import WarningEvents
from webhook.settings.serving import DEFAULTS, ServerSettings

Review = Callable[[Attributes, Phase, Deadline], Verdict]


def allow(_attributes: Attributes, _phase: Phase, _deadline: Deadline) -> Verdict:
    return Verdict(allowed=True)


@dataclass(frozen=True)
class Given:
    """A reviewer that calls one function of the test. An interrupted review is denied."""

    answer: Review
    asks: Callable[[Authorizer], Verdict] | None = None

    def review(
        self, attributes: Attributes, phase: Phase, deadline: Deadline, authorizer: Authorizer | None = None
    ) -> Verdict:
        if self.asks is not None and authorizer is not None:
            return self.asks(authorizer)
        return self.answer(attributes, phase, deadline)

    def version(self) -> object:
        """Return a new version for each call, because the function may answer differently."""
        return object()

    def answer_unevaluated(self, _attributes: Attributes, _phase: Phase, why: NotEvaluated) -> Verdict:
        return Verdict(
            allowed=False, status=DenialStatus(code=422, reason="Invalid", message=f"not evaluated: {why.because}")
        )


def review_of(uid: str = "U", **request: Any) -> dict[str, Any]:
    base = {
        "uid": uid,
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "operation": "CREATE",
        "object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}},
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {**base, **request}}


@dataclass
class Running:
    reviewer: Review = allow
    settings: ServerSettings = DEFAULTS
    readiness: Readiness = field(default_factory=Readiness)
    counters: Counters = field(default_factory=Counters)
    stream: io.StringIO = field(default_factory=io.StringIO)
    writer: LogWriter | None = None
    asks: Callable[[Authorizer], Verdict] | None = None
    authority: Any = None
    view: Callable[[], Cluster] | None = None
    events: WarningEvents | None = None

    def __post_init__(self) -> None:
        self.log = Log(stream=self.stream, clock=lambda: 0.0, writer=self.writer)
        self.parts = ServerParts(
            settings=self.settings,
            log=self.log,
            counters=self.counters,
            readiness=self.readiness,
            authority=self.authority,
            view=self.view,
            events=self.events,
        )
        gauges = {
            "policies": ("Policies in service.", lambda: 3.0),
            "log_lines_dropped_total": ("Lines.", lambda: 0.0),
        }
        self.app, self.probes = create_application(
            Given(self.reviewer, self.asks), self.parts, gauges=gauges, about={"kubernetes": "1.36"}
        )
        self.scheduler = self.parts.scheduler

    async def app_with_clock(self, scope: Any, receive: Any, send: Any) -> None:
        clock = ClientClock()
        clock.loop = asyncio.get_running_loop()
        await self.app({**scope, "extensions": {CLOCK: clock}}, receive, send)

    def call(self, method: str, path: str, **options: Any) -> httpx.Response:

        async def one() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app_with_clock)
            async with httpx.AsyncClient(transport=transport, base_url="https://test") as client:
                return await client.request(method, path, **options)

        return asyncio.run(one())

    def post(self, path: str, value: Any, **options: Any) -> httpx.Response:
        """Send the value with the headers of an API server."""
        headers = {"content-type": "application/json", **options.pop("headers", {})}
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        return self.call("POST", path, content=body, headers=headers, **options)

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]
