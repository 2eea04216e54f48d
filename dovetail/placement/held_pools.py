"""Why nothing is launched for a NodePool now: the brake has stopped it, or a person has paused launches."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf

from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.claim_memory import memory_of
from dovetail.model.own.pauses import Activity
from dovetail.model.places.placements import Reason
from dovetail.model.pools import NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.time import format_time, time_or_none
from dovetail.rules.brake.unused_launches import BRAKE, Stop, remembered_launches, stop_of
from dovetail.rules.pause.pauses import pause_on


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldPool:
    """A pool that gets no new node, and why."""

    pool: str
    reason: Reason
    says: str


def with_refused_pools(snapshot: Snapshot, refusals: Mapping[str, str]) -> Snapshot:
    """The cluster as if launches were stopped for the pools whose NodeClaims the API server refuses. A flight keeps
    this, so the decision can be repeated from it alone."""
    stopped = {
        name: replace(
            snapshot.pools[name],
            annotations={
                **snapshot.pools[name].annotations,
                # Without a moment: unlike after a stop, what the API server refuses is not tried again after a while.
                names.LAUNCHES_STOPPED: f"the API server refuses its NodeClaims: {why}",
            },
        )
        for name, why in refusals.items()
        if name in snapshot.pools and stop_of(snapshot.pools[name]) is None
    }
    return replace(snapshot, pools={**snapshot.pools, **stopped}) if stopped else snapshot


def held_pool(snapshot: Snapshot, pool: NodePool) -> HeldPool | None:
    """Why the pool gets no new node; None if it may get one."""
    stop = stop_of(pool)
    if stop is not None and snapshot.now < (again := next_trial(snapshot, pool, stop)):
        tried = f"; one more node is tried at {format_time(again)}" if again != inf else ""
        return HeldPool(pool=pool.name, reason="launches_stopped", says=f"launches are stopped: {stop.why}{tried}")
    pause = pause_on(snapshot, pool.name, Activity.LAUNCHES)
    if pause is None:
        return None
    return HeldPool(pool=pool.name, reason="launches_paused", says=pause.announces(Activity.LAUNCHES))


def next_trial(snapshot: Snapshot, pool: NodePool, stop: Stop) -> float:
    """When one more node of a stopped pool is tried: some minutes after the stop, and twice as long after each trial
    that came to nothing. Never while a trial node has yet to come up, or if a person wrote the stop."""
    since = time_or_none(stop.since)
    tried = trials(snapshot, pool)
    if since is None or any(not c.is_true(names.INITIALIZED_CONDITION) and c.deleting_since is None for c in tried):
        return inf
    ended = [launch.at for launch in remembered_launches(pool, snapshot.now) if launch.claim not in snapshot.claims]
    in_vain = [at for at in (*ended, *(claim.created for claim in tried)) if at > since]
    return BRAKE.until(max((since, *in_vain)), len(in_vain))


def trials(snapshot: Snapshot, pool: NodePool) -> tuple[NodeClaim, ...]:
    """The claims made since the pool was stopped, to see whether its nodes are of use again."""
    stop = stop_of(pool)
    since = time_or_none(stop.since) if stop is not None else None
    if since is None:
        return ()
    mine = (c for c in snapshot.claims.values() if c.labels.get(names.NODE_POOL) == pool.name and c.created > since)
    return tuple(claim for claim in mine if memory_of(claim.annotations).asks_again)
