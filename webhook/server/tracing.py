"""OpenTelemetry spans: one for each review, with the ids of the rules that it broke and nothing of the object.

Needs the extra `otel`, and is imported only with `--traces`. The SDK reads the variables OTEL_* of the specification:
the collector's address, the sampling, the service name. A `traceparent` of the call is the span's parent. API servers
with tracing send a `traceparent`.

The SDK's BatchSpanProcessor would start a thread in each forked worker. Here, spans wait in a bounded queue, and a
background task of the server sends them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from opentelemetry.propagate import get_global_textmap
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import SpanKind, Status, StatusCode, get_current_span

from webhook import __version__
from webhook.server.counters import Counters
from webhook.server.http_exchange import PATHS, AsgiApp, Receive, Scope, Send

if TYPE_CHECKING:
    from opentelemetry.util.types import AttributeValue

MAX_QUEUED: Final = 2048
"""The maximum number of waiting spans, as in the SDK. Above this number, the oldest span is dropped and counted."""
_PERIOD_S: Final = 1.0
_BATCH: Final = 512
_LIMITS: Final = SpanLimits(max_attribute_length=256)
"""A client may send a namespace of megabytes; API servers send at most 63 characters."""
_FIELDS: Final = {
    "uid": "claimgate.review.uid",
    "phase": "claimgate.review.phase",
    "operation": "claimgate.review.operation",
    "group": "claimgate.review.group",
    "kind": "claimgate.review.kind",
    "subresource": "claimgate.review.subresource",
    "namespace": "k8s.namespace.name",
    "dry_run": "claimgate.review.dry_run",
    "allowed": "claimgate.review.allowed",
    "code": "claimgate.review.code",
    "policies": "claimgate.policies",
    "rules": "claimgate.rules",
    "patched": "claimgate.review.patch_operations",
    "lane": "claimgate.review.lane",
    "reason": "claimgate.review.not_evaluated",
}
"""The attribute of a span for each field of a review's log line. Names of objects and users are only in the log."""


class SpanQueue(SpanProcessor):
    """Keeps ended spans until the server sends them."""

    def __init__(self, counters: Counters) -> None:
        self._spans: deque[ReadableSpan] = deque(maxlen=MAX_QUEUED)
        self._counters = counters

    def on_end(self, span: ReadableSpan) -> None:
        """Keep the span; a full queue drops its oldest."""
        if len(self._spans) == MAX_QUEUED:
            self._counters.spans["dropped",] += 1
        self._spans.append(span)

    def take(self) -> Sequence[ReadableSpan]:
        return [self._spans.popleft() for _ in range(min(_BATCH, len(self._spans)))]


class Tracing:
    """The spans of one server."""

    def __init__(self, exporter: SpanExporter, counters: Counters) -> None:
        """Create spans for `exporter`, which logs if it cannot send them."""
        self._queue = SpanQueue(counters)
        self._exporter = exporter
        self._counters = counters
        provider = TracerProvider(resource=_resource(), span_limits=_LIMITS, shutdown_on_exit=False)
        provider.add_span_processor(self._queue)
        self._tracer = provider.get_tracer("claimgate", __version__)

    def traced(self, application: AsgiApp) -> AsgiApp:
        """Return the application with a span around each review."""

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            phase = PATHS.get(scope["path"])
            if phase is None:
                await application(scope, receive, send)
                return
            parent = get_global_textmap().extract(_trace_context_headers(scope))
            name = f"{phase.value} review"
            with self._tracer.start_as_current_span(
                name,
                parent,
                SpanKind.SERVER,
                record_exception=False,  # the text may quote the object
                set_status_on_exception=False,
            ) as span:

                async def note(message: MutableMapping[str, Any]) -> None:
                    if message["type"] == "http.response.start":
                        span.set_attribute("http.response.status_code", message["status"])
                        if message["status"] >= 500:
                            span.set_status(Status(StatusCode.ERROR))
                    await send(message)

                await application(scope, receive, note)

        return answer

    def reviewed(self, fields: dict[str, object]) -> None:
        """Add the log fields of a review to the span of the current request."""
        span = get_current_span()
        if span.is_recording():
            for key, name in _FIELDS.items():
                if (value := fields.get(key)) not in (None, ""):
                    span.set_attribute(name, cast("AttributeValue", value))

    async def send_periodically(self) -> None:
        """Send waiting spans for ever, a batch at a time."""
        while True:
            await asyncio.sleep(_PERIOD_S)
            while spans := self._queue.take():
                await asyncio.to_thread(self._export, spans)

    def flush(self) -> None:
        """Send the remaining spans at the stop."""
        while (spans := self._queue.take()) and self._export(spans):
            pass  # stop after a failed batch, because a failed batch takes ten seconds and the kubelet waits
        self._exporter.shutdown()

    def _export(self, spans: Sequence[ReadableSpan]) -> bool:
        is_sent = self._exporter.export(spans) is SpanExportResult.SUCCESS
        self._counters.spans["sent" if is_sent else "failed",] += len(spans)
        return is_sent


def _trace_context_headers(scope: Scope) -> dict[str, str]:
    names = (b"traceparent", b"tracestate", b"baggage")
    return {name.decode(): value.decode("latin-1") for name, value in scope["headers"] if name in names}


def _resource() -> Resource:
    # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES, with our defaults
    resource = Resource.create({"service.version": __version__})
    if str(resource.attributes.get("service.name", "")).startswith("unknown_service"):
        return resource.merge(Resource({"service.name": "claimgate"}))
    return resource


def tracing_to_collector(counters: Counters) -> Tracing:
    """Return spans for the collector of OTEL_EXPORTER_OTLP_ENDPOINT (OTLP over HTTP)."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return Tracing(OTLPSpanExporter(), counters)
