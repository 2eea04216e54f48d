"""Rates of a DisruptionPolicy: how many nodes may begin to leave within any period of a given length.

What has begun is remembered in an annotation of the NodePool, so that it survives workers, Temporal and its database. A
place is taken there before the mark, under the pool's resource version, so that two workers can never take the same
one; a worker that dies between the two may lose a place until the period has passed, but never gains one. An unreadable
annotation is ignored.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Final
from zlib import crc32

from dovetail.model import names
from dovetail.model.own.rates import Rate
from dovetail.model.pools import NodePool

KEPT_APART: Final = 600.0  # seconds for which each node is remembered by itself: a step may be retried
GRAIN: Final = 100  # older entries are combined in buckets of this fraction of the period that still counts them
SLACK: Final = 0.005  # of the period, for which a place counts longer: the mark comes after the place was taken

_ENTRY: Final = re.compile(r"([A-Za-z]{1,40})@(\d{1,12})(?:=([0-9a-f]{8})|\*(\d{1,6}))\Z")


@dataclass(frozen=True, slots=True, order=True)
class BegunNodes:
    """Nodes that began to leave at one moment: one by its mark, or several whose marks are no longer known."""

    at: float
    reason: str
    mark: str = ""
    nodes: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RateState:
    """The state of a rate. `until`: when the next node may begin, if none may now and one ever may."""

    begun: int
    allowed: int
    until: float | None = None

    @property
    def left(self) -> int:
        """How many more may begin now."""
        return max(0, self.allowed - self.begun)


def begun_mark(owner: str, claim_uid: str) -> str:
    """Identifies one node's departure under one workflow, so that a second try finds its own place."""
    return f"{crc32(f'{owner}/{claim_uid}'.encode()):08x}"


def begun_of(pool: NodePool) -> tuple[BegunNodes, ...]:
    """What the pool remembers, the oldest first."""
    text = pool.annotations.get(names.BEGUN, "")
    entries = [_ENTRY.match(entry) for entry in text.split(",")] if text else []
    return tuple(sorted(BegunNodes(float(e[2]), e[1], e[3] or "", int(e[4] or 1)) for e in entries if e is not None))


def _counted(rate: Rate, pool: NodePool, now: float) -> tuple[float, list[BegunNodes]]:
    """How long each counts, and those that count now, the oldest first."""
    whole = rate.per * (1 + SLACK)
    return whole, [each for each in begun_of(pool) if each.at + whole > now and rate.names(each.reason)]


def slides_at(rate: Rate, pool: NodePool, now: float) -> float | None:
    """When the oldest one that counts ceases to count; None if none counts."""
    whole, counted = _counted(rate, pool, now)
    return counted[0].at + whole if counted else None


def pace_of(rate: Rate, pool: NodePool, now: float) -> RateState:
    """How many nodes of the pool have begun within the last period."""
    whole, counted = _counted(rate, pool, now)
    begun, allowed = sum(each.nodes for each in counted), rate.allowed(pool)
    if begun < allowed or allowed == 0:
        return RateState(begun=begun, allowed=allowed)
    left = begun
    for each in counted:
        left -= each.nodes
        if left < allowed:
            return RateState(begun=begun, allowed=allowed, until=each.at + whole)
    raise AssertionError("where none of them counts, fewer than that have begun")


def without_begun(pool: NodePool, marks: Collection[str]) -> NodePool:
    return _remembering(pool, [each for each in begun_of(pool) if not each.mark or each.mark not in marks])


def with_begun(pool: NodePool, new: Sequence[BegunNodes], periods: Collection[float], now: float) -> NodePool:
    """The pool with the nodes that begin. `periods`: those of all its rates; what none counts any more is forgotten."""
    folded: dict[tuple[str, float], BegunNodes] = {}
    apart = list(new)
    for each in begun_of(pool):
        age = now - each.at
        counting = [per for per in periods if age < per * (1 + SLACK)]
        if not counting:
            continue
        if age <= KEPT_APART:
            apart.append(each)
            continue
        key = (each.reason, each.at // (min(counting) / GRAIN))
        known = folded.get(key, BegunNodes(each.at, each.reason, nodes=0))
        folded[key] = BegunNodes(max(each.at, known.at), each.reason, nodes=each.nodes + known.nodes)
    return _remembering(pool, sorted([*folded.values(), *apart]))


def _remembering(pool: NodePool, begun: Sequence[BegunNodes]) -> NodePool:
    text = ",".join(map(_entry, begun))
    others = {key: value for key, value in pool.annotations.items() if key != names.BEGUN}
    return replace(pool, annotations={**others, **({names.BEGUN: text} if text else {})})


def _entry(begun: BegunNodes) -> str:
    what = f"={begun.mark}" if begun.mark else f"*{begun.nodes}"
    return f"{begun.reason}@{ceil(begun.at)}{what}"
