"""May nodes of a pool begin to leave for a cause now? If not: which rule forbids it, and until when?

All rules that people make meet here and nowhere else: code that decides, marks, orders, explains or forecasts asks
`hold_of`. A rule can only say "not now"; a new rule is a new function in RULES, at the position in which people should
read of it. How many nodes may leave at once is the budgets' question; what a node or a pod says about itself, that of
the screening of candidates.
"""

from collections.abc import Callable, Iterator
from typing import Final

from dovetail.model import names
from dovetail.model.own.pauses import Activity
from dovetail.model.own.policies import policies_of
from dovetail.model.own.rollouts import Rollout, RolloutState
from dovetail.model.snapshot import Snapshot
from dovetail.rules.brake.hold import by_breaker, left_of_breaker
from dovetail.rules.health.hold import by_health, readiness_of
from dovetail.rules.pause.hold import by_pause
from dovetail.rules.pause.pauses import pause_of_pool, pauses_of_all
from dovetail.rules.rate.hold import by_rate
from dovetail.rules.rollout.by_policy import rolling
from dovetail.rules.rollout.hold import by_rollout
from dovetail.rules.rollout.nodes import nodes_of
from dovetail.rules.said import Cause, PoolHold, Said, rollouts_in
from dovetail.rules.window.hold import by_window


def said_in(snapshot: Snapshot, name: str) -> Said:
    pool = snapshot.pools.get(name)
    general = pauses_of_all(snapshot.namespaces.get(names.SYSTEM_NAMESPACE), snapshot.freezes, snapshot.now)
    own = pause_of_pool(pool, snapshot.now) if pool is not None else None
    policies = policies_of(snapshot.policies, pool) if pool is not None else ()
    rollouts = rollouts_in(snapshot, name)
    return Said(
        now=snapshot.now,
        pool=pool,
        pauses=general if own is None else (*general, own),
        policies=policies,
        readiness=readiness_of(policies, snapshot),
        rollouts=rollouts,
        nodes=nodes_of(snapshot, pool) if pool is not None and (rollouts or rolling(policies)) else None,
    )


def others_closed(snapshot: Snapshot, pool: str, cause: Cause) -> frozenset[str]:
    """The NodePools of which no node may replace one of this pool for that cause. A roll-out counts the nodes of its
    own pool, and knows the images of before of that one alone: its nodes stay there, and no others come. Where a
    breaker is open, nodes of the pool itself make the try."""
    if pool in snapshot.going_back or (cause == Cause.DRIFTED and rollouts_in(snapshot, pool)):
        return frozenset(snapshot.pools.keys() - {pool})
    known = snapshot.rollouts.values() if cause == Cause.DRIFTED else ()
    rolled = {each.pool for each in known if each.pool in snapshot.pools and _is_rolling(each, snapshot)}
    remembering = (name for name, each in snapshot.pools.items() if names.BREAKER in each.annotations and name != pool)
    return frozenset(rolled).union(
        name for name in remembering if left_of_breaker(said_in(snapshot, name), cause) is not None
    )


def _is_rolling(rollout: Rollout, snapshot: Snapshot) -> bool:
    """Whether a change of its pool is rolled out or refused, or is about to be."""
    if rollout.status.state == RolloutState.WAITING:
        pool = snapshot.pools[rollout.pool]
        return rollout.has_changed(pool, nodes_of(snapshot, pool))
    return not rollout.is_over


def hold_of(said: Said, cause: Cause, *, replaced: bool = False) -> PoolHold | None:
    """The first rule that forbids nodes to begin to leave for that cause; None if they may.

    `replaced`: they leave only after a replacement is launched, so a pause of launches holds them too.
    """
    for activity in (cause.activity, Activity.LAUNCHES) if replaced else (cause.activity,):
        paused = by_pause(said, activity)
        if paused is not None:
            return paused
    return next((hold for rule in RULES if (hold := rule(said, cause)) is not None), None)


PoolRule = Callable[[Said, Cause], PoolHold | None]


RULES: Final[tuple[PoolRule, ...]] = (by_health, by_breaker, by_window, by_rollout, by_rate)  # after pauses and Freezes


def changes(said: Said) -> Iterator[float]:
    """The moments at which rules that hold the pool now, for any cause, end by themselves."""
    yield from (pause.until for pause in said.pauses if pause.until is not None)
    holds = (rule(said, cause) for cause in Cause for rule in RULES)
    yield from (hold.until for hold in holds if hold is not None and hold.until is not None)
