"""How long nodes take to start and to leave, as an outlook assumes it.

The record of a NodePool's own moves comes first, then that of the parts of a move, then the time that existing nodes
took to come up; if none is known, all NodePools together are used, and in the end the constants.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Final, Literal

from dovetail.model import names
from dovetail.model.snapshot import Snapshot

COME_SECONDS: Final = 60.0  # from a claim to its initialised node, where nothing is known
GO_SECONDS: Final = 20.0  # from a claim's delete until its instance is gone, where nothing is known
FIRST_SECONDS: Final = 2.0  # until nodes that drift by a change are marked: conditions, a short wait, a decision
EVERY: Final = ""  # the name for all NodePools together

Source = Literal["record", "nodes", "nothing"]
Known = Mapping[str, tuple[float, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long a node is on its way. `source`: where that is known from; `count`: of how many cases it is the median.
    `ending`: the last part, in which the instance only shuts down and no budget counts it any more (DIS-50)."""

    seconds: float
    ending: float = 0.0
    source: Source
    count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Paces:
    """Seconds that were seen, by NodePool: of whole moves with a replacement and without, of launches, of ends."""

    moves: Known = field(default_factory=dict)  # from the marks until the old node is gone, with a new one first
    departures: Known = field(default_factory=dict)  # the same if nothing was launched
    launches: Known = field(default_factory=dict)
    ends: Known = field(default_factory=dict)
    endings: Known = field(default_factory=dict)  # the part of an end in which the instance shuts down
    joins: Known = field(default_factory=dict)  # of existing nodes, from claim to initialised

    def of(self, pool: str, *, replaced: bool) -> Pace:
        """A node of that pool, from its mark until it is gone."""
        found = self._whole(pool, replaced)
        ending = _median(self.endings, pool) or _median(self.endings, EVERY)
        return found if ending is None else replace(found, ending=min(ending[0], found.seconds))

    def _whole(self, pool: str, replaced: bool) -> Pace:
        whole = _median(self.moves if replaced else self.departures, pool)
        if whole is not None:
            return Pace(seconds=whole[0], source="record", count=whole[1])
        going = self._going(pool)
        if not replaced:
            return going
        coming = self._coming(pool)
        sources: tuple[Source, ...] = ("nothing", "nodes", "record")
        weaker = min(coming, going, key=lambda pace: sources.index(pace.source))
        return Pace(seconds=coming.seconds + going.seconds, source=weaker.source, count=weaker.count)

    def _coming(self, pool: str) -> Pace:
        for name in (pool, EVERY):
            if found := _median(self.launches, name):
                return Pace(seconds=found[0], source="record", count=found[1])
            if found := _median(self.joins, name):
                return Pace(seconds=found[0], source="nodes", count=found[1])
        return Pace(seconds=COME_SECONDS, source="nothing")

    def _going(self, pool: str) -> Pace:
        for name in (pool, EVERY):
            if found := _median(self.ends, name):
                return Pace(seconds=found[0], source="record", count=found[1])
        return Pace(seconds=GO_SECONDS, source="nothing")


def _median(known: Known, pool: str) -> tuple[float, int] | None:
    seconds = known.get(pool, ())
    return (median(seconds), len(seconds)) if seconds else None


def joins_of(snapshot: Snapshot) -> Known:
    """How long the existing nodes took from claim to initialised."""
    took: dict[str, list[float]] = {}
    for claim in snapshot.claims.values():
        up = claim.condition(names.INITIALIZED_CONDITION)
        if up is not None and up.status == "True" and up.changed > claim.created > 0:
            for pool in {claim.labels.get(names.NODE_POOL, EVERY), EVERY}:
                took.setdefault(pool, []).append(up.changed - claim.created)
    return {pool: tuple(seconds) for pool, seconds in took.items()}
