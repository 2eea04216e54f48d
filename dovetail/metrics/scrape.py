"""All metrics of a worker as one text: what its steps have counted, and gauges worked out from the cluster as it is.

Counters and durations come through OpenTelemetry's SDK; the gauges are computed at each scrape, from one snapshot that
nothing changes. The text is made in a thread, so that a scrape does not stop the worker.
"""

import asyncio
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from dovetail.disruption.budgets.allowances import allowances
from dovetail.disruption.settings import DisruptionSettings
from dovetail.metrics import surroundings
from dovetail.metrics.background import OWN_PREFIX
from dovetail.metrics.condition_metrics import PREFIX, ConditionMetrics
from dovetail.metrics.exposition import counted, measured
from dovetail.metrics.faults import HELP as FAULTS
from dovetail.metrics.faults import PREFIX as OWN
from dovetail.metrics.faults import Faults
from dovetail.metrics.gauges import Sample, gauges
from dovetail.metrics.launch_brake import HELP as LAUNCH_HELP
from dovetail.metrics.launch_brake import launch_samples
from dovetail.metrics.pod_times import PodTimes
from dovetail.metrics.pool_costs import pool_costs
from dovetail.metrics.surroundings import clock_sample, fit_sample, watch_samples
from dovetail.model.snapshot import Snapshot
from dovetail.model.watched_kinds import FLEET, PLACEMENT
from dovetail.ports.clock import Clock, SameClock
from dovetail.ports.cloud import Catalogues
from dovetail.ports.failures import Failure
from dovetail.ports.view import ClusterView

READS = PLACEMENT


def install_meters() -> InMemoryMetricReader:
    """From now on the steps of this process count; the reader has what they counted."""
    reader = InMemoryMetricReader()
    metrics.set_meter_provider(MeterProvider(metric_readers=[reader]))
    return reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrape:
    """Where the metrics of one worker come from."""

    view: ClusterView
    supported: Callable[[], frozenset[tuple[str, str]]]
    settings: DisruptionSettings
    reader: InMemoryMetricReader
    version: str = ""  # of the product
    times: PodTimes = field(default_factory=PodTimes)
    clock: Clock = field(default_factory=SameClock)
    why_unfit: Callable[[], str] = str  # why this worker takes no step
    catalogues: Catalogues | None = None  # None: no costs
    faults: Faults = field(default_factory=Faults)
    conditions: ConditionMetrics | None = None
    observed: bool = True  # gauges of the cluster's state; off with DISABLE_CLUSTER_STATE_OBSERVABILITY (PLM-13)

    async def text(self) -> str:
        """All metrics, as Prometheus reads them."""
        costs = await self._costs()
        return await asyncio.to_thread(self._text, costs)

    async def _costs(self) -> tuple[Sample, ...]:
        if self.catalogues is None or not self.observed:
            return ()
        try:
            return await pool_costs(self.view.snapshot(FLEET), self.catalogues)
        except Failure:
            return ()  # the view cannot be used; cluster_state_synced says so

    def _text(self, costs: tuple[Sample, ...]) -> str:
        snapshot = self._snapshot()
        samples = [*self._samples(snapshot), *costs, *self.times.samples()]
        lines = [*counted(self.reader.get_metrics_data()), *measured(samples)]
        lines += measured(
            [*watch_samples(self.view.stale()), clock_sample(self.clock), fit_sample(self.why_unfit())],
            surroundings.HELP,
            OWN_PREFIX,
        )
        if snapshot is not None:
            lines += measured(self.faults.samples(snapshot), FAULTS, OWN)
            lines += measured(launch_samples(snapshot), LAUNCH_HELP, OWN_PREFIX)
        if self.conditions is not None:
            lines += measured(self.conditions.samples(), self.conditions.help, PREFIX)
        return "\n".join(lines) + "\n"

    def _snapshot(self) -> Snapshot | None:
        """None while the view cannot be used, or where the cluster's state is not observed."""
        if not self.observed:
            return None
        try:
            return replace(self.view.snapshot(READS), supported_node_classes=self.supported())
        except Failure:
            return None

    def _samples(self, snapshot: Snapshot | None) -> Iterator[Sample]:
        build = {"version": self.version, "goversion": "", "goarch": platform.machine(), "commit": ""}
        yield Sample(name="build_info", labels=tuple(build.items()), value=1.0)
        if not self.observed:
            return
        if snapshot is None:
            yield Sample(name="cluster_state_synced", value=0.0)
            return
        yield from gauges(snapshot)
        yield from self._budgets(snapshot)

    def _budgets(self, snapshot: Snapshot) -> Iterator[Sample]:
        """DIS-58: what the budgets allow before those that leave are taken off, and how many those are."""
        for (pool, reason), found in sorted(allowances(snapshot, self.settings).items()):
            labels = (("nodepool", pool), ("reason", reason))
            yield Sample(name="nodepools_allowed_disruptions", labels=labels, value=float(found.allowed))
            yield Sample(name="nodepools_nodes_consuming_budgets", labels=labels, value=float(found.consuming))
