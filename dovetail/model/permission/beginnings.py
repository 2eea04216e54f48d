"""May nodes of a pool begin to leave for a cause now? If not: which rule forbids it, and until when?

All rules that people make meet here and nowhere else: code that decides, marks, orders, explains or forecasts asks
`hold_of`. A rule can only say "not now"; a new rule is a new function in RULES, at the position in which people should
read of it. How many nodes may leave at once is the budgets' question; what a node or a pod says about itself, that of
the screening of candidates.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import inf
from typing import Final

from dovetail.model import names
from dovetail.model.permission.pauses import Activity, Pause, holding, pause_of_pool, pauses_of_all
from dovetail.model.permission.rollout_nodes import nodes_of
from dovetail.model.pools import NodePool
from dovetail.model.reasons.disruption_reasons import DisruptionReason, WhyNot
from dovetail.model.remembered.breakers import Breaker, BreakerRule, breaker_of, strictest
from dovetail.model.remembered.rates import Rate, RateState, pace_of
from dovetail.model.rules.health import HealthRule, Readiness, Unhealthy
from dovetail.model.rules.policies import Policy, closed, policies_of
from dovetail.model.rules.policy_rollouts import rolling, unmade
from dovetail.model.rules.rollouts import PoolNodes, Rollout, RolloutState, was_about
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.time import format_time


class Cause(StrEnum):
    """Why a node leaves that could stay; the first five are the reasons of disruptions. Interruption, repair and a
    person's delete are missing: no rule of people's holds them."""

    activity: Activity
    """What must not be paused for it."""
    is_windowed: bool
    """Whether windows are asked."""
    is_paced: bool
    """Whether rates hold it; what they do not hold counts for them all the same, where it is a disruption. What a
    person asks for is held by none, nor by the health of nodes."""

    def __new__(cls, value: str, activity: Activity, is_windowed: bool = False, is_paced: bool = False) -> "Cause":
        """A string with its attributes."""
        cause = str.__new__(cls, value)
        cause._value_ = value
        cause.activity, cause.is_windowed, cause.is_paced = activity, is_windowed, is_paced
        return cause

    #           value                        activity          is_windowed  is_paced
    EMPTY = (DisruptionReason.EMPTY.value, Activity.DISRUPTION, True, True)
    UNDERUTILIZED = (DisruptionReason.UNDERUTILIZED.value, Activity.DISRUPTION, True, True)
    DRIFTED = (DisruptionReason.DRIFTED.value, Activity.DISRUPTION, True, True)
    # A replacement before expiry is part of expiry.
    EXPIRED = (DisruptionReason.EXPIRED.value, Activity.EXPIRY, True, True)
    REQUESTED = (DisruptionReason.REQUESTED.value, Activity.DISRUPTION, True)
    REQUESTED_NOW = ("RequestedNow", Activity.DISRUPTION)  # a person waits for it
    EXPIRED_HARD = ("ExpiredHard", Activity.EXPIRY)  # deleted at its expireAfter
    SCALED_DOWN = ("ScaledDown", Activity.DISRUPTION)  # a static pool has too many nodes

    @classmethod
    def of(cls, reason: str, *, at_once: bool = False) -> "Cause":
        """The cause that corresponds to a disruption's reason. `at_once`: a person asks for the node now."""
        return cls.REQUESTED_NOW if at_once and reason == DisruptionReason.REQUESTED else cls[reason.upper()]

    @classmethod
    def of_mark(cls, reason: str) -> "Cause | None":
        """The cause of what a mark on a claim says; None where a newer version has written it."""
        return next((cls.of(known) for known in DisruptionReason if known == reason), None)


class HeldBy(StrEnum):
    """The kinds of rule by which people hold a pool."""

    PAUSE = "Pause"
    FREEZE = "Freeze"
    HEALTH = "Health"
    BREAKER = "Breaker"
    WINDOW = "Window"
    ROLLOUT = "Rollout"
    RATE = "Rate"


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolHold:
    """The rule that says "not now", in words for people, and until when if that is known."""

    rule: HeldBy
    why: WhyNot
    message: str
    until: float | None = None
    ends: str = ""  # the same from "until" on, where a rule is about one reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """Everything that people say about one NodePool at a moment: from a snapshot, or as the API server has it.

    `pool`: None if it is gone, or if a claim names none; then only the rules for all pools apply.
    """

    now: float
    pool: NodePool | None
    pauses: tuple[Pause, ...] = ()
    policies: tuple[Policy, ...] = field(default=())  # those that are about the pool
    rollouts: tuple[Rollout, ...] = ()  # likewise
    nodes: PoolNodes | None = None  # None where no roll-out is asked for, or at the mark, where the step alone is asked
    readiness: Mapping[str, Readiness] = field(default_factory=dict)  # by policy, of those that ask for health
    decided: frozenset[str] | None = None  # the places of roll-outs that the decision went by; at the mark alone

    @property
    def periods(self) -> frozenset[float]:
        """The periods over which rates of the pool count; none if it has no rate."""
        return frozenset(rate.per for policy in self.policies for rate in policy.rates)

    @property
    def breaker_rule(self) -> BreakerRule:
        """When the pool's breakers open, and for how long."""
        return breaker_rule_of(self.policies)

    def back_since(self, cause: Cause) -> float | None:
        """Since when a roll-out takes nodes back for that cause; None if none does."""
        found = [each.status.since for each in self.rollouts if each.goes_back and cause == Cause.DRIFTED]
        return max(found, default=None)

    def at(self, moment: float) -> "Said":
        """The same at another moment, for rules that depend on the clock. Pauses and Freezes stay as they are now."""
        return replace(self, now=moment)


def breaker_rule_of(policies: Iterable[Policy]) -> BreakerRule:
    """The rule that these policies of a NodePool set for its breakers."""
    return strictest(policy.breaker for policy in policies if policy.breaker is not None)


def said_in(snapshot: Snapshot, name: str) -> Said:
    """What a snapshot contains of it."""
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


def readiness_of(policies: Iterable[Policy], snapshot: Snapshot) -> Mapping[str, Readiness]:
    """For each policy that asks for the health of nodes, the nodes of all NodePools that it covers."""
    return {policy.name: readiness_for(policy, snapshot) for policy in policies if policy.health is not None}


def readiness_for(policy: Policy, snapshot: Snapshot) -> Readiness:
    """The readiness of one policy's nodes; a node that cannot be read may be any policy's."""
    pools = ["", *(name for name, pool in snapshot.pools.items() if policy.selects(pool))]
    return sum((snapshot.readiness.get(pool, Readiness()) for pool in pools), Readiness())


def rollouts_of(rollouts: Mapping[str, Rollout], pool: str) -> tuple[Rollout, ...]:
    """The roll-outs that may hold nodes of the pool back, by name."""
    return tuple(rollouts[name] for name in sorted(rollouts) if rollouts[name].is_about(pool))


def rollouts_in(snapshot: Snapshot, pool: str) -> tuple[Rollout, ...]:
    """The roll-outs of a snapshot that may hold nodes back; a snapshot keeps many that are complete."""
    ours = snapshot.rollouts_by_pool
    return rollouts_of({**ours.get("", {}), **ours.get(pool, {})}, pool)


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


def by_pause(said: Said, activity: Activity) -> PoolHold | None:
    """The pause or the Freeze that holds the activity."""
    pause = holding(said.pauses, activity)
    if pause is None:
        return None
    rule = HeldBy.FREEZE if pause.freeze else HeldBy.PAUSE
    return PoolHold(rule=rule, why=WhyNot.PAUSED, message=pause.announces(activity), until=pause.until)


def by_health(said: Said, cause: Cause) -> PoolHold | None:
    """The policy whose nodes are not healthy enough; of several, the one that holds longest. A roll-out that goes back
    takes away nodes of a target that may be the reason for that."""
    if said.pool is None or not cause.is_paced or said.back_since(cause) is not None:
        return None
    found = [
        (policy.name, unhealthy)
        for policy in said.policies
        if policy.health is not None and (unhealthy := _unhealthy(policy, policy.health, said)) is not None
    ]
    if not found:
        return None
    name, unhealthy = max(found, key=lambda each: inf if each[1].until is None else each[1].until)
    end = "until they are well" if unhealthy.until is None else f"until {format_time(unhealthy.until)}"
    ends = f"{end}, by the health of DisruptionPolicy {name}: {unhealthy.why}"
    message = f"{cause} may not begin for NodePool {said.pool.name} {ends}"
    return PoolHold(rule=HeldBy.HEALTH, why=WhyNot.UNHEALTHY, message=message, until=unhealthy.until, ends=ends)


def _unhealthy(policy: Policy, rule: HealthRule, said: Said) -> Unhealthy | None:
    found = said.readiness.get(policy.name, _UNSEEN)
    return rule.unhealthy(policy.status.health, found, said.now, policy.status.alerts)


def by_breaker(said: Said, cause: Cause) -> PoolHold | None:
    """The failures that hold the reason, unless a try is due."""
    rule, known = said.breaker_rule, _breaker(said, cause)
    if said.pool is None or known is None or known.opened is None or known.is_due(rule, said.now):
        return None
    until = known.until(rule) if known.probe is None else None
    ends = known.says(said.pool.name, rule, said.now)
    message = f"no more for {cause} may begin for NodePool {said.pool.name}: {ends}"
    return PoolHold(rule=HeldBy.BREAKER, why=WhyNot.BREAKER_OPEN, message=message, until=until, ends=ends)


def left_of_breaker(said: Said, cause: Cause) -> int | None:
    """One if a try is due, none if the breaker holds; None if it is closed."""
    known = _breaker(said, cause)
    return None if known is None or known.opened is None else int(known.is_due(said.breaker_rule, said.now))


def _breaker(said: Said, cause: Cause) -> Breaker | None:
    found = breaker_of(said.pool, cause) if said.pool is not None and cause.is_paced else None
    back = said.back_since(cause)
    is_over = found is not None and back is not None and found.last < back  # a roll-out that goes back has other images
    return None if is_over else found


def by_window(said: Said, cause: Cause) -> PoolHold | None:
    """The policy that closes the pool for it."""
    shut = closed(said.policies, said.pool, cause, said.now) if said.pool is not None and cause.is_windowed else None
    if shut is None:
        return None
    return PoolHold(
        rule=HeldBy.WINDOW, why=WhyNot.OUTSIDE_WINDOW, message=shut.says, until=shut.until, ends=shut.says_until
    )


def by_rollout(said: Said, cause: Cause) -> PoolHold | None:
    """The roll-out whose step lets no more nodes begin, or that must be created first."""
    if cause != Cause.DRIFTED or said.pool is None:
        return None
    missing = unmade(said.policies, said.nodes, said.now) if said.nodes is not None and not said.rollouts else None
    if missing is not None:
        message = f"nothing may begin for {cause} for NodePool {said.pool.name}: {missing.message}"
        return PoolHold(rule=HeldBy.ROLLOUT, why=WhyNot.ROLLOUT, message=message, until=missing.until)
    gone = why_gone(said.policies, said.rollouts, said.pool.name, said.decided or ())
    if gone:
        message = f"nothing may begin for {cause} for NodePool {said.pool.name}: {gone}"
        return PoolHold(rule=HeldBy.ROLLOUT, why=WhyNot.ROLLOUT, message=message)
    for rollout in _that_hold(said):
        why = _why_held(rollout, said, said.pool)
        if why:
            message = f"no more for {cause} may begin for NodePool {said.pool.name} by NodeRollout {rollout.name}"
            return PoolHold(rule=HeldBy.ROLLOUT, why=WhyNot.ROLLOUT, message=f"{message}: {why}")
    return None


def _that_hold(said: Said) -> Iterator[Rollout]:
    """The roll-outs that are asked. While one goes back, no node comes to the target, and only its nodes leave: the
    steps and gates of others say nothing of these."""
    back = any(each.goes_back for each in said.rollouts)
    return (each for each in said.rollouts if not back or each.goes_back or each.keeps_all)


def why_gone(policies: tuple[Policy, ...], rollouts: tuple[Rollout, ...], pool: str, decided: Iterable[str]) -> str:
    """Why a decision that was made at these steps of roll-outs is outdated, if a policy makes another roll-out."""
    is_gone = not rollouts and bool(rolling(policies)) and any(was_about(place, pool) for place in decided)
    return "the NodeRollout by which it was decided is gone, and a policy makes another" if is_gone else ""


def why_not_made(policies: tuple[Policy, ...], rollouts: tuple[Rollout, ...], pool: str, decided: Iterable[str]) -> str:
    """Why a replacement is not made that was decided on at these steps of roll-outs; empty if it is."""
    known = frozenset(decided)
    whys = (each.why_other(known) for each in rollouts)
    return why_gone(policies, rollouts, pool, known) or next(filter(None, whys), "")


def _why_held(rollout: Rollout, said: Said, pool: NodePool) -> str:
    late = rollout.why_not_now(said.now)
    if late or rollout.is_held or (said.nodes is not None and not rollout.left(pool, said.nodes)):
        return _stands(rollout, said.nodes, late)
    return "it has moved since this was decided, or its target has" if _has_moved(rollout, said, pool) else ""


def _has_moved(rollout: Rollout, said: Said, pool: NodePool) -> bool:
    """Whether a mark would take a node under a step that is no longer permitted. The caller that decides knows how many
    nodes there are; here it matters which step: otherwise everything that was decided on for the last target would
    still begin at another one."""
    if said.decided is None:
        return False
    is_other = not rollout.goes_back and rollout.status.target != pool.hash
    return is_other or rollout.place not in said.decided


def _stands(rollout: Rollout, nodes: PoolNodes | None, late: str) -> str:
    until = rollout.status.until
    soaks = f" until {format_time(until)}" if until is not None else ""
    counts = f", {nodes.taken} of {nodes.total} nodes are at the target or on their way" if nodes is not None else ""
    words = rollout.words
    return f"{words}{soaks}{counts}{f'; {late}' if late and late not in words else ''}"


def left_of_rollouts(said: Said, cause: Cause) -> int | None:
    """How many more nodes roll-outs let begin for that cause now; None if no roll-out applies."""
    pool, nodes = said.pool, said.nodes
    if cause != Cause.DRIFTED or pool is None or nodes is None:
        return None
    left = (0 if each.why_not_now(said.now) else each.left(pool, nodes) for each in _that_hold(said))
    return min(left, default=None)


def by_rate(said: Said, cause: Cause) -> PoolHold | None:
    """The rate that lets no more of them begin; of several, the one that holds longest."""
    full = [(policy, number, rate, pace) for policy, number, rate, pace in _paces(said, cause) if pace.left == 0]
    if said.pool is None or not full:
        return None
    policy, number, rate, pace = max(full, key=lambda each: inf if each[3].until is None else each[3].until)
    end = "until it is changed" if pace.until is None else f"until {format_time(pace.until)}"
    begun = f"{pace.begun} of at most {pace.allowed} nodes have begun within {rate.words}"
    ends = f"{end}, by DisruptionPolicy {policy.name}: rates[{number}], {begun}"
    message = f"no more for {cause} may begin for NodePool {said.pool.name} {ends}"
    return PoolHold(rule=HeldBy.RATE, why=WhyNot.RATE_REACHED, message=message, until=pace.until, ends=ends)


def left_of_rates(said: Said, cause: Cause) -> int | None:
    """How many more nodes rates let begin for that cause now; None if no rate applies."""
    return min((pace.left for *_, pace in _paces(said, cause)), default=None)


def _paces(said: Said, cause: Cause) -> Iterator[tuple[Policy, int, Rate, RateState]]:
    if said.pool is None or not cause.is_paced:
        return
    for policy in said.policies:
        for number, rate in enumerate(policy.rates):
            if rate.names(cause):
                yield policy, number, rate, pace_of(rate, said.pool, said.now)


_UNSEEN: Final = Readiness(fault="nobody looks at them")

PoolRule = Callable[[Said, Cause], PoolHold | None]

RULES: Final[tuple[PoolRule, ...]] = (by_health, by_breaker, by_window, by_rollout, by_rate)  # after pauses and Freezes


def changes(said: Said) -> Iterator[float]:
    """The moments at which rules that hold the pool now, for any cause, end by themselves."""
    yield from (pause.until for pause in said.pauses if pause.until is not None)
    holds = (rule(said, cause) for cause in Cause for rule in RULES)
    yield from (hold.until for hold in holds if hold is not None and hold.until is not None)
