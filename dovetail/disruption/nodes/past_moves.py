"""From which instance types cheaper nodes took over their pods, so that no move is undone within a day.

Prices that go up and down would otherwise move the same pods back and forth. The memory is an annotation on the claim
that took over, so that it survives restarts and the loss of the database, and ends with its node. A node that takes
over from such a node inherits its memory. An entry that cannot be read is ignored.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from dovetail.disruption.nodes.candidates import Candidate
from dovetail.model import before_0_2, names
from dovetail.model.values.memory import Memory

REMEMBERED_SECONDS: Final = 86_400.0
MOST_KINDS: Final = 100  # of the newest; with more, an annotation would fill a plan

Kind = tuple[str, str]  # instance type and capacity type


@dataclass(frozen=True, slots=True)
class LeftKind:
    """What pods were moved away from, and when."""

    type: str
    capacity: str
    at: float


_MEMORY: Final = Memory(names.MOVED_FROM, LeftKind, before_0_2.moved_from)


def moved_from(candidates: Iterable[Candidate], now: float) -> dict[Kind, float]:
    """What pods of these nodes were moved away from in the last day, and when."""
    found: dict[Kind, float] = {}
    for candidate in candidates:
        for left in _MEMORY.read(candidate.claim):
            if now - left.at < REMEMBERED_SECONDS:
                kind = left.type, left.capacity
                found[kind] = max(left.at, found.get(kind, left.at))
    return found


def moved_from_text(candidates: Iterable[Candidate], before: Mapping[Kind, float], now: float) -> str:
    """The annotation for a claim that takes over from these nodes. `before`: what they remember."""
    found = dict(before) | {
        (c.instance_type.name, c.capacity_type): now for c in candidates if c.instance_type is not None
    }
    oldest = sorted((LeftKind(*kind, at) for kind, at in found.items()), key=lambda left: left.at)
    return _MEMORY.text(oldest[-MOST_KINDS:]) or ""
