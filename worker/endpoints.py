"""What a worker answers over HTTP: its metrics, and whether it lives and is ready (O-3).

Started by the entry point where a port is named. Karpenter's counters come from the steps through OpenTelemetry's SDK,
its gauges from the snapshot of the moment. The trap avoided: a scrape that stops the worker; the text is made in a
thread, from a snapshot that nobody changes.
"""

import asyncio
import platform
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from dovetail.disruption.budgets.allowances import allowances
from dovetail.disruption.settings import DisruptionSettings
from dovetail.metrics.condition_metrics import PREFIX, ConditionMetrics
from dovetail.metrics.exposition import CONTENT_TYPE, counted, measured
from dovetail.metrics.gauges import Sample, gauges
from dovetail.metrics.pod_times import PodTimes
from dovetail.metrics.pool_costs import costs
from dovetail.model.snapshot import Snapshot
from dovetail.ports.cloud import Catalogues
from dovetail.ports.failures import Failure
from dovetail.ports.view import ClusterView
from dovetail.worker.deciding import disruption_settings
from dovetail.worker.settings import Settings
from dovetail.worker.telemetry import product_version
from dovetail.worker.wiring import World

Answer = tuple[int, str, str]  # status, content type, body
Route = Callable[[], Awaitable[Answer]]

_PLAIN = "text/plain; charset=utf-8"
_WORDS = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}
REQUEST_SECONDS = 10.0  # for a client to say what it wants


def install_meters() -> InMemoryMetricReader:
    """From now on the steps of this process count; the reader tells what."""
    reader = InMemoryMetricReader()
    metrics.set_meter_provider(MeterProvider(metric_readers=[reader]))
    return reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrape:
    """What the metrics endpoint tells."""

    view: ClusterView
    supported: Callable[[], frozenset[tuple[str, str]]]
    settings: DisruptionSettings
    reader: InMemoryMetricReader
    times: PodTimes = field(default_factory=PodTimes)
    catalogues: Catalogues | None = None  # None: prices are not told
    conditions: ConditionMetrics | None = None
    observed: bool = True  # gauges of the cluster's state; off with DISABLE_CLUSTER_STATE_OBSERVABILITY (P-13)

    async def metrics(self) -> Answer:
        """All metrics."""
        costs = await self._costs()
        return 200, CONTENT_TYPE, await asyncio.to_thread(self._text, costs)

    async def _costs(self) -> tuple[Sample, ...]:
        try:
            return await costs(self.view.snapshot(), self.catalogues) if self.catalogues and self.observed else ()
        except Failure:
            return ()  # the view cannot be used; cluster_state_synced says so

    def _text(self, costs: tuple[Sample, ...]) -> str:
        samples = [*self._samples(), *costs, *self.times.samples()]
        lines = [*counted(self.reader.get_metrics_data()), *measured(samples)]
        if self.conditions is not None:
            lines += measured(self.conditions.samples(), self.conditions.help, PREFIX)
        return "\n".join(lines) + "\n"

    def _samples(self) -> Iterator[Sample]:
        build = {"version": product_version(), "goversion": "", "goarch": platform.machine(), "commit": ""}
        yield Sample(name="build_info", labels=tuple(build.items()), value=1.0)
        if not self.observed:
            return
        try:
            snapshot = replace(self.view.snapshot(), supported_node_classes=self.supported())
        except Failure:
            yield Sample(name="cluster_state_synced", value=0.0)
            return
        yield from gauges(snapshot)
        yield from self._budgets(snapshot)

    def _budgets(self, snapshot: Snapshot) -> Iterator[Sample]:
        """D-58: what the budgets allow before those that leave are taken off (V20), and how many those are."""
        for (pool, reason), found in sorted(allowances(snapshot, self.settings).items()):
            labels = (("nodepool", pool), ("reason", reason))
            yield Sample(name="nodepools_allowed_disruptions", labels=labels, value=float(found.allowed))
            yield Sample(name="nodepools_nodes_consuming_budgets", labels=labels, value=float(found.consuming))

    async def alive(self) -> Answer:
        """The process answers."""
        return 200, _PLAIN, "ok\n"

    async def ready(self) -> Answer:
        """The view of the cluster can be used."""
        try:
            self.view.snapshot()
        except Failure as failure:
            return 503, _PLAIN, f"{failure}\n"
        return 200, _PLAIN, "ok\n"


@dataclass(slots=True, kw_only=True)
class Endpoint:
    """A small HTTP server: GET, one answer a connection."""

    host: str
    port: int
    routes: Mapping[str, Route]
    server: asyncio.Server | None = field(default=None, init=False)

    async def start(self) -> None:
        """Listen; the error names the port where that is taken."""
        self.server = await asyncio.start_server(self._serve, self.host, self.port)

    async def stop(self) -> None:
        """Stop listening."""
        if self.server is not None:
            self.server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            status, kind, body = await self._answer(head)
            data = body.encode()
            words = f"HTTP/1.1 {status} {_WORDS[status]}\r\nContent-Type: {kind}\r\nContent-Length: {len(data)}\r\n"
            writer.write(f"{words}Connection: close\r\n\r\n".encode() + data)
            await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, TimeoutError):
            return  # a client that goes away is nobody's trouble
        finally:
            writer.close()

    async def _answer(self, head: bytes) -> Answer:
        method, _, rest = head.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0].decode("ascii", "replace")
        if method != b"GET":
            return 405, _PLAIN, "only GET\n"
        route = self.routes.get(path)
        return (404, _PLAIN, f"only {', '.join(sorted(self.routes))}\n") if route is None else await route()


def endpoints_of(settings: Settings, world: World, times: PodTimes) -> list[Endpoint]:
    """Metrics and probes, each where a port is named; both may be one."""
    world.view.cache.listen("Pod", times.heard)
    reader = install_meters()
    scrape = Scrape(
        view=world.view,
        supported=world.catalogues.supported_classes,
        settings=disruption_settings(settings),
        reader=reader,
        times=times,
        catalogues=world.catalogues,
        conditions=None if settings.unobserved else _conditions(world),
        observed=not settings.unobserved,
    )
    routes: dict[int, dict[str, Route]] = {settings.metrics_port: {"/metrics": scrape.metrics}}
    routes.setdefault(settings.health_port, {}).update({"/healthz": scrape.alive, "/readyz": scrape.ready})
    return [Endpoint(host=settings.listen_address, port=port, routes=paths) for port, paths in routes.items() if port]


def _conditions(world: World) -> ConditionMetrics:
    """The metrics of conditions, counting from now on (P-13)."""
    found = ConditionMetrics(world.conditions, sorted(world.catalogues.supported_classes()), time.time)
    found.follow()
    return found
