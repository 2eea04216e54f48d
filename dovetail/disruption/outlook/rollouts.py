"""Roll-outs within an outlook: each goes on by its own rules, once the nodes of its step would be ready.

Gates are assumed to pass, except one that fails now. Nobody can foretell whether a person approves: each question is
assumed either to be answered at once, or to stay open until it expires.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from dovetail.model.nodes import NodeClaim
from dovetail.model.own.gates import GateResult, GateVerdict
from dovetail.model.own.rollout_approvals import Approval
from dovetail.model.own.rollouts import (
    BEGUN,
    NewRollout,
    NodesGate,
    PoolNodes,
    Rollout,
    RolloutPlan,
    RolloutState,
    RolloutStatus,
    RolloutStep,
)
from dovetail.model.pools import NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.rules.rollout.moves import SETTLED, next_move
from dovetail.rules.rollout.nodes import nodes_of
from dovetail.rules.rollout.wanted import wanted_rollouts

PASSES: Final = NodesGate(result=GateResult.PASSING)
# What a policy's plan and a roll-out both have.
_COPIED: Final = {each.name for each in fields(RolloutPlan)} & {each.name for each in fields(Rollout)}
_MOVES_OF_A_STEP: Final = 4  # replaces, soaks, asks, goes on


@dataclass(frozen=True, slots=True, kw_only=True)
class StepAhead:
    """One step as it would go. `begins`: when the roll-out lets its nodes leave; a moment that is None never comes."""

    rollout: str
    pool: str
    policy: str
    step: RolloutStep
    nodes: int  # that it lets be at the target
    begins: float
    ready: float | None = None  # when all of them are
    soaked: float | None = None
    asked: float | None = None
    expires: float | None = None  # of the question
    paused: float | None = None  # nobody has answered it
    complete: float | None = None


@dataclass(slots=True, kw_only=True)
class RolloutsAhead:
    """How roll-outs go on while an outlook is played. `approves`: whether each question is answered at once."""

    approves: bool = False
    steps: dict[tuple[str, float, str], StepAhead] = field(default_factory=dict)  # by roll-out, beginning, step

    def advanced(self, snapshot: Snapshot) -> Snapshot:
        """The same moment with each roll-out as it would be then, including those that policies want."""
        now, rollouts = snapshot.now, dict(snapshot.rollouts)
        rollouts.update({new.name: _made(new, now) for new in wanted_rollouts(snapshot)})
        snapshot = replace(snapshot, rollouts=rollouts)
        for name, rollout in rollouts.items():
            pool = snapshot.pools.get(rollout.pool)
            if pool is not None and not rollout.fault and rollout.status.state != RolloutState.COMPLETE:
                rollouts[name] = self._advanced(rollout, pool, _arrived(nodes_of(snapshot, pool), now), now)
        return replace(snapshot, rollouts=rollouts)

    def _advanced(self, rollout: Rollout, pool: NodePool, nodes: PoolNodes, now: float) -> Rollout:
        """The roll-out after as many moves as are due at that moment."""
        for _ in range(_MOVES_OF_A_STEP * (len(rollout.steps) + 1)):
            rollout = self._answered(_passing(rollout, now), now)
            status = next_move(rollout, pool, nodes, now)
            if status.begun == rollout.status.begun:  # what it had reached before a new target is no step of it
                self._note(rollout, nodes, now)
            if _place(status) == _place(rollout.status):
                return replace(rollout, status=status)
            rollout = replace(rollout, status=status)
        return rollout

    def _answered(self, rollout: Rollout, now: float) -> Rollout:
        awaits = rollout.status.awaits
        if not self.approves or rollout.status.state != RolloutState.AWAITING or awaits is None:
            return rollout
        return replace(rollout, approval=Approval(step=rollout.status.step, digest=awaits.digest, by="", at=now))

    def _note(self, rollout: Rollout, nodes: PoolNodes, now: float) -> None:
        """Record when it reached each state of its step."""
        status = rollout.status
        step = next((each for each in rollout.steps if each.name == status.step), None)
        if step is None or status.state not in BEGUN | {RolloutState.COMPLETE}:
            return
        key = (rollout.name, status.begun, step.name)
        found = self.steps.get(key)
        if found is None:
            if status.state == RolloutState.COMPLETE:
                return  # before anything was played
            begins = status.since if status.state == RolloutState.REPLACING else now
            found = StepAhead(
                rollout=rollout.name,
                pool=rollout.pool,
                policy=rollout.policy,
                step=step,
                nodes=step.allows(nodes.total),
                begins=max(begins, now),
            )
        self.steps[key] = _noted(found, status)


def moments_of(snapshot: Snapshot) -> Iterator[float]:
    """When time alone lets a roll-out go on."""
    under_way = [each for each in snapshot.rollouts.values() if each.status.state in BEGUN]
    for rollout in under_way:
        status = rollout.status
        yield from (moment for moment in (status.until, status.since + SETTLED) if moment is not None)
        if status.awaits is not None:
            yield status.awaits.expires
        yield rollout.overdue_at()
    for pool in sorted({rollout.pool for rollout in under_way}):
        yield from _arrivals(snapshot.claims_by_pool.get(pool, ()), snapshot.now)


def _arrivals(claims: Iterable[NodeClaim], now: float) -> Iterator[float]:
    """When the expected nodes will have arrived."""
    yield from (claim.created for claim in claims if claim.created > now)


def _arrived(nodes: PoolNodes, now: float) -> PoolNodes:
    """The pool's nodes at that moment: those that have not arrived yet are on their way, and not ready."""
    return replace(nodes, ready=tuple(created for created in nodes.ready if created <= now))


def _passing(rollout: Rollout, now: float) -> Rollout:
    if rollout.verdict.result == GateResult.FAILING or rollout.status.state not in BEGUN:
        return rollout
    asked = tuple(GateVerdict(name=each.name, result=GateResult.PASSING, asked=now) for each in rollout.gates)
    return replace(rollout, status=replace(rollout.status, gate=PASSES, asked=asked))


def _place(status: RolloutStatus) -> tuple[object, ...]:
    return status.state, status.step, status.begun, status.until, status.answered


def _noted(found: StepAhead, status: RolloutStatus) -> StepAhead:
    match status.state:
        case RolloutState.SOAKING:
            return replace(found, ready=status.since, soaked=status.until)
        case RolloutState.AWAITING if status.awaits is not None:
            return replace(found, asked=status.since, expires=status.awaits.expires)
        case RolloutState.PAUSED:
            return replace(found, paused=status.since)
        case RolloutState.COMPLETE:
            return replace(found, complete=status.since)
    return found


def _made(new: NewRollout, now: float) -> Rollout:
    """The NodeRollout once upkeep has made it."""
    copied: Mapping[str, Any] = {name: getattr(new.plan, name) for name in _COPIED}
    return Rollout(name=new.name, uid=new.name, generation=1, created=now, pool=new.pool, policy=new.policy, **copied)
