"""Renders counters and gauges in the Prometheus format. Import it late, because prometheus_client slows down a start.

Names and labels are the API server's for webhooks and admission policies (kube-apiserver v1.36,
admission/metrics/metrics.go and plugin/policy/*/metrics), with the prefix `claimgate` for `apiserver`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from itertools import accumulate
from time import monotonic
from typing import Any, Final

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
    metrics_core,
)
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.utils import floatToGoString

from webhook.server.counters import METRIC, Counters, Distribution, Labels, Metric
from webhook.server.server_parts import Gauges

_REUSE_FACTOR: Final = 9
"""The text is reused for its rendering time, multiplied by this. So scrapes take at most a tenth of a processor."""


class Exposition:
    """Renders the counters and gauges of one server with a separate registry."""

    def __init__(
        self, counters: Counters, gauges: Gauges, *, version: str, clock: Callable[[], float] = monotonic
    ) -> None:
        self._counters = counters
        self._gauges = gauges
        self._version = version
        self._clock = clock
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._registry)
        self._counts: dict[str, Any] = {each.name: {} for each in fields(Counters)}
        self._values: dict[str, float] = dict.fromkeys(gauges, 0)
        self._made = b""
        self._made_until = 0.0
        self._is_rendering = False

    async def text(self) -> tuple[bytes, str]:
        """Return the metrics text and its media type; the text may be as old as one rendering takes."""
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
        started_at = self._clock()
        self._counts = {name: getattr(self._counters, name).copy() for name in self._counts}
        self._values = {name: read() for name, (_, read) in self._gauges.items()}
        self._made = await asyncio.to_thread(generate_latest, self._registry)
        now = self._clock()
        self._made_until = now + _REUSE_FACTOR * (now - started_at)

    def collect(self) -> Iterable[metrics_core.Metric]:
        """Yield all metrics of the last copy, for prometheus_client."""
        yield metrics_core.InfoMetricFamily(
            "claimgate_build", "The version of claimgate.", value={"version": self._version}
        )
        for each in fields(Counters):
            metric, counts = each.metadata[METRIC], self._counts[each.name]
            if metric.kind == "histogram":
                yield from _histogram_families(metric, counts)
            else:
                yield _family(metric, counts)
        for gauge, value in self._values.items():
            family = CounterMetricFamily if gauge.endswith("_total") else GaugeMetricFamily
            yield family(f"claimgate_{gauge}", self._gauges[gauge][0], value=value)


def _family(metric: Metric, counts: Mapping[Labels, int]) -> metrics_core.Metric:
    kind = GaugeMetricFamily if metric.kind == "gauge" else CounterMetricFamily
    family = kind(f"claimgate_{metric.name}", metric.documentation, labels=metric.labels)
    for labels, count in counts.items():
        family.add_metric(labels, count)
    return family


def _histogram_families(metric: Metric, distributions: Mapping[Labels, Distribution]) -> Iterable[metrics_core.Metric]:
    if metric.counted:
        counts = {labels: sum(distribution.counts) for labels, distribution in distributions.items()}
        yield _family(metric._replace(documentation=metric.counted), counts)
    family = HistogramMetricFamily(
        f"claimgate_{metric.name}_duration_seconds", metric.documentation, labels=metric.labels
    )
    for labels, distribution in distributions.items():
        bounds = [*map(floatToGoString, distribution.buckets), "+Inf"]
        buckets = list(zip(bounds, accumulate(distribution.counts), strict=True))
        family.add_metric(labels, buckets, sum_value=distribution.total)
    yield family
