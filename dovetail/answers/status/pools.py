"""Each NodePool in one line: its nodes, their cost and use, and how many of them may leave now."""

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Final

from dovetail.answers.status.answer import Allowed, Move, PoolStatus
from dovetail.answers.status.fleet_facts import FleetFacts, selected_pool, spot_share
from dovetail.disruption.budgets.allowances import Allowance, allowances
from dovetail.disruption.settings import DisruptionSettings
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.pools import Budget, NodePool
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.time import format_time
from dovetail.rules.beginnings import hold_of, said_in
from dovetail.rules.expiry.expiries import expiry_rules, replaced_from
from dovetail.rules.said import Cause, HeldBy, PoolHold

_HELD: Final = {
    HeldBy.FREEZE: "frozen",
    HeldBy.HEALTH: "nodes unhealthy",
    HeldBy.BREAKER: "replacements failed",
    HeldBy.WINDOW: "closed",
    HeldBy.ROLLOUT: "rolling out",
    HeldBy.RATE: "rate reached",
}
_SHOWN = (DisruptionReason.EMPTY, DisruptionReason.DRIFTED, DisruptionReason.UNDERUTILIZED)


def pools_of(facts: FleetFacts, settings: DisruptionSettings, under_way: tuple[Move, ...]) -> tuple[PoolStatus, ...]:
    """Every pool that this cloud serves, most expensive first."""
    snapshot = facts.snapshot
    allowed = allowances(snapshot, settings, _SHOWN)
    dues = dict(_first_dues(under_way))
    ours = [pool for pool in snapshot.pools.values() if snapshot.is_ours(pool.template.node_class)]
    found = [_pool(facts, pool, snapshot.claims_by_pool.get(pool.name, ()), allowed, dues) for pool in ours]
    return tuple(sorted(found, key=lambda p: (-p.price, p.name)))


def _first_dues(under_way: tuple[Move, ...]) -> Iterator[tuple[str, float]]:
    for move in sorted((m for m in under_way if m.due is not None), key=lambda m: -(m.due or 0.0)):
        yield move.pool, move.due or 0.0


def _pool(
    facts: FleetFacts,
    pool: NodePool,
    claims: Sequence[NodeClaim],
    allowed: Mapping[tuple[str, str], Allowance],
    dues: Mapping[str, float],
) -> PoolStatus:
    nodes = [claim.node_name for claim in claims]
    cpu, memory = facts.use_of(nodes)
    due, what = _next(facts.snapshot, pool, claims, dues.get(pool.name))
    return PoolStatus(
        name=pool.name,
        nodes=len(claims),
        price=sum(facts.prices.get(claim.name) or 0.0 for claim in claims),
        cpu=cpu,
        memory=memory,
        drifted=sum(1 for claim in claims if claim.is_true(names.DRIFTED)),
        may_go=tuple(_allowed(facts.snapshot, pool, allowed[pool.name, reason]) for reason in _SHOWN),
        next_due=due,
        next=what,
        pods=sum(facts.rooms[node].pods for node in nodes if node in facts.rooms),
        pending_pods=sum(1 for pod in facts.pending if selected_pool(pod) == pool.name),
        unpriced=sum(1 for claim in claims if facts.prices.get(claim.name) is None),
        spot=spot_share(claims),
    )


def _allowed(snapshot: Snapshot, pool: NodePool, found: Allowance) -> Allowed:
    held = hold_of(said_in(snapshot, pool.name), Cause.of(found.reason))
    why = ""
    if held is not None:
        why = _held_words(held)
    elif found.errors:
        why = found.errors[0]
    elif found.left == 0 and found.nodes:
        why = found.held or _budget_words(found.binding) if found.allowed == 0 else f"{found.consuming} under way"
    left = 0 if held is not None else min(found.left, found.nodes)
    return Allowed(reason=str(found.reason), left=left, allowed=min(found.allowed, found.nodes), why_not=why)


def _held_words(held: PoolHold) -> str:
    """The rule that holds the pool, in a word or two: the lines above the table describe pauses fully."""
    if held.rule == HeldBy.PAUSE:
        return "paused"
    end = f" until {format_time(held.until)}" if held.until is not None else ""
    return _HELD[held.rule] + end


def _budget_words(budget: Budget | None) -> str:
    if budget is None:
        return "budget"
    window = f" in the window {budget.schedule}" if budget.schedule else ""
    return f"budget {budget.nodes}{window}"


def _next(
    snapshot: Snapshot, pool: NodePool, claims: Sequence[NodeClaim], due: float | None
) -> tuple[float | None, str]:
    """What happens next by time alone: a second look, or a node that is replaced for its age or expires."""
    if due is not None:
        return due, "second look"
    if expiry_rules(snapshot.policies, pool):
        first = min(replaced_from(snapshot.policies, pool, claims).values(), default=inf)
        return (first, "first node is replaced for its age") if first < inf else (None, "")
    ends = [claim.expires_at for claim in claims if claim.expires_at is not None and claim.deleting_since is None]
    return (min(ends), "first node expires") if ends else (None, "")
