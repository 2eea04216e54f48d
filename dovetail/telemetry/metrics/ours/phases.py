"""Each NodeClaim's phase of life and time in it, and how long phases last. The names are ours alone.

Read from the objects themselves, as a workflow that adopts them would: what is stuck shows here whatever the cause,
even if no workflow runs.
"""

import time
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from opentelemetry import metrics

from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.snapshot import Snapshot
from dovetail.telemetry.metrics.duties import UPKEEP, Duties
from dovetail.telemetry.metrics.gauges import Sample
from dovetail.telemetry.metrics.instruments import OWN_PREFIX, Instruments

HELP: Final = {
    "nodeclaims": "NodeClaims by phase and NodePool.",
    "nodeclaims_oldest_in_phase_seconds": "For how long the one that has been longest in that phase has been in it.",
}
PHASES: Final = (
    "launching",
    "registering",
    "initializing",
    "running",
    "marked",
    "draining",
    "detaching",
    "terminating",
)
INSTRUMENTS: Final = Instruments(
    meter=metrics.get_meter("dovetail.phases"),
    counters={},
    histograms={
        "nodeclaim_phase_duration_seconds": (
            "Seconds that a NodeClaim was in a phase, counted at its end; its life as a running node left out.",
            (1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 14400.0, 86400.0),
        )
    },
    prefix=OWN_PREFIX,
)


class Phase(NamedTuple):
    """The phase a claim is in, and since when."""

    name: str
    since: float


# A coming claim: the condition that ends each phase, in order.
_COMING: Final = (
    ("launching", names.LAUNCHED),
    ("registering", names.REGISTERED_CONDITION),
    ("initializing", names.INITIALIZED_CONDITION),
)
# A claim being deleted: the condition that begins each phase, last first.
_GOING: Final = (("terminating", names.INSTANCE_TERMINATING), ("detaching", names.DRAINED))


def phase_of(claim: NodeClaim) -> Phase:
    true = {condition.type: condition.changed for condition in claim.conditions if condition.status == "True"}
    if claim.deleting_since is not None:
        for name, begins in _GOING:
            if begins in true:
                return Phase(name, true[begins])
        return Phase("draining", claim.deleting_since)
    if names.DISRUPTION_REASON in true:
        return Phase("marked", true[names.DISRUPTION_REASON])
    since = claim.created
    for name, ends in _COMING:
        if ends not in true:
            return Phase(name, since)
        since = true[ends]
    return Phase("running", since)


def phase_samples(snapshot: Snapshot) -> Iterator[Sample]:
    """The gauges of all claims. Every pool has every phase, so that a sum without claims is 0 and not absent."""
    oldest: dict[tuple[str, str], float] = {}
    numbers = {(phase, pool): 0 for pool in snapshot.pools for phase in PHASES}
    for claim in snapshot.claims.values():
        phase = phase_of(claim)
        key = phase.name, claim.labels.get(names.NODE_POOL, "")
        numbers[key] = numbers.get(key, 0) + 1
        oldest[key] = min(oldest.get(key, phase.since), phase.since)
    for key, number in sorted(numbers.items()):
        labels = (("nodepool", key[1]), ("phase", key[0]))
        age = max(0.0, snapshot.now - oldest[key]) if key in oldest else 0.0
        yield Sample(name="nodeclaims", labels=labels, value=float(number))
        yield Sample(name="nodeclaims_oldest_in_phase_seconds", labels=labels, value=age)


class PhaseTimes:
    """Counts how long phases last, when the watch shows their ends."""

    def __init__(self, duties: Duties, now: Callable[[], float] = time.time) -> None:
        self._duties, self._now = duties, now

    def heard(self, old: NodeClaim | None, new: NodeClaim | None) -> None:
        """A claim was created, has changed or is gone."""
        if old is None or not self._duties.has(UPKEEP):
            return
        before = phase_of(old)
        if before.name == "running" or (new is not None and phase_of(new).name == before.name):
            return
        labels = {"phase": before.name, "nodepool": old.labels.get(names.NODE_POOL, "")}
        INSTRUMENTS.observe("nodeclaim_phase_duration_seconds", self._now() - before.since, labels)
