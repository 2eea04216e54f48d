"""What a NodePool remembers about consolidation in vain: nodes that it took, and that were launched again for waiting
pods within a day (decision 226).

Kept as an annotation of the NodePool, so that it survives restarts and the loss of the database. An unreadable
annotation is ignored.
"""

from dataclasses import dataclass, replace
from typing import Final

from dovetail.model import names
from dovetail.model.pools import NodePool
from dovetail.model.values.backoff import Backoff
from dovetail.model.values.brake import Brake
from dovetail.model.values.memory import Memory
from dovetail.model.values.time import format_time

BRAKE: Final = Brake(enough=3, share=0.5, window=86_400.0, rests=Backoff(first=1200.0, longest=4 * 3600.0))
TOGETHER: Final = 300.0  # seconds within which nodes count as one move, or one return
MOST: Final = 40  # moves, and returns, that are remembered
TAKEN: Final = "taken"
RETURNED: Final = "returned"


@dataclass(frozen=True, slots=True, order=True)
class Moved:
    """Nodes that consolidation took, or that have returned."""

    at: float
    what: str
    nodes: int


_MEMORY: Final = Memory(names.BREAKER, Moved, part="moves")


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
    taken, returned = _of(pool, TAKEN, now), _of(pool, RETURNED, now)
    count, back = _nodes(taken), _nodes(returned)
    if not BRAKE.holds(back, count):
        return None
    until = BRAKE.until(returned[-1].at, len(returned) - 1)
    return MovesBrake(taken=count, returned=back, until=until) if now < until else None


def returned_nodes(pool: NodePool, launched: int, now: float) -> int:
    """How many of these new nodes take the place of nodes that consolidation has taken."""
    return min(launched, _nodes(_of(pool, TAKEN, now)) - _nodes(_of(pool, RETURNED, now)))


def with_moved(pool: NodePool, what: str, nodes: int, now: float) -> NodePool:
    """The pool after consolidation has taken that many nodes, or after that many of them have returned."""
    known = {each: _of(pool, each, now) for each in (TAKEN, RETURNED)}
    before, new = known[what], Moved(now // 1, what, nodes)
    if before and now - before[-1].at <= TOGETHER:
        before, new = before[:-1], replace(before[-1], nodes=before[-1].nodes + nodes)
    known[what] = [*before, new][-MOST:]
    return _MEMORY.write(pool, sorted([*known[TAKEN], *known[RETURNED]]))


def without_moves(pool: NodePool) -> NodePool:
    """The pool as if consolidation had taken nothing."""
    return _MEMORY.write(pool, ())


def _of(pool: NodePool, what: str, now: float) -> list[Moved]:
    """The moves or returns of the last day. No more come back than were taken."""
    recent = sorted(each for each in _MEMORY.read(pool) if now - BRAKE.window < each.at <= now)
    taken, returned = ([each for each in recent if each.what == kind] for kind in (TAKEN, RETURNED))
    if what == TAKEN:
        return taken
    return returned if _nodes(returned) <= _nodes(taken) else []


def _nodes(moved: list[Moved]) -> int:
    return sum(each.nodes for each in moved)
