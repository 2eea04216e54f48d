"""What people say about when nodes of a pool may begin to leave: pauses, Freezes, windows of DisruptionPolicies."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from dovetail.model.disruption_reasons import DisruptionReason, WhyNot
from dovetail.model.pauses import Activity, pause_on
from dovetail.model.policies import closed
from dovetail.model.pools import NodePool
from dovetail.model.snapshot import Snapshot


class HeldBy(StrEnum):
    """By what people hold a pool."""

    PAUSE = "Pause"
    FREEZE = "Freeze"
    WINDOW = "Window"


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolHold:
    """Which rule says "not now", in words for people, and until when where that is known."""

    rule: HeldBy
    why: WhyNot
    message: str
    until: float | None = None


def activities_of(reason: str, *, replaced: bool) -> tuple[Activity, ...]:
    """What must not be paused for a disruption of that reason.

    A replacement before expiry is part of expiry. `replaced`: the node leaves only after its replacement is launched.
    """
    activity = Activity.EXPIRY if reason == DisruptionReason.EXPIRED else Activity.DISRUPTION
    return (activity, Activity.LAUNCHES) if replaced else (activity,)


def hold_of_activity(snapshot: Snapshot, pool: str, activity: Activity) -> PoolHold | None:
    """The pause or the Freeze that holds that for the pool."""
    pause = pause_on(snapshot, pool, activity)
    if pause is None:
        return None
    rule = HeldBy.FREEZE if pause.freeze else HeldBy.PAUSE
    return PoolHold(rule=rule, why=WhyNot.PAUSED, message=pause.announces(activity), until=pause.until)


def hold_of_window(snapshot: Snapshot, pool: NodePool, reason: DisruptionReason) -> PoolHold | None:
    """The policy that closes the pool for that reason."""
    shut = closed(snapshot.policies, pool, reason, snapshot.now) if snapshot.policies else None
    if shut is None:
        return None
    return PoolHold(rule=HeldBy.WINDOW, why=WhyNot.OUTSIDE_WINDOW, message=shut.says, until=shut.until)


def hold_of_pool(
    snapshot: Snapshot, pool: NodePool, reason: DisruptionReason, *, replaced: bool, at_once: bool = False
) -> PoolHold | None:
    """The first of them that keeps nodes of the pool from beginning to leave for that reason. `at_once`: a person asks
    for it now, and windows are not asked."""
    for activity in activities_of(reason, replaced=replaced):
        found = hold_of_activity(snapshot, pool.name, activity)
        if found is not None:
            return found
    return None if at_once else hold_of_window(snapshot, pool, reason)


def window_changes(snapshot: Snapshot, pool: NodePool) -> Iterator[float]:
    """When a window of the pool opens that is closed now."""
    for reason in DisruptionReason:
        shut = hold_of_window(snapshot, pool, reason)
        if shut is not None and shut.until is not None:
            yield shut.until
