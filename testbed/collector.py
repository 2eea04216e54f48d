"""A collector for OpenTelemetry's protocol over HTTP: keeps what it receives in memory, decoded.

Only what tests need: traces, logs and metrics as protobuf, plain or gzipped, each answered with 200.
"""

import gzip
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedSpan:
    """A span as it arrived. Ids in hexadecimal digits, moments in nanoseconds."""

    name: str
    trace: str
    span: str
    parent: str
    began: int
    ended: int
    attributes: dict[str, Any]
    links: tuple[tuple[str, str], ...]
    failed: bool
    resource: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedLine:
    """A line of a log as it arrived."""

    message: str
    severity: str
    trace: str
    attributes: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedPoint:
    """A series of a metric as it arrived; of a histogram its number of observations."""

    kind: str
    value: float
    attributes: dict[str, Any]
    resource: dict[str, Any]


@dataclass(slots=True)
class Collector:
    """Listens from its creation until `close`."""

    spans: list[ReceivedSpan] = field(default_factory=list)
    lines: list[ReceivedLine] = field(default_factory=list)
    metrics: dict[str, list[ReceivedPoint]] = field(default_factory=dict)  # by name, as it came last
    _server: ThreadingHTTPServer | None = None

    def start(self) -> str:
        """The address to be given as OTEL_EXPORTER_OTLP_ENDPOINT."""
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                known = collector.take(self.path, body)
                self.send_response(200 if known else 404)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing: a test reads what arrived."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def take(self, path: str, body: bytes) -> bool:
        """Keep what was sent to that path; whether the path exists."""
        if path == "/v1/traces":
            self.spans += _spans_of(ExportTraceServiceRequest.FromString(body))
        elif path == "/v1/logs":
            self.lines += _lines_of(ExportLogsServiceRequest.FromString(body))
        elif path == "/v1/metrics":
            self.metrics.update(_metrics_of(ExportMetricsServiceRequest.FromString(body)))
        else:
            return False
        return True

    def trace(self, identity: str) -> list[ReceivedSpan]:
        """All spans of a trace, in the order in which they began."""
        return sorted((span for span in list(self.spans) if span.trace == identity), key=lambda span: span.began)


def _spans_of(request: ExportTraceServiceRequest) -> Iterable[ReceivedSpan]:
    for of_resource in request.resource_spans:
        resource = _plain(of_resource.resource.attributes)
        for span in (span for scope in of_resource.scope_spans for span in scope.spans):
            yield ReceivedSpan(
                name=span.name,
                trace=span.trace_id.hex(),
                span=span.span_id.hex(),
                parent=span.parent_span_id.hex(),
                began=span.start_time_unix_nano,
                ended=span.end_time_unix_nano,
                attributes=_plain(span.attributes),
                links=tuple((link.trace_id.hex(), link.span_id.hex()) for link in span.links),
                failed=span.status.code == span.status.STATUS_CODE_ERROR,
                resource=resource,
            )


def _metrics_of(request: ExportMetricsServiceRequest) -> dict[str, list[ReceivedPoint]]:
    found: dict[str, list[ReceivedPoint]] = {}
    for of_resource in request.resource_metrics:
        resource = _plain(of_resource.resource.attributes)
        for metric in (metric for scope in of_resource.scope_metrics for metric in scope.metrics):
            kind = str(metric.WhichOneof("data"))
            points = found.setdefault(metric.name, [])
            for point in getattr(metric, kind).data_points:
                amount = point.count if kind == "histogram" else point.as_double or point.as_int
                attributes = _plain(point.attributes)
                points.append(ReceivedPoint(kind=kind, value=amount, attributes=attributes, resource=resource))
    return found


def _lines_of(request: ExportLogsServiceRequest) -> Iterable[ReceivedLine]:
    for scope in (scope for of_resource in request.resource_logs for scope in of_resource.scope_logs):
        for line in scope.log_records:
            yield ReceivedLine(
                message=line.body.string_value,
                severity=line.severity_text,
                trace=line.trace_id.hex(),
                attributes=_plain(line.attributes),
            )


def _plain(attributes: Iterable[KeyValue]) -> dict[str, Any]:
    return {each.key: _value(each.value) for each in attributes}


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    if kind == "kvlist_value":
        return _plain(value.kvlist_value.values)
    return None if kind is None else getattr(value, kind)
