"""DisruptionPolicies and Freezes: when nodes may begin to leave, as objects that people keep in Git.

Both can only say "not now". One that cannot be understood says so too, for the NodePools that it is about, or for all
if even these are unknown; the other pools go on.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Annotated, Final
from zoneinfo import ZoneInfo

from dovetail.model.nodes import Condition
from dovetail.model.own.breaker_rules import BreakerRule
from dovetail.model.own.drain_rules import DrainRules
from dovetail.model.own.forms import Form, Key, Moment, OwnObject, Seconds, yes
from dovetail.model.own.gates import GateVerdict
from dovetail.model.own.health import HealthRule, HealthState
from dovetail.model.own.openings import Timetable, Window, next_change, wall_clock
from dovetail.model.own.rates import Rate
from dovetail.model.own.rollouts import Rollout, RolloutPlan
from dovetail.model.pods import LabelSelector
from dovetail.model.pools import NodePool
from dovetail.model.scheduling.selectors import matches
from dovetail.model.values.durations import DAY
from dovetail.model.values.quoting import shown
from dovetail.model.values.remembering import MEGABYTE, remembered
from dovetail.model.values.time import format_time

_MOST_FOUND: Final = 1000
_FOUND: dict[object, tuple[float, float | None]] = {}  # by timetables: from when to when nothing changes


@remembered(MEGABYTE)
def zone_named(name: str) -> str:
    """The name, if the system's files or the package tzdata have such a zone."""
    try:
        return ZoneInfo(name).key
    except (ValueError, OSError, LookupError):
        raise ValueError(f"{shown(name)} is no time zone like Europe/Berlin") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What a policy says about one reason now. `until`: when that changes, if it does within 400 days."""

    reason: str
    open: bool
    until: Moment | None = None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenRate:
    """How many nodes of a NodePool count now against the rate at that place of the policy's list. `until`: when the
    next one may begin, if none may now."""

    pool: Annotated[str, Key("nodePool")]
    rate: int
    begun: int
    allowed: int
    until: Moment | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyStatus:
    pools: Annotated[tuple[str, ...], Key("nodePools")] = ()
    openings: tuple[Opening, ...] = ()
    rates: tuple[TakenRate, ...] = ()
    conditions: tuple[Condition, ...] = ()
    health: HealthState | None = None
    alerts: GateVerdict | None = None  # that its health asks for


@dataclass(frozen=True, slots=True, kw_only=True)
class Expiry:
    """How nodes of its pools expire, in seconds. `hard_after`: how long after its expiry a node is deleted in any case;
    None: as without a policy."""

    spread: Seconds = 0.0
    hard_after: Seconds | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy(OwnObject):
    """One DisruptionPolicy. `selector`: None for every NodePool."""

    selector: Annotated[LabelSelector | None, Key("nodePoolSelector")] = None
    zone: Annotated[str, Key("timeZone"), Form(zone_named)] = "UTC"  # by name, as in a kept decision
    allow: tuple[Window, ...] = ()
    deny: tuple[Window, ...] = ()
    rates: tuple[Rate, ...] = ()
    expiry: Expiry | None = None
    rollout: RolloutPlan | None = None
    drain: DrainRules | None = None
    health: HealthRule | None = None
    breaker: BreakerRule | None = None
    fault: str = ""  # why it cannot be used, if it cannot: then it closes its pools
    status: PolicyStatus = PolicyStatus()

    def selects(self, pool: NodePool) -> bool:
        return self.selector is None or matches(self.selector, pool.labels)

    def why_closed(self, reason: str, moment: float) -> str:
        """Why nothing may begin for that reason then; empty if it may."""
        if self.fault:
            return f"it cannot be understood: {self.fault}"
        wall = wall_clock(moment, ZoneInfo(self.zone))
        for number, window in enumerate(self.deny):
            if window.names(reason) and window.covers(wall):
                return f"in deny[{number}]"
        named = [(number, window) for number, window in enumerate(self.allow) if window.names(reason)]
        if not named or any(window.covers(wall) for _, window in named):
            return ""
        return "outside " + " and ".join(f"allow[{number}]" for number, _ in named)

    def timetable(self, reason: str) -> Timetable:
        allow, deny = (tuple([each for each in found if each.names(reason)]) for found in (self.allow, self.deny))
        return Timetable(ZoneInfo(self.zone), allow, deny)


@dataclass(frozen=True, slots=True, kw_only=True)
class Freeze(OwnObject):
    """One Freeze: a pause with a beginning and an end, for every NodePool."""

    begins: Annotated[Moment | None, Key("from")] = None  # None: since it exists
    until: Moment | None = None  # None only if it cannot be read: then it has no end
    what: frozenset[str] = frozenset()  # the words of a pause; none if they cannot be read: everything voluntary
    undoes: Annotated[bool, Key("inFlight"), yes("Undo", "Finish")] = False  # what has begun, as far as possible
    reason: str = ""
    fault: str = ""
    conditions: tuple[Condition, ...] = ()

    def holds(self, moment: float) -> bool:
        return (self.begins is None or self.begins <= moment) and (self.until is None or moment < self.until)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRules:
    """All policies, freezes and roll-outs, by name."""

    policies: Mapping[str, Policy] = field(default_factory=dict)
    freezes: Mapping[str, Freeze] = field(default_factory=dict)
    rollouts: Mapping[str, Rollout] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """Why nothing may begin for one reason in one pool now. `until`: when the last of all policies opens."""

    policy: str
    pool: str
    reason: str
    why: str
    until: float | None

    @property
    def says(self) -> str:
        return f"{self.reason} may not begin for NodePool {self.pool} {self.says_until}"

    @property
    def says_until(self) -> str:
        """Until when, and by which rule."""
        end = f"until {format_time(self.until)}" if self.until is not None else "until it is changed"
        return f"{end}, by DisruptionPolicy {self.policy}: {self.why}"


def policies_of(policies: Mapping[str, Policy], pool: NodePool) -> tuple[Policy, ...]:
    """The policies about the pool, by name."""
    return tuple(policies[name] for name in sorted(policies) if policies[name].selects(pool))


def closed(ours: tuple[Policy, ...], pool: NodePool, reason: str, now: float) -> Closed | None:
    """What closes the pool for that reason; all its policies must be open, so that the strictest wins."""
    found = next(((each, why) for each in ours if (why := each.why_closed(reason, now))), None)
    if found is None:
        return None
    policy, why = found
    return Closed(policy=policy.name, pool=pool.name, reason=reason, why=why, until=next_opening(ours, reason, now))


def next_opening(policies: tuple[Policy, ...], reason: str, now: float) -> float | None:
    """When that next changes for all of them together: if they are closed now, they open; else they close.

    The answer is kept until then: a year ahead is hundreds of days, and every round asks for every pool."""
    if any(policy.fault for policy in policies):
        return None  # closed until it is changed
    tables = tuple([policy.timetable(reason) for policy in policies])
    since, until = _FOUND.get(tables, (inf, None))
    if not since <= now < (since + DAY if until is None else until):
        if len(_FOUND) >= _MOST_FOUND:
            _FOUND.clear()
        since, until = _FOUND[tables] = now, next_change(tables, now)
    return until
