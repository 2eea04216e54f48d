"""What a NodeRollout does next: which step is permitted, and what it does there.

Every state has an answer to anything that is seen. Only the object's own status is remembered, so that any worker can
go on from there; a step is permitted only once it is written there.
"""

from dataclasses import replace
from math import ceil
from typing import Final

from dovetail.model.own.rollouts import (
    BEGUN,
    NODES_GATE,
    REFUSED,
    STAY,
    Intent,
    NodesGate,
    PoolNodes,
    Rollout,
    RolloutFailure,
    RolloutState,
    RolloutStatus,
    RolloutStrategy,
)
from dovetail.model.own.stable_images import TARGET_AGAIN
from dovetail.model.pools import NodePool
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.model.values.hashing import is_other
from dovetail.rules.brake.breakers import breaker_of
from dovetail.rules.rollout.approvals import asks, is_fresh, with_answer
from dovetail.rules.rollout.history import with_history

ENOUGH: Final = 3  # replacements in a row that failed, after which a roll-out goes back by itself
CONFIRMED: Final = 60.0  # seconds for which pods do worse before that is blamed on the change
LONGEST_WORDS: Final = 360  # characters of a message; up to five fields repeat it, and the object must stay small
UNHEALED: Final = 180.0  # seconds for which pods do worse before a roll-out goes back by itself
SETTLED: Final = 600.0  # seconds after which every node, older ones too, is known to have drifted or not


def next_move(rollout: Rollout, pool: NodePool, nodes: PoolNodes, now: float) -> RolloutStatus:
    """The status as it should be now, except counts and conditions; `rollout` has its gates up to date."""
    rollout = replace(rollout, status=_hashed(rollout.status, pool.target, nodes.makes))
    found = with_history(rollout, _moved(rollout, pool, nodes, now), now)
    if rollout.intent != Intent.ROLL_BACK and found.state not in REFUSED:
        found = replace(found, failure=None)  # the next order to go back is a new one
    if rollout.intent != Intent.PROMOTE:
        found = replace(found, promoted_before=False)
    return with_answer(rollout, found, nodes, now)


def _hashed(status: RolloutStatus, target: str, makes: str) -> RolloutStatus:
    """The status with its target by today's version of the hashes. As with drift, what was changed in the very moment
    of an upgrade is not distinguished from it."""
    target = status.target if is_other(target, status.target) else target
    return replace(status, target=target, makes=status.makes if is_other(makes, status.makes) else makes)


def _moved(rollout: Rollout, pool: NodePool, nodes: PoolNodes, now: float) -> RolloutStatus:
    status = rollout.status
    if status.state == RolloutState.WAITING:
        may_begin = not rollout.fault and rollout.intent in (Intent.RUN, Intent.PROMOTE)
        return _begun(rollout, pool, nodes, now) if may_begin and is_awaited(rollout, pool, nodes) else status
    if status.state in REFUSED:
        return _refused(rollout, pool, nodes, now)
    if rollout.wants == Intent.ROLL_BACK and status.state in BEGUN and not rollout.fault:
        return _goes_back(rollout, "a person asked for it", now)
    if rollout.is_stopped:
        return _stands_still(rollout, now)
    if rollout.has_changed(pool, nodes):
        return _begun(rollout, pool, nodes, now)
    why = _why_back(rollout, pool, now)
    if why:
        return _goes_back(rollout, why, now)
    if now >= rollout.overdue_at():
        return _stands_still(rollout, now)
    known = [step.name for step in rollout.steps]
    if status.step not in known:
        return _at(rollout, 0, now)
    number = known.index(status.step)
    is_return = nodes.returned and rollout.passes and not rollout.why_not_now(now)
    if (rollout.wants == Intent.PROMOTE or is_return) and number != len(known) - 1:
        return _at(rollout, len(known) - 1, now)
    return _within(rollout, number, nodes, now)


def is_awaited(rollout: Rollout, pool: NodePool, nodes: PoolNodes) -> bool:
    """Whether the change is there for which it waits. One node alone may drift for a reason of its own: then the target
    must be another than when the roll-out was made. A policy makes one of a change that is there."""
    status, changed = rollout.status, nodes.old + nodes.leaving
    known = (pool.target, status.target), (nodes.makes, status.makes)
    is_other_now = any(now and before and is_other(now, before) for now, before in known)
    return bool(changed) and (is_other_now or changed >= min(2, nodes.total) or bool(rollout.policy))


def looks_again(status: RolloutStatus, rollout: RolloutStrategy, now: float) -> tuple[float, ...]:
    """When time alone may change it; every minute while it goes on."""
    kept_until = status.stable.since + rollout.longest_stable
    if status.state == RolloutState.ROLLING_BACK:
        return kept_until, now + CONFIRMED
    if status.state not in BEGUN:
        return (kept_until,) if status.state in REFUSED else ()
    settled = status.since + SETTLED if status.state == RolloutState.REPLACING else status.until
    asked = status.awaits.expires if status.awaits is not None else None
    late = None if rollout.longest is None else status.begun + rollout.longest
    return tuple(moment for moment in (settled, kept_until, asked, late, now + CONFIRMED) if moment is not None)


def _why_back(rollout: Rollout, pool: NodePool, now: float) -> str:
    """Why it goes back by itself; empty if it does not, or cannot."""
    status = rollout.status
    if not rollout.rolls_back or rollout.wants == Intent.PROMOTE or status.stable.why_not:
        return ""
    for gate, said in zip((NODES_GATE, *rollout.gates), rollout.verdicts, strict=True):
        if gate.failed_for(said, now) >= UNHEALED:
            return said.message if gate == NODES_GATE else said.words
    known = breaker_of(pool, DisruptionReason.DRIFTED)
    failed = sum(each.at >= status.begun for each in known.failures) if known is not None else 0
    return f"{failed} replacements in a row were not ready in time" if failed >= ENOUGH else ""


def _goes_back(rollout: Rollout, why: str, now: float) -> RolloutStatus:
    """The target is refused; if nothing is known to go back to, its nodes stay."""
    state, no_way, why = RolloutState.ROLLING_BACK, rollout.status.stable.why_not, why[:LONGEST_WORDS]
    if no_way:
        state, why = RolloutState.FAILED, f"{why}{STAY}{no_way}"
    failure = RolloutFailure(generation=rollout.generation, message=why)
    return replace(rollout.status, state=state, since=float(int(now)), until=None, failure=failure)


def _refused(rollout: Rollout, pool: NodePool, nodes: PoolNodes, now: float) -> RolloutStatus:
    """After a failure: until a person changes the object, or the pool has another target."""
    status, intent = rollout.status, rollout.intent
    if rollout.fault or intent in (Intent.PAUSE, Intent.ABORT):
        return status
    is_answered = status.failure is None or (status.failure.generation != rollout.generation and not is_fresh(rollout))
    if rollout.has_changed(pool, nodes) or (is_answered and intent != Intent.ROLL_BACK):
        return _begun(rollout, pool, nodes, now)
    no_way = status.stable.why_not if nodes.refusable or status.stable.why_not == TARGET_AGAIN else ""
    state = RolloutState.ROLLING_BACK if nodes.refusable and not no_way else RolloutState.FAILED
    if status.failure is not None:
        why = status.failure.message.partition(STAY)[0]
        status = replace(status, failure=replace(status.failure, message=f"{why}{STAY}{no_way}" if no_way else why))
    return status if state == status.state else replace(status, state=state, since=float(int(now)))


def _within(rollout: Rollout, number: int, nodes: PoolNodes, now: float) -> RolloutStatus:
    """A step that has begun. It falls back if nodes of earlier steps are gone, or were counted too early. Without nodes
    nothing is proven, except to a person who promotes it."""
    status, least = rollout.status, 0 if rollout.wants == Intent.PROMOTE else 1
    needs = [max(least, step.allows(nodes.total)) for step in rollout.steps]
    if rollout.is_failing:
        return _judged(status, now)
    lost = next((n for n in range(number) if nodes.taken < needs[n]), number)
    if lost != number and rollout.wants != Intent.PROMOTE and not nodes.returned:
        return _at(rollout, lost, now)
    if status.state == RolloutState.REPLACING:
        is_last = number == len(needs) - 1  # over it says that no node of before is left
        if _ready(rollout, nodes, now) < needs[number] or nodes.leaving or (is_last and nodes.draining):
            return status
        soaking = _soaks(rollout, number, now)
        if rollout.steps[number].soak:
            return soaking
        rollout = replace(rollout, status=soaking)  # a soak without length is over at once, within this look
    if nodes.at_target < needs[number]:
        return _at(rollout, number, now)
    return _proven(rollout, number, nodes, _are_ready(nodes, needs[number], now), now)


def _proven(rollout: Rollout, number: int, nodes: PoolNodes, is_ready: bool, now: float) -> RolloutStatus:
    """A step whose nodes are at the target. One that was judged soaks again, so that it is well for a whole soak."""
    status = rollout.status
    passes = rollout.passes and not rollout.why_not_now(now)
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
    soak = rollout.steps[number].soak
    until = float(ceil(now + soak)) if soak else float(int(now))
    return replace(rollout.status, state=RolloutState.SOAKING, since=float(int(now)), until=until)


def _stands_still(rollout: Rollout, now: float) -> RolloutStatus:
    """A roll-out that people or the clock have stopped. A gate that fails meanwhile still requires another whole
    soak."""
    is_about_it = rollout.status.state in BEGUN and not rollout.fault
    return _judged(rollout.status, now) if is_about_it and rollout.is_failing else rollout.status


def _judged(status: RolloutStatus, now: float) -> RolloutStatus:
    if status.state == RolloutState.JUDGING:
        return status
    return replace(status, state=RolloutState.JUDGING, since=float(int(now)), until=None)


def _are_ready(nodes: PoolNodes, needs: int, now: float) -> bool:
    """Whether so many are ready at the target, and no other is there that should be: one that came for pods a moment
    ago is still on its way."""
    return len(nodes.ready) >= needs and all(now - made < SETTLED for made in nodes.unready)


def _ready(rollout: Rollout, nodes: PoolNodes, now: float) -> int:
    """Nodes that are ready at the target. Whether a node older than this change has drifted is not known at once."""
    settled = now - rollout.status.since >= SETTLED
    return sum(1 for created in nodes.ready if settled or created >= rollout.status.begun)


def _begun(rollout: Rollout, pool: NodePool, nodes: PoolNodes, now: float) -> RolloutStatus:
    """What nodes ran before is remembered once: images of a target in between are not ones to go back to."""
    status, begun = rollout.status, float(int(now))
    stable = status.stable if status.stable.since else replace(status.stable, since=begun)
    place = replace(_at(rollout, 0, now), begun=begun, target=pool.target, makes=nodes.makes)
    is_next = bool(status.begun) and rollout.has_changed(pool, nodes)
    earlier = status.promoted_before or (is_next and rollout.intent == Intent.PROMOTE)
    return replace(place, gate=NodesGate(), asked=(), stable=stable, promoted_before=earlier)


def _at(rollout: Rollout, number: int, now: float) -> RolloutStatus:
    name, since = rollout.steps[number].name, float(int(now))
    return replace(rollout.status, step=name, state=RolloutState.REPLACING, since=since, until=None)
