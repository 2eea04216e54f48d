"""Gauges of the objects that are set aside: those that cannot be read, and those that a decision could not judge.

Worked out at each scrape. What a decision could not judge is remembered until the next decision of its kind, and shown
only while the object exists, so that a deleted object leaves no series.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from dovetail.model.objects.judging import Unjudged
from dovetail.model.snapshot import Snapshot
from dovetail.telemetry.metrics.duties import DISRUPTION, PROVISIONING, UPKEEP, Duties
from dovetail.telemetry.metrics.gauges import Labels, Sample

HELP: Final = {
    "objects_set_aside": "Objects that are left out of decisions, by kind and why: unreadable or unjudged.",
    "object_set_aside": "1 for each object that is left out of decisions, at most 200 of them.",
}
MOST_NAMED: Final = 200
# The objects of a snapshot, by the kind under which a fault names them. Pods are listed by UID, the others by name.
_BY_NAME: Final = {
    "Node": "nodes",
    "NodeClaim": "claims",
    "NodePool": "pools",
    "NodeOverlay": "overlays",
    "CapacityBuffer": "buffers",
    "DaemonSet": "daemon_sets",
    "PodDisruptionBudget": "pdbs",
}


class Faults:
    """What the last decision of each kind in this process could not judge."""

    def __init__(self) -> None:
        self._by_decision: dict[str, tuple[Unjudged, ...]] = {}

    def judged(self, decision: str, faults: tuple[Unjudged, ...]) -> None:
        self._by_decision[decision] = faults

    def standing(self, snapshot: Snapshot) -> tuple[Unjudged, ...]:
        """The faults whose objects exist, each once."""
        faults = (fault for faults in self._by_decision.values() for fault in faults)
        known = {(fault.kind, fault.name): fault for fault in faults if _exists(fault, snapshot)}
        return tuple(known[key] for key in sorted(known))

    def samples(self, snapshot: Snapshot, duties: Duties) -> Iterator[Sample]:
        """The gauges of decisions made here and, if this worker speaks for the cluster, of unreadable objects."""
        if not duties.has(PROVISIONING):
            self._by_decision.pop("provisioning", None)
        if not duties.has(DISRUPTION):
            self._by_decision.pop("disruption", None)
        named = [(u.kind, u.name, "unreadable") for u in snapshot.unreadable] if duties.has(UPKEEP) else []
        named += [(u.kind, u.name, "unjudged") for u in self.standing(snapshot)]
        yield from _counts(named)
        for kind, name, why in sorted(named)[:MOST_NAMED]:
            namespace, _, own = name.rpartition("/")
            labels: Labels = (("kind", kind), ("namespace", namespace), ("name", own), ("why", why))
            yield Sample(name="object_set_aside", labels=labels, value=1.0)


def _counts(named: Iterable[tuple[str, str, str]]) -> Iterator[Sample]:
    counts: dict[tuple[str, str], int] = {}
    for kind, _, why in named:
        counts[kind, why] = counts.get((kind, why), 0) + 1
    for (kind, why), count in sorted(counts.items()):
        yield Sample(name="objects_set_aside", labels=(("kind", kind), ("why", why)), value=float(count))


def _exists(fault: Unjudged, snapshot: Snapshot) -> bool:
    if fault.kind == "Pod":
        return fault.uid in snapshot.pods
    field = _BY_NAME.get(fault.kind)
    if field is None:
        return True
    objects: Mapping[str, object] = getattr(snapshot, field)
    return fault.name in objects
