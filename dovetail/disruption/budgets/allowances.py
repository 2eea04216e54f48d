"""How many more nodes each pool may lose now, for one reason (DIS-49 to DIS-51, DIS-58).

Nodes that are already leaving count, whatever their reason; one that is also NotReady counts once. Nodes of waiting
plans count as far as those plans could begin at once: the others only wait in line.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Final

from dovetail.disruption.budgets.budgets import BudgetState, Limit, judge_budgets, limit_for
from dovetail.disruption.nodes.fleet import Fleet, Member
from dovetail.disruption.settings import DisruptionSettings
from dovetail.model import names
from dovetail.model.objects.judging import Unjudged
from dovetail.model.pools import Budget, NodePool
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.model.snapshot import Snapshot
from dovetail.notices.about import STANDING_WINDOW
from dovetail.notices.decisions import decision_notice
from dovetail.notices.notice import Notice
from dovetail.rules.beginnings import said_in
from dovetail.rules.brake.hold import left_of_breaker
from dovetail.rules.brake.returned_moves import MovesBrake, moves_brake
from dovetail.rules.rate.hold import left_of_rates
from dovetail.rules.rollout.hold import left_of_rollouts
from dovetail.rules.said import Cause

DRAIN_SECONDS: Final = 20.0
# An empty node is gone 7 s after its mark, and its second look comes after 15 s: with three times what the budgets
# allow in line, one is due whenever a place becomes free.
LINE: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What one pool's budgets permit for one reason. `left`: how many nodes a method may still take."""

    pool: str
    reason: DisruptionReason
    nodes: int
    allowed: int
    consuming: int
    ahead: int = 0  # of `consuming`, nodes that will be gone before a plan that waits is carried out
    binding: Budget | None
    errors: tuple[str, ...] = ()
    paced: int | None = None  # how many more rates, roll-outs and the breaker let begin now; None if none limits it
    held: str = ""  # what lets none leave, whatever the budgets say

    @property
    def left(self) -> int:
        """How many more nodes may be disrupted (DIS-49)."""
        left = max(0, self.allowed - self.consuming + self.ahead)
        return left if self.paced is None else min(left, self.paced)


def allowances(
    snapshot: Snapshot, settings: DisruptionSettings, reasons: tuple[DisruptionReason, ...] = tuple(DisruptionReason)
) -> Mapping[tuple[str, str], Allowance]:
    """Every pool's allowance for every reason, by (pool, reason)."""
    fleet = Fleet(snapshot, settings)
    count = cache(lambda pool: _count(fleet, pool))
    found = (_judged(fleet, pool, reason, False, count) for reason in reasons for pool in fleet.pools.values())
    return {(a.pool, a.reason): a for a in found}


def allowances_for(fleet: Fleet, reason: DisruptionReason, ahead: bool = False) -> dict[str, Allowance]:
    """Every pool's allowance for one reason, by pool. `ahead`: for a plan that is judged again before its mark."""
    count = partial(_count, fleet)
    return {name: _judged(fleet, pool, reason, ahead, count) for name, pool in fleet.pools.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Count:
    """A pool's nodes, whatever the reason."""

    nodes: int
    held: int  # only by a plan that waits
    busy: int  # leaving, being rebooted or not ready
    unready: int  # of these, those that are only not ready
    drained: int


def _count(fleet: Fleet, pool: str) -> _Count:
    counted = [m for m in fleet.by_pool.get(pool, ()) if _counts(m)]
    held = sum(1 for m in counted if fleet.is_held(m))
    return _Count(
        nodes=len(counted),
        held=held,
        busy=sum(1 for m in counted if not m.is_ready or _is_going(fleet, m)) - held,
        unready=sum(1 for m in counted if not m.is_ready and not _is_going(fleet, m)),
        drained=sum(1 for m in counted if _is_being_drained(m, fleet.now)),
    )


def _judged(
    fleet: Fleet, pool: NodePool, reason: DisruptionReason, ahead: bool, count: Callable[[str], _Count]
) -> Allowance:
    """The pool's allowance; zero if the pool cannot be judged, while the other pools go on."""

    def allowed() -> Allowance:
        return _allowance(fleet, pool.name, reason, ahead, count(pool.name))

    found = fleet.judging.judge(pool, "budgets", allowed)
    if not isinstance(found, Unjudged):
        return found
    nodes = len(fleet.by_pool.get(pool.name, ()))
    return Allowance(
        pool=pool.name, reason=reason, nodes=nodes, allowed=0, consuming=0, binding=None, errors=(found.says,)
    )


def _allowance(fleet: Fleet, pool: str, reason: DisruptionReason, ahead: bool, count: _Count) -> Allowance:
    limit = _limit(fleet, pool, reason, count.nodes)
    held, busy, drained = count.held, count.busy, count.drained
    if reason == DisruptionReason.UNHEALTHY:
        busy -= count.unready  # else what is to be repaired would use up its own budget
    # Only emptiness forms a line: how long another drain takes is not known.
    before = min(held, (LINE - 1) * max(0, limit.allowed - busy + drained)) if reason == DisruptionReason.EMPTY else 0
    slow = _moves_brake(fleet, pool, reason)
    allowed = 0 if slow is not None else max(0, limit.allowed)
    return Allowance(
        pool=pool,
        reason=reason,
        nodes=count.nodes,
        allowed=allowed,
        held=slow.says(pool) if slow is not None else "",
        consuming=busy + (held if ahead else min(held, _most_that_wait(fleet, pool, count.nodes))),
        ahead=drained + before if ahead else 0,
        paced=_paced(fleet, pool, reason, held if ahead else 0),
        binding=limit.binding,
        errors=limit.errors,
    )


def _paced(fleet: Fleet, pool: str, reason: DisruptionReason, held: int) -> int | None:
    """`held`: nodes of waiting plans, which take up their share of rates, or the place of a try, later."""
    if (
        not fleet.snapshot.policies
        and not fleet.snapshot.rollouts
        and names.BREAKER not in fleet.pools[pool].annotations
    ):
        return None
    said, cause = said_in(fleet.snapshot, pool), Cause.of(reason)
    placed, rolled = (left_of_rates(said, cause), left_of_breaker(said, cause)), left_of_rollouts(said, cause)
    found = [*(None if left is None else max(0, left - held) for left in placed), rolled]
    return min((left for left in found if left is not None), default=None)


def _moves_brake(fleet: Fleet, pool: str, reason: DisruptionReason) -> MovesBrake | None:
    if reason != DisruptionReason.UNDERUTILIZED or not fleet.settings.profile.slows_what_comes_back:
        return None
    return moves_brake(fleet.pools[pool], fleet.now)


def _most_that_wait(fleet: Fleet, pool: str, nodes: int) -> int:
    """How many nodes of waiting plans may be marked at once."""
    return max(_limit(fleet, pool, reason, nodes).allowed for reason in DisruptionReason if reason.waits)


def _limit(fleet: Fleet, pool: str, reason: DisruptionReason, nodes: int) -> Limit:
    return limit_for(budget_states(fleet, pool), reason.budget, nodes)


def budget_states(fleet: Fleet, pool: str) -> tuple[BudgetState, ...]:
    return judge_budgets(fleet.pools[pool].disruption.budgets, fleet.now)


def _counts(member: Member) -> bool:
    """Whether the pool has this node: managed, initialised or being rebooted, its instance not already terminated
    (DIS-50)."""
    claim = member.claim
    if not member.managed or claim is None or claim.is_true(names.INSTANCE_TERMINATING):
        return False
    return member.is_initialized or claim.is_rebooting


def _is_going(fleet: Fleet, member: Member) -> bool:
    return fleet.is_leaving(member) or (member.claim is not None and member.claim.is_rebooting)


def _is_being_drained(member: Member, now: float) -> bool:
    """Whether its drain should be over soon. Something holds a longer one, and no plan may count on its end."""
    since = member.claim.deleting_since if member.claim is not None else None
    return since is not None and now - since < DRAIN_SECONDS


def budget_notices(found: Mapping[str, Allowance]) -> tuple[Notice, ...]:
    """Notices for pools that have nodes but whose budgets, or the brake, allow none to leave (DIS-58)."""
    return tuple(_blocked(a) for a in found.values() if a.nodes > 0 and a.allowed == 0)


def _blocked(found: Allowance) -> Notice:
    if found.held:
        return replace(
            decision_notice("NodePool", found.pool, "ConsolidationSlowed", found.held, "Normal"), window=STANDING_WINDOW
        )
    says = f"No allowed disruptions for disruption reason {found.reason} due to blocking budget"
    return decision_notice("NodePool", found.pool, "DisruptionBlocked", says)
