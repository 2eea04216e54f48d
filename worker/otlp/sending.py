"""Sends spans and lines of the log to a collector, in the background.

Loaded only where a variable names a collector: it costs a thread for each kind, and memory. Endpoints, headers,
certificates, compression and batches are read by OpenTelemetry itself from its standard variables. A collector that
does not answer costs spans, never a step: what cannot be sent is dropped and counted in the log.
"""

import logging
import threading
from collections import OrderedDict
from typing import Any, Final

from opentelemetry import trace
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, Status, StatusCode, TraceFlags

from dovetail.telemetry.log.line import fields_of
from dovetail.telemetry.traces.ids import SpanId
from dovetail.telemetry.traces.spans import Span

REMEMBERED: Final = 5000  # spans that were sent
_SEVERITY: Final = {
    "DEBUG": SeverityNumber.DEBUG,
    "INFO": SeverityNumber.INFO,
    "WARN": SeverityNumber.WARN,
    "ERROR": SeverityNumber.ERROR,
}


class _GivenIds(RandomIdGenerator):
    """The ids of the span that is being made: they follow from the record (dovetail/telemetry/traces/ids.py)."""

    def __init__(self) -> None:
        self.next = SpanId(trace="0" * 32, span="0" * 16)

    def generate_span_id(self) -> int:
        return int(self.next.span, 16)

    def generate_trace_id(self) -> int:
        return int(self.next.trace, 16)


def resource_of(cluster: str, version: str) -> Resource:
    """Who sends: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win over it."""
    known = {"service.name": "dovetail", "service.version": version, "k8s.cluster.name": cluster}
    given = Resource.create()
    unnamed = str(given.attributes.get("service.name", "")).startswith("unknown_service")
    own = Resource(known if unnamed else {key: text for key, text in known.items() if key != "service.name"})
    return given.merge(own) if unnamed else own.merge(given)


class SpanSender:
    def __init__(self, resource: Resource) -> None:
        self._ids, self._lock = _GivenIds(), threading.Lock()
        self._sent: OrderedDict[SpanId, None] = OrderedDict()
        self._provider = TracerProvider(
            resource=resource, sampler=ALWAYS_ON, id_generator=self._ids, shutdown_on_exit=False
        )
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("dovetail")

    def record(self, span: Span) -> None:
        """Put the span among those that are sent next. The event loop and the threads of workflows call it.

        A workflow may end twice: where something has happened to it meanwhile, the server has it take its last task
        once more. Its span is sent once."""
        if not span.id.kept:
            return
        with self._lock:
            if span.id in self._sent:
                return
            self._sent[span.id] = None
            if len(self._sent) > REMEMBERED:
                self._sent.popitem(last=False)
            self._ids.next = span.id
            made = self._tracer.start_span(
                span.name,
                context=_within(span.parent),
                attributes={key: value for key, value in span.attributes.items() if value != ""},
                links=[Link(_context(link)) for link in span.links],
                start_time=_nanoseconds(span.began),
            )
        if span.error:
            made.set_status(Status(StatusCode.ERROR, span.error))
        made.end(end_time=_nanoseconds(max(span.ended, span.began)))

    def close(self) -> None:
        """Send what is left; the collector has OTEL_BSP_EXPORT_TIMEOUT to take it."""
        self._provider.shutdown()


def _nanoseconds(seconds: float) -> int:
    """A moment in nanoseconds, exact to the microsecond: a float of today's date holds no more."""
    return round(seconds * 10**6) * 1000


def _within(parent: SpanId | None) -> Context:
    """The surroundings of a span below that one."""
    return Context() if parent is None else trace.set_span_in_context(NonRecordingSpan(_context(parent)), Context())


def _context(span: SpanId) -> SpanContext:
    return SpanContext(int(span.trace, 16), int(span.span, 16), is_remote=True, trace_flags=TraceFlags(1))


class LineSender(logging.Handler):
    """Sends every line of the log, with its fields as attributes."""

    def __init__(self, resource: Resource, commit: str) -> None:
        super().__init__()
        self._commit = commit
        self._provider = LoggerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
        self._logger = self._provider.get_logger("dovetail")

    def emit(self, record: logging.LogRecord) -> None:
        """Put the line among those that are sent next; what the sending itself logs is not sent."""
        if record.name.startswith("opentelemetry"):
            return
        said = fields_of(record, self._commit)
        level, message = said.pop("level"), said.pop("message")
        step = SpanId(trace=said.pop("trace_id", ""), span=said.pop("span_id", ""))
        for known in ("time", "namespace", "name"):
            said.pop(known, None)
        self._logger.emit(
            LogRecord(
                timestamp=_nanoseconds(record.created),
                context=_within(step if step.trace else None),
                severity_text=level,
                severity_number=_SEVERITY.get(level, SeverityNumber.UNSPECIFIED),
                body=message,
                attributes=_attributes(said),
            )
        )

    def close(self) -> None:
        self._provider.shutdown()
        super().close()


def _attributes(said: dict[str, Any]) -> dict[str, Any]:
    """Attributes whose values are plain: a collector's search cannot use nested references."""
    return {
        key: value["name"] if isinstance(value, dict) and value.keys() == {"name"} else value
        for key, value in said.items()
    }
