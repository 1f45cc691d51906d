"""Renders counters and the gauges of the view in the Prometheus format; imports prometheus_client when first used.

Names and labels are the API server's for webhooks and admission policies (kube-apiserver v1.36,
admission/metrics/metrics.go and plugin/policy/*/metrics), with the prefix `claimgate` for `apiserver`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from itertools import accumulate
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from webhook.cluster.watch import WatchedCluster
from webhook.server.counters import Counters, Distribution, Labels

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

_REUSE_FACTOR: Final = 9
"""The text is reused for its rendering time, multiplied by this. So scrapes take at most a tenth of a processor."""
_REQUEST: Final = ("type", "operation", "code", "rejected")
_DURATION: Final = ("type", "operation", "rejected")
_MUTATING: Final = ("policy", "policy_binding", "error_type")
_VALIDATING: Final = (*_MUTATING, "enforcement_action")

Gauges = Mapping[str, tuple[str, Callable[[], float]]]
"""Each gauge's documentation and reader, by name. A name that ends in `_total` becomes a counter."""


class Exposition:
    """Renders the counters and gauges of one server with a separate registry."""

    def __init__(
        self, counters: Counters, gauges: Gauges, *, version: str, clock: Callable[[], float] = monotonic
    ) -> None:
        from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

        self._counters = counters
        self._gauges = gauges
        self._version = version
        self._clock = clock
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._registry)
        self._counts: dict[str, Any] = {}
        self._values: dict[str, float] = dict.fromkeys(gauges, 0)
        self._made = b""
        self._made_until = 0.0
        self._is_rendering = False

    async def text(self) -> tuple[bytes, str]:
        """Return the metrics text and its media type; the text may be as old as one rendering takes."""
        from prometheus_client import CONTENT_TYPE_LATEST

        is_old = self._clock() >= self._made_until
        if is_old and not (self._is_rendering and self._made):
            self._is_rendering = True
            try:
                await self._render()
            finally:
                self._is_rendering = False
        return self._made, CONTENT_TYPE_LATEST

    async def _render(self) -> None:
        # a thread renders copies, because the event loop changes the counters
        from prometheus_client import generate_latest

        started_at = self._clock()
        self._counts = {each.name: getattr(self._counters, each.name).copy() for each in fields(Counters)}
        self._values = {name: read() for name, (_, read) in self._gauges.items()}
        self._made = await asyncio.to_thread(generate_latest, self._registry)
        now = self._clock()
        self._made_until = now + _REUSE_FACTOR * (now - started_at)

    def collect(self) -> Iterable[Metric]:
        """Yield all metrics of the last copy, for prometheus_client."""
        counters = Counters(**self._counts)
        from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily

        yield InfoMetricFamily("claimgate_build", "What runs here.", value={"version": self._version})
        yield _counter_metric("admission_webhook_request", "Calls answered, by HTTP code.", _REQUEST, counters.requests)
        name = "admission_webhook_admission_duration_seconds"
        yield _histogram(name, "Seconds from the whole body to the whole answer.", _DURATION, counters.durations)
        yield from _policy_check_metrics("validating", _VALIDATING, counters.validating)
        yield from _policy_check_metrics("mutating", _MUTATING, counters.mutating)
        name = "broken_rules"
        yield _counter_metric(
            name, "Reviews in which a rule was broken.", ("rule", "phase", "enforcement_action"), counters.rules
        )
        yield _counter_metric("reloads", "Reloads of changed files, by outcome.", ("what", "outcome"), counters.reloads)
        yield _counter_metric("events", "Events about warnings, by outcome.", ("outcome",), counters.events)
        yield _counter_metric("spans", "Spans of reviews, by outcome.", ("outcome",), counters.spans)
        yield _counter_metric("reviews_by_lane", "Reviews, by where they were evaluated.", ("lane",), counters.lanes)
        yield _counter_metric(
            "access_reviews", "Questions of policies to the API server.", ("outcome",), counters.questions
        )
        yield _counter_metric("workers_ended", "Worker processes, by how they ended.", ("outcome",), counters.workers)
        name = "policy_faults"
        yield _counter_metric(
            name, "Faults of our own in policies.", ("policy", "checks", "type"), counters.policy_faults
        )
        yield _counter_metric("uncaught_faults", "Faults of our own, by type.", ("type",), counters.uncaught)
        yield _counter_metric("param_mistakes", "Mistakes found in live params.", (), counters.param_mistakes)
        yield _counter_metric("background_failures", "Failures of background tasks.", ("task",), counters.background)
        yield _counter_metric(
            "connections_aborted", "Connections ended early.", ("reason",), counters.connections_aborted
        )
        yield _counter_metric(
            "tls_handshakes_failed", "TLS handshakes that failed.", ("reason",), counters.handshakes_failed
        )
        yield _gauge_metric("connections", "Open connections.", ("port",), counters.connections)
        reloaded = "1 if the last reload succeeded, 0 if it failed."
        yield _gauge_metric("last_reload_successful", reloaded, ("what",), counters.last_reload)
        documentation = "Days until exceptions and exemptions end; less than 0 after their last day."
        limited = ("what", "owner", "expires")
        yield _gauge_metric("exception_days_left", documentation, limited, counters.exception_days)
        for gauge, value in self._values.items():
            family = CounterMetricFamily if gauge.endswith("_total") else GaugeMetricFamily
            yield family(f"claimgate_{gauge}", self._gauges[gauge][0], value=value)


def _policy_check_metrics(kind: str, labels: Labels, checks: Mapping[Labels, Distribution]) -> Iterable[Metric]:
    prefix = f"{kind}_admission_policy_check"
    counts = {key: sum(distribution.counts) for key, distribution in checks.items()}
    yield _counter_metric(prefix, f"Checks by {kind} admission policies.", labels, counts)
    yield _histogram(f"{prefix}_duration_seconds", f"Seconds of one check of a {kind} policy.", labels, checks)


def _counter_metric(name: str, documentation: str, labels: Labels, counts: Mapping[Labels, int]) -> Metric:
    from prometheus_client.metrics_core import CounterMetricFamily

    family = CounterMetricFamily(f"claimgate_{name}", documentation, labels=labels)
    for key, count in counts.items():
        family.add_metric(key, count)
    return family


def _gauge_metric(name: str, documentation: str, labels: Labels, values: Mapping[Labels, int]) -> Metric:
    from prometheus_client.metrics_core import GaugeMetricFamily

    family = GaugeMetricFamily(f"claimgate_{name}", documentation, labels=labels)
    for key, value in values.items():
        family.add_metric(key, value)
    return family


def _histogram(name: str, documentation: str, labels: Labels, distributions: Mapping[Labels, Distribution]) -> Metric:
    from prometheus_client.metrics_core import HistogramMetricFamily
    from prometheus_client.utils import floatToGoString

    family = HistogramMetricFamily(f"claimgate_{name}", documentation, labels=labels)
    for key, distribution in distributions.items():
        bounds = [*map(floatToGoString, distribution.buckets), "+Inf"]
        buckets = list(zip(bounds, accumulate(distribution.counts), strict=True))
        family.add_metric(key, buckets, sum_value=distribution.total)
    return family


def gauges_of_view(watched: WatchedCluster | None) -> Gauges:
    """Return the figures by name; 0 without a live cluster."""
    cluster = watched.cluster if watched else None
    return {
        "cluster_view_age_seconds": (
            "Seconds since the API server was heard, for the watch that has waited longest; up to 65 is healthy.",
            lambda: cluster.age_s if cluster else 0.0,
        ),
        "watch_failures": (
            "Failed lists and watches of the cluster since the start.",
            lambda: cluster.failure_count if cluster else 0,
        ),
        "cluster_view_bytes": (
            "Bytes of objects that the view of the cluster holds; --view-memory bounds them.",
            lambda: cluster.memory.bytes if cluster else 0,
        ),
        "cluster_view_dropped_total": (
            "How often the objects of a kind in a namespace were dropped because the view was full.",
            lambda: cluster.memory.dropped if cluster else 0,
        ),
        "cluster_view_unreadable_objects": (
            "Objects that the view of the cluster does not hold because they cannot be read or are too large.",
            lambda: cluster.unreadable_count if cluster else 0,
        ),
    }
