"""What a NodeRollout does next: which step is permitted, and what it does there.

Every state has an answer to whatever is seen. Nothing is remembered but the object's own status, so that whoever looks
next goes on from there; a step is permitted by writing it there first.
"""

from dataclasses import replace
from math import ceil
from typing import Final

from dovetail.disruption.upkeep.rollout_approvals import asks, with_answer
from dovetail.model.pools import NodePool
from dovetail.model.rollouts import (
    BEGUN,
    GateResult,
    Intent,
    NodesGate,
    PoolNodes,
    Rollout,
    RolloutState,
    RolloutStatus,
)

CONFIRMED: Final = 60.0  # seconds for which pods do worse before that is blamed on the change
SETTLED: Final = 600.0  # seconds: after them every node is known to have drifted or not, those of before too


def next_move(rollout: Rollout, pool: NodePool, nodes: PoolNodes, now: float) -> RolloutStatus:
    """The status that should stand there now, but for counts and conditions; its gate says already what it says now."""
    return with_answer(rollout, _moved(rollout, pool, nodes, now), nodes, now)


def _moved(rollout: Rollout, pool: NodePool, nodes: PoolNodes, now: float) -> RolloutStatus:
    status = rollout.status
    if status.state == RolloutState.WAITING:
        may_begin = not rollout.fault and rollout.intent in (Intent.RUN, Intent.PROMOTE)
        return _begun(rollout, pool, now) if may_begin and nodes.old + nodes.leaving else status
    if rollout.is_stopped:
        return status
    if rollout.has_changed(pool, nodes):
        return _begun(rollout, pool, now)
    known = [step.name for step in rollout.steps]
    if status.step not in known:
        return _at(rollout, 0, now)
    number = known.index(status.step)
    if rollout.intent == Intent.PROMOTE and number != len(known) - 1:
        return _at(rollout, len(known) - 1, now)
    return _within(rollout, number, nodes, now)


def looks_again(status: RolloutStatus, now: float) -> tuple[float, ...]:
    """When time alone may change it."""
    if status.state not in BEGUN:
        return ()
    settled = status.since + SETTLED if status.state == RolloutState.REPLACING else status.until
    asked = status.awaits.expires if status.awaits is not None else None
    return tuple(moment for moment in (settled, asked, now + CONFIRMED) if moment is not None)


def _within(rollout: Rollout, number: int, nodes: PoolNodes, now: float) -> RolloutStatus:
    """A step that has begun. It falls back where nodes of earlier steps are gone, or were counted too early."""
    status, needs = rollout.status, [step.allows(nodes.total) for step in rollout.steps]
    if rollout.is_failing:
        return _judged(status, now)
    lost = next((n for n in range(number) if nodes.taken < needs[n]), number)
    if lost != number and rollout.intent != Intent.PROMOTE:
        return _at(rollout, lost, now)
    if status.state == RolloutState.REPLACING:
        if _ready(rollout, nodes, now) < needs[number] or nodes.leaving:
            return status
        return _soaks(rollout, number, now)
    if nodes.at_target < needs[number]:
        return _at(rollout, number, now)
    return _proven(rollout, number, nodes, len(nodes.ready) >= needs[number], now)


def _proven(rollout: Rollout, number: int, nodes: PoolNodes, is_ready: bool, now: float) -> RolloutStatus:
    """A step whose nodes are at the target. What was judged soaks again, so that it is well all through a soak."""
    status = rollout.status
    passes = status.gate.result == GateResult.PASSING or rollout.intent == Intent.PROMOTE
    if status.state == RolloutState.JUDGING:
        return _soaks(rollout, number, now) if is_ready and passes else status
    if status.until is not None and now < status.until:
        return status
    if not is_ready:
        return _judged(status, now)
    if not passes:
        return status
    if number + 1 < len(rollout.steps):
        return asks(rollout, number, nodes, now) or _at(rollout, number + 1, now)
    return replace(status, state=RolloutState.COMPLETE, since=float(int(now)), until=None)


def _soaks(rollout: Rollout, number: int, now: float) -> RolloutStatus:
    until = float(ceil(now + rollout.steps[number].soak))
    return replace(rollout.status, state=RolloutState.SOAKING, since=float(int(now)), until=until)


def _judged(status: RolloutStatus, now: float) -> RolloutStatus:
    if status.state == RolloutState.JUDGING:
        return status
    return replace(status, state=RolloutState.JUDGING, since=float(int(now)), until=None)


def _ready(rollout: Rollout, nodes: PoolNodes, now: float) -> int:
    """Nodes that are ready at the target. Of one that is older than the roll-out it is not known at once whether it
    has drifted."""
    settled = now - rollout.status.since >= SETTLED
    return sum(1 for created in nodes.ready if settled or created >= rollout.created)


def _begun(rollout: Rollout, pool: NodePool, now: float) -> RolloutStatus:
    return replace(_at(rollout, 0, now), begun=float(int(now)), target=pool.hash, gate=NodesGate())


def _at(rollout: Rollout, number: int, now: float) -> RolloutStatus:
    name, since = rollout.steps[number].name, float(int(now))
    return replace(rollout.status, step=name, state=RolloutState.REPLACING, since=since, until=None)
