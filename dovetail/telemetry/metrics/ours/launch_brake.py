"""Metrics of launches without success. These names are ours alone: Karpenter has no such metrics."""

from collections.abc import Iterator
from typing import Final

from opentelemetry import metrics

from dovetail.model.snapshot import Snapshot
from dovetail.rules.brake.unused_launches import remembered_launches, stop_of
from dovetail.telemetry.metrics.gauges import Sample
from dovetail.telemetry.metrics.instruments import OWN_PREFIX, Instruments

COUNTERS: Final = {
    "launch_stops_total": "How often launching was stopped for a NodePool.",
    "consolidated_nodes_returned_total": "Nodes that consolidation took and that were launched again within a day.",
}
GAUGES: Final = {
    "pods_without_further_claims": "Pods of the last round that get no further node, as those made for them failed.",
}
HELP: Final = {
    "launches_stopped": "1 while nothing is launched for a NodePool but a node now and then that is tried.",
    "unused_launches": "Nodes of a NodePool that have ended within the hour without the pods that they were for.",
}

INSTRUMENTS: Final = Instruments(
    meter=metrics.get_meter("dovetail.launch_brake"), counters=COUNTERS, histograms={}, gauges=GAUGES, prefix=OWN_PREFIX
)


def pool_stopped(pool: str) -> None:
    INSTRUMENTS.count("launch_stops_total", {"nodepool": pool})


def nodes_returned(pool: str, nodes: int) -> None:
    """Count nodes that consolidation took and that were launched again."""
    for _ in range(nodes):
        INSTRUMENTS.count("consolidated_nodes_returned_total", {"nodepool": pool})


def without_further_claims(pods: int) -> None:
    """Set how many pods of the last round get no further claim."""
    INSTRUMENTS.gauge("pods_without_further_claims").set(pods)


def launch_samples(snapshot: Snapshot) -> Iterator[Sample]:
    for name, pool in sorted(snapshot.pools.items()):
        labels = (("nodepool", name),)
        yield Sample(name="launches_stopped", labels=labels, value=float(stop_of(pool) is not None))
        yield Sample(name="unused_launches", labels=labels, value=float(len(remembered_launches(pool, snapshot.now))))
