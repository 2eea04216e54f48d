"""What a worker sends to a collector, as its settings say; nothing is loaded for it where they name none."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from temporalio.worker import Interceptor

from dovetail.activities.shared.every_step.step_traces import StepTraces
from dovetail.settings.settings import Settings, SettingsError
from dovetail.telemetry.log.start import product_version
from dovetail.telemetry.metrics.scrape import install_meters
from dovetail.workflows.trace_context import TraceContext

if TYPE_CHECKING:
    from dovetail.worker.otlp.metrics import MetricSender
    from dovetail.worker.otlp.sending import LineSender, SpanSender


@dataclass(frozen=True, slots=True)
class Observed:
    """The senders of this process; without them nothing is sent."""

    share: float = 1.0
    spans: "SpanSender | None" = None
    lines: "LineSender | None" = None
    metrics: "MetricSender | None" = None

    def counting(self) -> InMemoryMetricReader:
        """The steps of this process count from now on."""
        if self.metrics is None:
            return install_meters()
        return install_meters([self.metrics.reader], self.metrics.resource)

    def interceptors(
        self, now: Callable[[], float], since: Callable[[str], float | None]
    ) -> tuple[list[Interceptor], list[Interceptor]]:
        """The interceptors of steps, and those of workflows. `since`: since when a pod waits, by its UID."""
        if self.spans is None:
            return [], []
        record = self.spans.record
        return [StepTraces(self.share, record, now, since)], [TraceContext(self.share, record)]

    def close(self) -> None:
        """Send what is left, as far as the collector accepts it."""
        if self.lines is not None:
            logging.getLogger().removeHandler(self.lines)
            self.lines.close()
        if self.spans is not None:
            self.spans.close()
        if self.metrics is not None:
            self.metrics.close()


def observed_by(settings: Settings) -> Observed:
    if not (settings.sends_traces or settings.sends_logs or settings.sends_metrics):
        return Observed()
    try:
        from dovetail.worker.otlp.metrics import MetricSender
        from dovetail.worker.otlp.sending import LineSender, SpanSender, resource_of
    except ImportError as error:
        message = f"OTEL_EXPORTER_OTLP_ENDPOINT: sending needs packages that are not here ({error.name}): "
        raise SettingsError(f"{message}install dovetail[otlp]") from None
    resource = resource_of(settings.cluster, product_version())
    lines = LineSender(resource, product_version()) if settings.sends_logs else None
    if lines is not None:
        logging.getLogger().addHandler(lines)
    spans = SpanSender(resource) if settings.sends_traces else None
    metrics = MetricSender(resource) if settings.sends_metrics else None
    return Observed(share=settings.traces_kept, spans=spans, lines=lines, metrics=metrics)
