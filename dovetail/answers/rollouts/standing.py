"""Roll-outs as people see them: how far each is, what its gates say, what it waits for, and which commands apply."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from dovetail.answers.rollouts.answer import GateShown, RolloutShown, StepShown
from dovetail.answers.rollouts.kept import KeptNodes
from dovetail.answers.rollouts.text import waits_words
from dovetail.answers.wording import plural
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.gates import GateResult, GateVerdict
from dovetail.model.own.rollouts import REFUSED, Intent, PoolNodes, Rollout, RolloutState
from dovetail.model.pools import NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.rules.beginnings import hold_of, said_in
from dovetail.rules.rollout.nodes import nodes_of
from dovetail.rules.said import Cause, HeldBy, rollouts_in

STALLED: Final = "Stalled"
_QUIET: Final = frozenset({RolloutState.WAITING, RolloutState.COMPLETE})
_STOPPED: Final = frozenset({Intent.PAUSE, Intent.ABORT})
_RULES: Final = {
    HeldBy.PAUSE: "the end of a pause",
    HeldBy.FREEZE: "the end of a Freeze",
    HeldBy.HEALTH: "nodes to be well",
    HeldBy.BREAKER: "its breaker",
    HeldBy.WINDOW: "a window to open",
    HeldBy.RATE: "its rate",
}


@dataclass(frozen=True, slots=True)
class _Waits:
    """What the roll-out waits for, until when if time alone ends it, and what lets it continue."""

    what: str
    until: float | None = None
    order: str = "pause"


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What holds nodes besides the rules of `hold_of`. `budgets`: by NodePool, why its budgets let no drifted node
    leave now, if so; `kept`: which nodes stay because of themselves or their pods, if that was looked at."""

    budgets: Mapping[str, str] = field(default_factory=dict)
    kept: KeptNodes | None = None


_NOTHING: Final = Beside()


def is_news(rollout: Rollout) -> bool:
    """Whether it is under way, or something about it needs to be fixed."""
    return bool(rollout.fault) or rollout.status.state not in _QUIET or stalled(rollout) is not None


def shown_of(rollout: Rollout, snapshot: Snapshot, beside: Beside = _NOTHING) -> RolloutShown:
    pool, status = snapshot.pools.get(rollout.pool), rollout.status
    nodes = nodes_of(snapshot, pool) if pool is not None else None
    total, target, leaving = status.total, status.at_target, status.leaving
    if nodes is not None:
        total, target, leaving = nodes.total, nodes.at_target, nodes.leaving
    waits = _waits(rollout, snapshot, nodes, beside)
    return RolloutShown(
        name=rollout.name,
        pool=rollout.pool,
        state=_state(rollout),
        total=total,
        target=target,
        leaving=leaving,
        steps=tuple(_steps(rollout, total)),
        gates=_gates(rollout),
        since=status.since or None,
        waits_for=waits.what,
        until=waits.until,
        is_over=status.state in (RolloutState.COMPLETE, RolloutState.FAILED) or rollout.intent == Intent.ABORT,
        needs_person=asks(rollout) or stalled(rollout) is not None,
        commands=(f"dovetail rollout {waits.order} {rollout.name}",) if waits.order else (),
    )


def awaited_step(snapshot: Snapshot, claim: NodeClaim) -> str:
    """The step in which a drifted node is replaced, and what that step waits for; empty if no roll-out concerns it."""
    pool = snapshot.pools.get(claim.labels.get(names.NODE_POOL, ""))
    leaves = claim.deleting_since is not None or claim.is_true(names.DISRUPTION_REASON)
    if pool is None or leaves or not claim.is_true(names.DRIFTED):
        return ""
    rollout = next((each for each in rollouts_in(snapshot, pool.name) if is_news(each)), None)
    if rollout is None:
        return ""
    found, of = shown_of(rollout, snapshot), f"NodeRollout {rollout.name}"
    ahead = [each for each in found.steps if each.place != "done" and each.nodes > found.target + found.leaving]
    if rollout.fault or rollout.status.state in REFUSED or not ahead:
        return f"{of} keeps it, {found.state}, and waits for {waits_words(found, snapshot.now)}"
    number = found.steps.index(ahead[0]) + 1
    step = f"step {ahead[0].name} ({number} of {len(found.steps)}) of {of}"
    return f"it goes with {step} at the earliest, which waits for {waits_words(found, snapshot.now)}"


def asks(rollout: Rollout) -> bool:
    """Whether it waits for a person's approval now."""
    return rollout.status.state == RolloutState.AWAITING and rollout.intent not in _STOPPED and not rollout.fault


def stalled(rollout: Rollout) -> tuple[str, float] | None:
    """Why its condition says that it is stalled, and since when."""
    found = (each for each in rollout.status.conditions if each.type == STALLED and each.status == "True")
    condition = next(found, None)
    return None if condition is None else (f"{condition.reason}: {condition.message}", condition.changed)


def _state(rollout: Rollout) -> str:
    if rollout.fault:
        return "NotUnderstood"
    stopped = rollout.intent in _STOPPED and rollout.status.state != RolloutState.COMPLETE
    return {Intent.PAUSE: "Paused", Intent.ABORT: "Aborted"}[rollout.intent] if stopped else str(rollout.status.state)


def _steps(rollout: Rollout, total: int) -> Iterator[StepShown]:
    """The steps and their places. Before the first one all are to come; if the roll-out is complete or its step is
    gone, none is current."""
    known = [step.name for step in rollout.steps]
    is_over = rollout.status.state == RolloutState.COMPLETE
    at = len(known) if is_over else known.index(rollout.status.step) if rollout.status.step in known else -1
    for number, step in enumerate(rollout.steps):
        place = "done" if number < at else "now" if number == at else "to come"
        asks = step.approve is not None
        yield StepShown(name=step.name, nodes=step.allows(total), place=place, soak=step.soak, asks=asks)


def _gates(rollout: Rollout) -> tuple[GateShown, ...]:
    return tuple(GateShown(name=gate.name, result=str(gate.result), message=gate.message) for gate in rollout.verdicts)


def _waits(rollout: Rollout, snapshot: Snapshot, nodes: PoolNodes | None, beside: Beside) -> _Waits:
    status = rollout.status
    if rollout.fault:
        return _Waits(f"somebody to put right what cannot be understood: {rollout.fault}", order="status")
    if nodes is None:
        return _Waits(f"a NodePool {rollout.pool}, which is not there", order="status")
    if rollout.intent in _STOPPED and status.state not in _QUIET:
        return _Waits(f"somebody to resume it: its intent is {rollout.intent}", order="resume")
    if status.state == RolloutState.SOAKING:
        return _soaks(rollout, snapshot.now)
    return _by_state(rollout) or _nodes(rollout, snapshot.pools[rollout.pool], nodes, snapshot, beside)


def _by_state(rollout: Rollout) -> _Waits | None:
    """What it waits for by its state alone; None if that depends on nodes."""
    status = rollout.status
    match status.state:
        case RolloutState.WAITING if rollout.intent == Intent.ROLL_BACK:
            return _Waits("somebody to resume it: it has no change to take back", order="resume")
        case RolloutState.WAITING:
            return _Waits("a change of its NodePool", order="")
        case RolloutState.COMPLETE:
            return _Waits("", order="")
        case RolloutState.AWAITING if status.awaits is not None:
            return _Waits(f"a person's approval: {status.awaits.shows}", status.awaits.expires, "approve")
        case RolloutState.PAUSED:
            why = f"nobody approved step {status.step} in time"
            return _Waits(f"somebody to have it asked again: {why}", order="resume")
        case RolloutState.FAILED:
            why = status.failure.message if status.failure is not None else "its target is refused"
            return _Waits(f"another target, or somebody to try this one again: {why}", order="resume")
        case RolloutState.JUDGING:
            return _Waits(rollout.doubts or "the nodes at its target to be ready", order="abort")
    return None


def _soaks(rollout: Rollout, now: float) -> _Waits:
    status, gate = rollout.status, rollout.verdict
    if gate.result == GateResult.FAILING:
        return _Waits(rollout.doubts, order="abort")
    if status.until is not None and now < status.until:
        return _Waits(f"the end of the soak of step {status.step}", status.until)
    return _gate(gate) if gate.result != GateResult.PASSING else _Waits("its next look")


def _gate(gate: GateVerdict) -> _Waits:
    return _Waits(f"its gate {gate.name}: {gate.message or 'nothing is known yet'}")


def _nodes(rollout: Rollout, pool: NodePool, nodes: PoolNodes, snapshot: Snapshot, beside: Beside) -> _Waits:
    """What keeps the nodes that its step lets begin; else the nodes that have begun."""
    if rollout.is_held:
        return _gate(rollout.verdict)
    old = rollout.why_not_now(snapshot.now)
    if old:
        return _Waits(old)
    if rollout.left(pool, nodes):
        held = hold_of(said_in(snapshot, pool.name), Cause.DRIFTED, replaced=True)
        if held is not None and held.rule in _RULES:
            return _Waits(f"{_RULES[held.rule]}: {held.message}", held.until)
        if budget := beside.budgets.get(pool.name, ""):
            return _Waits(f"its NodePool's budget: {budget}")
    return _Waits(f"{_moving(rollout, pool, nodes)}{_kept(rollout, pool, nodes, beside)}")


def _kept(rollout: Rollout, pool: NodePool, nodes: PoolNodes, beside: Beside) -> str:
    """Which kept nodes hold up the step, if too few others may begin."""
    if beside.kept is None or rollout.status.state != RolloutState.REPLACING:
        return ""
    left = rollout.left(pool, nodes)
    words = beside.kept.words(pool.name, left) if left else ""
    return f"; {words}" if words else ""


def _moving(rollout: Rollout, pool: NodePool, nodes: PoolNodes) -> str:
    if rollout.status.state in REFUSED:
        return f"{plural(nodes.refusable, 'node')} at its target to leave"
    unready = nodes.at_target - len(nodes.ready)
    found = [
        f"{plural(left, 'node')} to begin" if (left := rollout.left(pool, nodes)) else "",
        f"{plural(nodes.draining, 'node')} to leave" if nodes.draining else "",
        f"{plural(unready, 'new node')} to be ready" if unready > 0 else "",
    ]
    return " and ".join(filter(None, found)) or "its next look"
