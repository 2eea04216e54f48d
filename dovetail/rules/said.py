"""What people say about one NodePool at a moment, the causes for which nodes leave, and what a rule answers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from dovetail.model.own.breaker_rules import strictest
from dovetail.model.own.health import Readiness
from dovetail.model.own.pauses import Activity, Pause
from dovetail.model.own.policies import Policy
from dovetail.model.own.rollout_places import RolloutBasis
from dovetail.model.own.rollouts import PoolNodes, Rollout
from dovetail.model.pools import NodePool
from dovetail.model.reasons.disruption_reasons import DisruptionReason, WhyNot
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.brake import Brake


class Cause(StrEnum):
    """Why a node leaves that could stay; the first six are the reasons of disruptions. Interruption, the repair of
    before 1.15 and a person's delete are missing: no rule of people's holds them."""

    activity: Activity
    """What must not be paused for it."""
    is_windowed: bool
    """Whether windows are asked."""
    is_paced: bool
    """Whether rates hold it; what they do not hold counts for them all the same, where it is a disruption. What a
    person asks for is held by none, nor by the health of nodes."""

    def __new__(cls, value: str, activity: Activity, is_windowed: bool = False, is_paced: bool = False) -> "Cause":
        cause = str.__new__(cls, value)
        cause._value_ = value
        cause.activity, cause.is_windowed, cause.is_paced = activity, is_windowed, is_paced
        return cause

    #           value                        activity          is_windowed  is_paced
    EMPTY = (DisruptionReason.EMPTY.value, Activity.DISRUPTION, True, True)
    UNDERUTILIZED = (DisruptionReason.UNDERUTILIZED.value, Activity.DISRUPTION, True, True)
    DRIFTED = (DisruptionReason.DRIFTED.value, Activity.DISRUPTION, True, True)
    UNHEALTHY = (DisruptionReason.UNHEALTHY.value, Activity.DISRUPTION, True, True)
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
    basis: RolloutBasis | None = None  # what the decision went by of roll-outs; at the mark alone

    @property
    def periods(self) -> frozenset[float]:
        """The periods over which rates of the pool count; none if it has no rate."""
        return frozenset(rate.per for policy in self.policies for rate in policy.rates)

    @property
    def breaker_rule(self) -> Brake:
        """When the pool's breakers open, and for how long."""
        return breaker_rule_of(self.policies)

    def back_since(self, cause: Cause) -> float | None:
        """Since when a roll-out takes nodes back for that cause; None if none does."""
        found = [each.status.since for each in self.rollouts if each.goes_back and cause == Cause.DRIFTED]
        return max(found, default=None)

    def at(self, moment: float) -> "Said":
        """The same at another moment, for rules that depend on the clock. Pauses and Freezes stay as they are now."""
        return replace(self, now=moment)


def breaker_rule_of(policies: Iterable[Policy]) -> Brake:
    return strictest(policy.breaker.brake for policy in policies if policy.breaker is not None)


def rollouts_of(rollouts: Mapping[str, Rollout], pool: str) -> tuple[Rollout, ...]:
    """The roll-outs that may hold nodes of the pool back, by name."""
    return tuple(rollouts[name] for name in sorted(rollouts) if rollouts[name].is_about(pool))


def rollouts_in(snapshot: Snapshot, pool: str) -> tuple[Rollout, ...]:
    """The roll-outs of a snapshot that may hold nodes back; a snapshot keeps many that are complete."""
    ours = snapshot.rollouts_by_pool
    return rollouts_of({**ours.get("", {}), **ours.get(pool, {})}, pool)
