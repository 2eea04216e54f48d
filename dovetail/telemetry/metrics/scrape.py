"""All metrics of a worker as one text: what its steps have counted, and gauges computed from the present cluster.

Counters and durations come from OpenTelemetry's SDK; the gauges are computed at each scrape, from one unchanging
snapshot, and those of the whole cluster by only one worker (duties.py). The text is made in a thread, so that a scrape
does not block the worker.
"""

import asyncio
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricReader
from opentelemetry.sdk.metrics.view import View
from opentelemetry.sdk.resources import Resource

from dovetail.disruption.budgets.allowances import allowances
from dovetail.disruption.settings import DisruptionSettings
from dovetail.model.objects.judging import Judging
from dovetail.model.objects.watched_kinds import FLEET, PLACEMENT
from dovetail.model.snapshot import Snapshot
from dovetail.ports.clock import Clock
from dovetail.ports.cloud import Catalogues
from dovetail.ports.failures import Failure
from dovetail.ports.view import ClusterView
from dovetail.telemetry.metrics.duties import UPKEEP, Duties
from dovetail.telemetry.metrics.exposition import counted, left_out_samples, measured
from dovetail.telemetry.metrics.gauges import HELP, Sample, cluster_and_pools, pods_by_node
from dovetail.telemetry.metrics.instruments import OWN_PREFIX, PREFIX
from dovetail.telemetry.metrics.karpenters.catalogue import GAUGE_LOOPS, QUANTILES
from dovetail.telemetry.metrics.karpenters.cluster_lines import ClusterLines, written
from dovetail.telemetry.metrics.karpenters.condition_metrics import ConditionMetrics
from dovetail.telemetry.metrics.karpenters.pod_times import PodTimes
from dovetail.telemetry.metrics.karpenters.pool_costs import pool_costs
from dovetail.telemetry.metrics.ours import surroundings
from dovetail.telemetry.metrics.ours.faults import HELP as FAULTS
from dovetail.telemetry.metrics.ours.faults import Faults
from dovetail.telemetry.metrics.ours.holds import HELP as HOLD_HELP
from dovetail.telemetry.metrics.ours.holds import hold_samples
from dovetail.telemetry.metrics.ours.last_day import HELP as DAY_HELP
from dovetail.telemetry.metrics.ours.last_day import LastDay
from dovetail.telemetry.metrics.ours.launch_brake import HELP as LAUNCH_HELP
from dovetail.telemetry.metrics.ours.launch_brake import launch_samples
from dovetail.telemetry.metrics.ours.pauses import HELP as PAUSE_HELP
from dovetail.telemetry.metrics.ours.pauses import pause_samples
from dovetail.telemetry.metrics.ours.phases import HELP as PHASE_HELP
from dovetail.telemetry.metrics.ours.phases import phase_samples
from dovetail.telemetry.metrics.ours.rollouts import HELP as ROLLOUT_HELP
from dovetail.telemetry.metrics.ours.rollouts import rollout_samples
from dovetail.telemetry.metrics.ours.surroundings import clock_sample, fit_sample, watch_samples
from dovetail.telemetry.metrics.ours.time_rules import HELP as TIME_HELP
from dovetail.telemetry.metrics.ours.time_rules import time_rule_samples
from dovetail.telemetry.metrics.sources import SOURCES, Source

READS = PLACEMENT

# Of one metric, for as long as the process runs: what NodePools that are gone have counted stays. A pool has about 18
# series of the transitions of its claims' conditions, so that a thousand may come and go; the SDK's default is 2,000.
MOST_SERIES: Final = 20_000

# Upstream's metric of its Lease: here, which worker speaks for the cluster.
LEADER_PREFIX: Final = "leader_election_"
LEADER_NAME: Final = "karpenter-leader-election"
LEADER_HELP: Final = {"master_status": "1 where this worker holds the Caretaker's step and publishes cluster gauges."}


PIECE: Final = 2**18  # bytes; the event loop has heartbeats to send between two pieces


def gathered(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The page in pieces of about that size, for sending. Each is made in the memory of the one before, once that is
    sent: the whole page at once would need 74 MB at every scrape."""
    waiting: list[bytes] = []
    size = 0
    for block in blocks:
        waiting.append(block)
        size += len(block)
        if size >= PIECE:
            yield b"".join(waiting)
            waiting, size = [], 0
    yield b"".join(waiting)


def install_meters(more: Sequence[MetricReader] = (), resource: Resource | None = None) -> InMemoryMetricReader:
    """Let this process's steps count from now on; returns the reader of the counts. `more`: further readers."""
    reader = InMemoryMetricReader()
    metrics.set_meter_provider(meter_provider([reader, *more], resource))
    return reader


def meter_provider(readers: Sequence[MetricReader], resource: Resource | None = None) -> MeterProvider:
    views = [View(instrument_name="*", aggregation_cardinality_limit=MOST_SERIES)]
    return MeterProvider(metric_readers=readers, resource=resource, views=views, shutdown_on_exit=False)


class Gauges(NamedTuple):
    samples: list[Sample]
    words: Mapping[str, str] = HELP
    prefix: str = PREFIX


@dataclass(slots=True)
class _Shared:
    """State kept between scrapes."""

    lines: ClusterLines = field(default_factory=ClusterLines)
    running: asyncio.Task[list[bytes]] | None = None
    unsynced_since: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrape:
    """The sources of one worker's metrics."""

    view: ClusterView
    supported: Callable[[], frozenset[tuple[str, str]]]
    settings: DisruptionSettings
    reader: InMemoryMetricReader
    version: str  # of the product
    times: PodTimes
    clock: Clock
    why_unfit: Callable[[], str]  # why this worker takes no step
    catalogues: Catalogues | None  # None: no costs
    faults: Faults
    last_day: LastDay
    conditions: ConditionMetrics | None
    observed: bool  # gauges of the cluster's state; off with DISABLE_CLUSTER_STATE_OBSERVABILITY (PLM-13)
    duties: Duties
    sources: Sequence[Source]  # of this worker, besides those registered by parts of the product
    shared: _Shared = field(default_factory=_Shared)

    async def text(self) -> str:
        """All metrics, as Prometheus reads them."""
        return b"".join(await self.pieces()).decode()

    async def pieces(self) -> list[bytes]:
        """The same in many small blocks. One scrape runs at a time; requests that come meanwhile get the same
        answer."""
        shared = self.shared
        if shared.running is None or shared.running.done():
            shared.running = asyncio.create_task(self._scraped())
        return await asyncio.shield(shared.running)

    async def _scraped(self) -> list[bytes]:
        costs = await self._costs()
        return await asyncio.to_thread(lambda: [*self._blocks(costs)])

    async def _costs(self) -> tuple[Sample, ...]:
        if self.catalogues is None or not (self.observed and self.duties.has(UPKEEP)):
            return ()
        try:
            return await pool_costs(self.view.snapshot(FLEET), self.catalogues)
        except Failure:
            return ()  # the view cannot be used, as cluster_state_synced shows

    def _blocks(self, costs: tuple[Sample, ...]) -> Iterator[bytes]:
        snapshot = self._snapshot()
        for part in self._parts(costs, snapshot):
            yield written(iter(part))
        if snapshot is not None and self.duties.has(UPKEEP):
            yield from self.shared.lines.blocks(snapshot)
            if self.conditions is not None:
                yield from self.conditions.blocks()

    async def gauges(self) -> list[Gauges]:
        """The gauges for readers other than the page, without those of single nodes, pods and conditions."""
        costs = await self._costs()
        return await asyncio.to_thread(self._few, costs)

    def _few(self, costs: tuple[Sample, ...]) -> list[Gauges]:
        snapshot = self._snapshot()
        found = [*self._gauges(costs, snapshot)]
        if snapshot is not None and self.duties.has(UPKEEP):
            asked = (pod.requests for pods in pods_by_node(snapshot).values() for pod in pods)
            found.append(Gauges([*cluster_and_pools(snapshot, Judging(), asked)]))
        return found

    def left_out(self) -> list[str]:
        """Names that steps have counted but this worker does not publish, because another one does."""
        return [name for name, loop in GAUGE_LOOPS.items() if not self.duties.has(loop)]

    def _parts(self, costs: tuple[Sample, ...], snapshot: Snapshot | None) -> Iterator[Iterable[str]]:
        data = self.reader.get_metrics_data()
        yield counted(data, self.left_out())
        yield measured(left_out_samples(data), surroundings.HELP, OWN_PREFIX)
        yield QUANTILES.lines()
        for found in self._gauges(costs, snapshot):
            yield measured(*found)
        for source in (*SOURCES, *self.sources):
            if self.duties.has(source.duty) and (self.observed or not source.duty):
                yield source.lines()

    def _gauges(self, costs: tuple[Sample, ...], snapshot: Snapshot | None) -> Iterator[Gauges]:
        yield Gauges([self._build(), *costs, *self.times.pass_samples(), *self.times.samples()])
        yield Gauges([self._leader()], LEADER_HELP, LEADER_PREFIX)
        surrounding = [*watch_samples(self.view.stale()), clock_sample(self.clock), fit_sample(self.why_unfit())]
        yield Gauges(surrounding, surroundings.HELP, OWN_PREFIX)
        if self.observed:
            yield from self._of_snapshot(snapshot)

    def _of_snapshot(self, snapshot: Snapshot | None) -> Iterator[Gauges]:
        """Gauges from the objects: those of this worker's decisions, and all if it speaks for the cluster."""
        if snapshot is not None:
            yield Gauges([*self.faults.samples(snapshot, self.duties)], FAULTS, OWN_PREFIX)
        if not self.duties.has(UPKEEP):
            return
        yield Gauges([self._unsynced(snapshot is not None)])
        yield Gauges([*self.last_day.samples()], DAY_HELP, OWN_PREFIX)
        if snapshot is None:
            yield Gauges([Sample(name="cluster_state_synced", value=0.0)])
            return
        # The following does not depend on pods, and a hundred thousand of them would be read.
        fleet = replace(snapshot, pods={})
        yield Gauges([*self._budgets(fleet)])
        yield Gauges([*launch_samples(fleet)], LAUNCH_HELP, OWN_PREFIX)
        yield Gauges([*pause_samples(fleet)], PAUSE_HELP, OWN_PREFIX)
        yield Gauges([*time_rule_samples(fleet)], TIME_HELP, OWN_PREFIX)
        yield Gauges([*rollout_samples(fleet)], ROLLOUT_HELP, OWN_PREFIX)
        yield Gauges([*phase_samples(fleet)], PHASE_HELP, OWN_PREFIX)
        yield Gauges([*hold_samples(fleet)], HOLD_HELP, OWN_PREFIX)

    def _snapshot(self) -> Snapshot | None:
        """None while the view cannot be used, or if the cluster's state is not observed."""
        if not self.observed:
            return None
        try:
            return replace(self.view.snapshot(READS), supported_node_classes=self.supported())
        except Failure:
            return None

    def _build(self) -> Sample:
        build = {"version": self.version, "goversion": "", "goarch": platform.machine(), "commit": ""}
        return Sample(name="build_info", labels=tuple(build.items()), value=1.0)

    def _leader(self) -> Sample:
        return Sample(name="master_status", labels=(("name", LEADER_NAME),), value=float(self.duties.has(UPKEEP)))

    def _unsynced(self, synced: bool) -> Sample:
        """Measured from the first scrape that found it unsynced."""
        shared, now = self.shared, time.monotonic()
        shared.unsynced_since = None if synced else shared.unsynced_since or now
        return Sample(name="cluster_state_unsynced_time_seconds", value=now - (shared.unsynced_since or now))

    def _budgets(self, snapshot: Snapshot) -> Iterator[Sample]:
        """DIS-58: what the budgets allow before leaving nodes are subtracted, and how many are leaving."""
        for (pool, reason), found in sorted(allowances(snapshot, self.settings).items()):
            labels = (("nodepool", pool), ("reason", reason.lower()))
            yield Sample(name="nodepools_allowed_disruptions", labels=labels, value=float(found.allowed))
            yield Sample(name="nodepools_nodes_consuming_budgets", labels=labels, value=float(found.consuming))
