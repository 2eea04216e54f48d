"""Why nothing is launched for a NodePool now: the brake has stopped it, or a person has paused launches."""

from dataclasses import dataclass

from dovetail.model.pauses import Activity, pause_on
from dovetail.model.placements import Reason
from dovetail.model.pools import NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.model.unused_launches import stop_of


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldPool:
    """A pool that gets no new node, and why."""

    pool: str
    reason: Reason
    says: str


def held_pool(snapshot: Snapshot, pool: NodePool) -> HeldPool | None:
    """Why the pool gets no new node; None where it may."""
    stop = stop_of(pool)
    if stop is not None:
        return HeldPool(pool=pool.name, reason="launches_stopped", says=f"launches are stopped: {stop.why}")
    pause = pause_on(snapshot, pool.name, Activity.LAUNCHES)
    if pause is None:
        return None
    return HeldPool(pool=pool.name, reason="launches_paused", says=pause.announces(Activity.LAUNCHES))
