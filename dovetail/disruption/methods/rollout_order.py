"""In which order a roll-out takes the nodes of its NodePool: the oldest first, or one zone after another.

Nodes of other NodePools keep the places that they have in the list."""

from collections.abc import Iterator, Sequence

from dovetail.disruption.nodes.candidates import Candidate
from dovetail.model.own.rollouts import Order
from dovetail.model.snapshot import Snapshot
from dovetail.rules.said import rollouts_in


def in_order(snapshot: Snapshot, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates, with those of each roll-out in its order. Of a roll-out that goes back the newest leave first,
    which is the order that they already have."""
    queues: dict[str, Iterator[Candidate]] = {}
    for pool in {each.pool.name for each in candidates} if snapshot.rollouts else ():
        ours = rollouts_in(snapshot, pool)
        if ours and pool not in snapshot.going_back:
            zones = any(each.order == Order.ZONE for each in ours)
            queues[pool] = iter(_ordered([each for each in candidates if each.pool.name == pool], zones))
    return [next(queues[each.pool.name]) if each.pool.name in queues else each for each in candidates]


def _ordered(candidates: Sequence[Candidate], zones: bool) -> list[Candidate]:
    return sorted(candidates, key=lambda each: (each.zone if zones else "", each.claim.created, each.name))
