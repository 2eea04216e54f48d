"""Rates of a DisruptionPolicy: how many nodes may begin to leave within any period of a given length.

What has begun is remembered in an annotation of the NodePool, so that it survives workers, Temporal and its database. A
place is taken there before the mark, under the pool's resource version, so that two workers can never take the same
one; a worker that dies between the two may lose a place until the period has passed, but never gains one. An unreadable
annotation is ignored.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Final

from dovetail.model import names
from dovetail.model.own.rates import Rate
from dovetail.model.pools import NodePool
from dovetail.model.values.memory import Memory, mark

KEPT_APART: Final = 600.0  # seconds for which each node is remembered by itself: a step may be retried
GRAIN: Final = 100  # older entries are combined in buckets of this fraction of the period that still counts them
SLACK: Final = 0.005  # of the period, for which a place counts longer: the mark comes after the place was taken


@dataclass(frozen=True, slots=True, order=True)
class BegunNodes:
    """Nodes that began to leave at one moment: one by its mark, or several whose marks are no longer known."""

    at: float
    reason: str
    mark: str = ""
    nodes: int = 1


_MEMORY: Final = Memory(names.BEGUN, BegunNodes)


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


def begins(owner: str, claim_uid: str, reason: str, now: float) -> BegunNodes:
    """One node's departure under one workflow, so that a second try finds its own place."""
    return BegunNodes(now, reason, mark(_departure(owner, claim_uid)))


def _departure(owner: str, claim_uid: str) -> str:
    return f"{owner}/{claim_uid}"


def begun_of(pool: NodePool) -> tuple[BegunNodes, ...]:
    """What the pool remembers, the oldest first."""
    return tuple(sorted(_MEMORY.read(pool)))


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


def without_begun(pool: NodePool, owner: str, claim_uids: Iterable[str]) -> NodePool:
    """The pool without the places that the workflow has taken for these claims."""
    own = {mark(_departure(owner, uid)) for uid in claim_uids}
    return _MEMORY.write(pool, [each for each in begun_of(pool) if each.mark not in own])


def with_begun(pool: NodePool, new: Sequence[BegunNodes], periods: Collection[float], now: float) -> NodePool:
    """The pool with the nodes that begin. `periods`: those of all its rates; what none counts any more is forgotten."""
    folded: dict[tuple[str, float], BegunNodes] = {}
    apart = [replace(each, at=float(ceil(each.at))) for each in new]  # moments are written in whole seconds
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
    return _MEMORY.write(pool, sorted([*folded.values(), *apart]))
