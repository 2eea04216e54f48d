"""Why nothing is launched for a NodePool now: the brake has stopped it, or a person has paused launches."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dovetail.model import names
from dovetail.model.pauses import Activity, pause_on
from dovetail.model.placements import Reason
from dovetail.model.pools import NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.model.unused_launches import stop_of, stop_text


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldPool:
    """A pool that gets no new node, and why."""

    pool: str
    reason: Reason
    says: str


def with_refused_pools(snapshot: Snapshot, refusals: Mapping[str, str]) -> Snapshot:
    """The cluster as if launches were stopped for the pools whose NodeClaims the API server refuses: a flight keeps it,
    and the decision can be made again from it alone."""
    stopped = {
        name: replace(
            snapshot.pools[name],
            annotations={
                **snapshot.pools[name].annotations,
                names.LAUNCHES_STOPPED: stop_text(snapshot.now, f"the API server refuses its NodeClaims: {why}"),
            },
        )
        for name, why in refusals.items()
        if name in snapshot.pools and stop_of(snapshot.pools[name]) is None
    }
    return replace(snapshot, pools={**snapshot.pools, **stopped}) if stopped else snapshot


def held_pool(snapshot: Snapshot, pool: NodePool) -> HeldPool | None:
    """Why the pool gets no new node; None where it may."""
    stop = stop_of(pool)
    if stop is not None:
        return HeldPool(pool=pool.name, reason="launches_stopped", says=f"launches are stopped: {stop.why}")
    pause = pause_on(snapshot, pool.name, Activity.LAUNCHES)
    if pause is None:
        return None
    return HeldPool(pool=pool.name, reason="launches_paused", says=pause.announces(Activity.LAUNCHES))
