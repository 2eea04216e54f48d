"""Metrics of nodes that something keeps from leaving, before and during their drain. The names are ours alone."""

from collections.abc import Iterator
from typing import Final

from opentelemetry import metrics

from dovetail.disruption.upkeep.waiting_drift import overdue_drift
from dovetail.model import names
from dovetail.model.own.claim_memory import memory_of
from dovetail.model.own.drain_rules import Level
from dovetail.model.snapshot import Snapshot
from dovetail.telemetry.metrics.gauges import Sample
from dovetail.telemetry.metrics.instruments import OWN_PREFIX, Instruments
from dovetail.termination.hold_clocks import clock_of
from dovetail.termination.ladder import began_at

COUNTERS: Final = {"drain_escalations_total": "Drains that something held for as long as a policy allows, by level."}
HELP: Final = {
    "drain_held_seconds": "For how long a drain has been held, of each blocker the longest.",
    "drains_asking": "Drains of a NodePool that wait for a person's decision.",
    "drift_overdue_nodes": "Nodes of a NodePool that have drifted and have not begun to leave for seven days.",
}

INSTRUMENTS: Final = Instruments(
    meter=metrics.get_meter("dovetail.holds"), counters=COUNTERS, histograms={}, prefix=OWN_PREFIX
)


def escalated(level: Level) -> None:
    INSTRUMENTS.count("drain_escalations_total", {"level": level})


def hold_samples(snapshot: Snapshot) -> Iterator[Sample]:
    """The gauges, by the clocks on the NodeClaims and their condition Drifted."""
    longest, asking = dict[str, float](), dict[str, int]()
    for claim in snapshot.claims.values():
        clock = clock_of(claim, began_at(claim))
        if clock is None:
            continue
        pool = claim.labels.get(names.NODE_POOL, "")
        longest[clock.blocker] = max(snapshot.now - clock.since, longest.get(clock.blocker, 0.0))
        asking[pool] = asking.get(pool, 0) + (
            clock.asks and memory_of(claim.annotations).held.waits_until <= snapshot.now
        )
    for blocker, seconds in sorted(longest.items()):
        yield Sample(name="drain_held_seconds", labels=(("blocker", blocker),), value=seconds)
    for pool, count in sorted(asking.items()):
        yield Sample(name="drains_asking", labels=(("nodepool", pool),), value=float(count))
    for pool, claims in sorted(overdue_drift(snapshot).items()):
        yield Sample(name="drift_overdue_nodes", labels=(("nodepool", pool),), value=float(len(claims)))
