"""Sends metrics to a collector: what steps have counted, and the gauges of the cluster where this worker speaks for it.

OTEL_METRIC_EXPORT_INTERVAL says how often. What a page of Prometheus has for each node, pod and condition is not sent:
at 5,000 nodes it would be 74 MB a minute.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterator
from itertools import groupby
from typing import Any, Final

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import (
    Gauge,
    Metric,
    MetricExporter,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    PeriodicExportingMetricReader,
    ResourceMetrics,
    ScopeMetrics,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from dovetail.telemetry.metrics.scrape import Gauges, Scrape

_log = logging.getLogger(__name__)

ASK_SECONDS: Final = 10.0


class MetricSender:
    """Sends what the process has counted, every minute unless the environment says otherwise."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self._exporter = _WithGauges()
        self.reader = PeriodicExportingMetricReader(self._exporter)

    def gauges_from(self, scrape: Scrape) -> None:
        """Ask this one for gauges from now on; called on the event loop that it works on."""
        loop = asyncio.get_running_loop()
        self._exporter.left_out = scrape.left_out
        self._exporter.ask = lambda: asyncio.run_coroutine_threadsafe(scrape.gauges(), loop).result(ASK_SECONDS)

    def close(self) -> None:
        """Send what was counted last. Not on the event loop, which answers for the gauges."""
        self.reader.shutdown()


class _WithGauges(MetricExporter):
    def __init__(self) -> None:
        self._sends = OTLPMetricExporter()
        super().__init__(
            preferred_temporality=self._sends._preferred_temporality,
            preferred_aggregation=self._sends._preferred_aggregation,
        )
        self.ask: Callable[[], list[Gauges]] = list
        self.left_out: Callable[[], Collection[str]] = tuple

    def export(self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: Any) -> MetricExportResult:
        """One message with all of it."""
        without = self.left_out()
        resources = [
            ResourceMetrics(
                resource=one.resource,
                scope_metrics=[*(_without(scope, without) for scope in one.scope_metrics), self._measured()],
                schema_url=one.schema_url,
            )
            for one in metrics_data.resource_metrics
        ]
        return self._sends.export(MetricsData(resource_metrics=resources), timeout_millis, **kwargs)

    def _measured(self) -> ScopeMetrics:
        try:
            found = [metric for gauges in self.ask() for metric in _metrics_of(gauges)]
        except (TimeoutError, RuntimeError) as error:  # the worker is busy, or its loop has ended
            _log.warning("gauges are not sent this time: %s", error or type(error).__name__)
            found = []
        return ScopeMetrics(scope=InstrumentationScope("dovetail.gauges"), metrics=found, schema_url="")

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        return self._sends.force_flush(timeout_millis)

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: Any) -> None:
        self._sends.shutdown(timeout_millis, **kwargs)


def _without(scope: ScopeMetrics, names: Collection[str]) -> ScopeMetrics:
    kept = [metric for metric in scope.metrics if metric.name not in names]
    return ScopeMetrics(scope=scope.scope, metrics=kept, schema_url=scope.schema_url)


def _metrics_of(gauges: Gauges) -> Iterator[Metric]:
    now = time.time_ns()
    ordered = sorted(gauges.samples, key=lambda sample: sample.name)
    for name, family in groupby(ordered, key=lambda sample: sample.name):
        points = [
            NumberDataPoint(
                attributes=dict(sample.labels), start_time_unix_nano=0, time_unix_nano=now, value=sample.value
            )
            for sample in family
        ]
        data = Gauge(data_points=points)
        yield Metric(name=gauges.prefix + name, description=gauges.words[name], unit="", data=data)
