"""What a NodePool remembers about consolidation in vain: nodes that it took, and that were launched again for waiting
pods within a day (decision 226).

Kept as an annotation of the NodePool, so that it survives restarts and the loss of the database. An unreadable
annotation is ignored.
"""

import re
from dataclasses import dataclass
from typing import Final

from dovetail.model import names
from dovetail.model.pools import NodePool
from dovetail.model.values.backoff import Backoff
from dovetail.model.values.time import format_time

REMEMBERED: Final = 86_400.0
ENOUGH: Final = 3  # nodes that came back
SHARE: Final = 0.5  # of those that were taken
RESTS: Final = Backoff(first=1200.0, longest=4 * 3600.0)  # after they came back
TOGETHER: Final = 300.0  # seconds within which they count as one move, or one return
MOST: Final = 40  # moves, and returns, that are remembered

_COUNTS: Final = r"(?:\d{1,12}x\d{1,6}(?:\.\d{1,12}x\d{1,6})*)?"
_TEXT: Final = re.compile(rf"({_COUNTS});({_COUNTS})\Z", re.ASCII)

Counts = tuple[tuple[int, int], ...]  # when, and how many nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class MovesBrake:
    """Too many nodes that consolidation took in the last day came back: it moves no pods until then."""

    taken: int
    returned: int
    until: float

    def says(self, pool: str) -> str:
        return (
            f"of {self.taken} nodes that consolidation took within a day {self.returned} were launched again: it rests "
            f"until {format_time(self.until)}; `dovetail resume --pool {pool}` ends that"
        )


def moves_brake(pool: NodePool, now: float) -> MovesBrake | None:
    """What holds consolidation of the pool; None if nothing does."""
    if names.RETURNED_MOVES not in pool.annotations:
        return None
    taken, returned = _remembered(pool, now)
    count, back = _nodes(taken), _nodes(returned)
    if back < ENOUGH or back < SHARE * count:
        return None
    until = returned[-1][0] + RESTS.pause(len(returned))
    return MovesBrake(taken=count, returned=back, until=until) if now < until else None


def taken_text(pool: NodePool, nodes: int, now: float) -> str:
    """The annotation after consolidation has taken that many nodes."""
    taken, returned = _remembered(pool, now)
    return _text(_with(taken, nodes, now), returned)


def returned_nodes(pool: NodePool, launched: int, now: float) -> int:
    """How many of these new nodes take the place of nodes that consolidation has taken."""
    taken, returned = _remembered(pool, now)
    return min(launched, _nodes(taken) - _nodes(returned))


def returned_text(pool: NodePool, nodes: int, now: float) -> str:
    """The annotation after that many of them have come back."""
    taken, returned = _remembered(pool, now)
    return _text(taken, _with(returned, nodes, now))


def _remembered(pool: NodePool, now: float) -> tuple[Counts, Counts]:
    """The moves and returns of the last day. No more come back than were taken."""
    match = _TEXT.match(pool.annotations.get(names.RETURNED_MOVES, ""))
    if match is None:
        return (), ()
    taken, returned = _counts(match[1], now), _counts(match[2], now)
    return taken, returned if _nodes(returned) <= _nodes(taken) else ()


def _counts(text: str, now: float) -> Counts:
    pairs = (entry.split("x") for entry in text.split(".") if entry)
    return tuple(sorted((int(at), int(nodes)) for at, nodes in pairs if now - REMEMBERED < int(at) <= now))


def _with(known: Counts, nodes: int, now: float) -> Counts:
    if known and now - known[-1][0] <= TOGETHER:
        return (*known[:-1], (known[-1][0], known[-1][1] + nodes))
    return (*known, (int(now), nodes))[-MOST:]


def _nodes(counts: Counts) -> int:
    return sum(nodes for _, nodes in counts)


def _text(taken: Counts, returned: Counts) -> str:
    return ";".join(".".join(f"{at}x{nodes}" for at, nodes in counts) for counts in (taken, returned))
