"""From which instance types cheaper nodes took over their pods, so that no move is undone within a day.

Prices that go up and down would otherwise move the same pods back and forth. The memory is on the claim
that took over, so that it survives restarts and the loss of the database, and ends with its node. A node that takes
over from such a node inherits its memory. An entry that cannot be read is ignored.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from dovetail.disruption.nodes.candidates import Candidate
from dovetail.model.own.claim_memory import LeftKind, memory_of
from dovetail.model.values.durations import DAY

MOST_KINDS: Final = 100  # of the newest; with more, an annotation would fill a plan

Kind = tuple[str, str]  # instance type and capacity type


def moved_from(candidates: Iterable[Candidate], now: float) -> dict[Kind, float]:
    """What pods of these nodes were moved away from in the last day, and when."""
    found: dict[Kind, float] = {}
    for candidate in candidates:
        for left in memory_of(candidate.claim.annotations).moved_from:
            if now - left.at < DAY:
                kind = left.type, left.capacity
                found[kind] = max(left.at, found.get(kind, left.at))
    return found


def remembered_moves(candidates: Iterable[Candidate], before: Mapping[Kind, float], now: float) -> tuple[LeftKind, ...]:
    """What a claim that takes over from these nodes remembers. `before`: what they do."""
    found = dict(before) | {
        (c.instance_type.name, c.capacity_type): now for c in candidates if c.instance_type is not None
    }
    oldest = sorted((LeftKind(*kind, at) for kind, at in found.items()), key=lambda left: left.at)
    return tuple(oldest[-MOST_KINDS:])
