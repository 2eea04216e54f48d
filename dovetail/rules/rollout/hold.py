"""What roll-outs hold."""

from collections.abc import Iterator

from dovetail.model.own.policies import Policy
from dovetail.model.own.rollout_places import RolloutBasis
from dovetail.model.own.rollouts import Intent, PoolNodes, Rollout, RolloutState
from dovetail.model.pools import NodePool
from dovetail.model.reasons.disruption_reasons import WhyNot
from dovetail.model.values.hashing import is_other
from dovetail.model.values.time import format_time
from dovetail.rules.rollout.by_policy import SETTLES, rolling, unmade
from dovetail.rules.rollout.moves import is_awaited
from dovetail.rules.said import Cause, HeldBy, PoolHold, Said


def by_rollout(said: Said, cause: Cause) -> PoolHold | None:
    """The roll-out whose step lets no more nodes begin, or that must be created first."""
    if cause != Cause.DRIFTED or said.pool is None:
        return None
    missing = unmade(said.policies, said.nodes, said.now) if said.nodes is not None and not said.rollouts else None
    if missing is not None:
        message = f"nothing may begin for {cause} for NodePool {said.pool.name}: {missing.message}"
        return PoolHold(rule=HeldBy.ROLLOUT, why=WhyNot.ROLLOUT, message=message, until=missing.until)
    gone = why_gone(said.policies, said.rollouts, said.pool.name, said.basis or RolloutBasis())
    if gone:
        message = f"nothing may begin for {cause} for NodePool {said.pool.name}: {gone}"
        return PoolHold(rule=HeldBy.ROLLOUT, why=WhyNot.ROLLOUT, message=message)
    for rollout in _that_hold(said):
        why = _why_held(rollout, said, said.pool)
        if why:
            message = f"no more for {cause} may begin for NodePool {said.pool.name} by NodeRollout {rollout.name}"
            until = _settles(rollout, said)
            return PoolHold(rule=HeldBy.ROLLOUT, why=WhyNot.ROLLOUT, message=f"{message}: {why}", until=until)
    return None


def _that_hold(said: Said) -> Iterator[Rollout]:
    """The roll-outs that are asked. While one goes back, no node comes to the target, and only its nodes leave: the
    steps and gates of others say nothing of these."""
    back = any(each.goes_back for each in said.rollouts)
    asked = (each for each in said.rollouts if not back or each.goes_back or each.keeps_all)
    return (each for each in asked if not _waits_for_another(each, said))


def _waits_for_another(rollout: Rollout, said: Said) -> bool:
    """Whether it waits for a change, and the node that has drifted is not of one: that goes by budgets alone. At the
    mark this was decided while it stood there."""
    if said.nodes is None:
        if said.pool is None or said.basis is None or rollout.status.state != RolloutState.WAITING or rollout.keeps_all:
            return False
        return said.basis.has(rollout.place) and not is_other(said.pool.target, rollout.status.target)
    settles = _settles(rollout, said)
    return settles is not None and settles <= said.now


def _settles(rollout: Rollout, said: Said) -> float | None:
    """Until when other nodes may follow the one that has drifted; None where it waits for no others."""
    pool, nodes, status = said.pool, said.nodes, rollout.status
    is_known = status.state == RolloutState.WAITING and status.target  # else nobody has looked yet
    may_begin = is_known and not rollout.keeps_all and rollout.intent != Intent.ROLL_BACK
    if not may_begin or pool is None or nodes is None or is_awaited(rollout, pool, nodes):
        return None
    return nodes.newest_drift + SETTLES


def why_gone(policies: tuple[Policy, ...], rollouts: tuple[Rollout, ...], pool: str, basis: RolloutBasis) -> str:
    """Why a decision that was made at these steps of roll-outs is outdated, if a policy makes another roll-out."""
    is_gone = not rollouts and bool(rolling(policies)) and basis.is_about(pool)
    return "the NodeRollout by which it was decided is gone, and a policy makes another" if is_gone else ""


def why_not_made(policies: tuple[Policy, ...], rollouts: tuple[Rollout, ...], pool: str, basis: RolloutBasis) -> str:
    """Why a replacement is not made that was decided on at these steps of roll-outs; empty if it is."""
    whys = (each.why_other(basis) for each in rollouts)
    return why_gone(policies, rollouts, pool, basis) or next(filter(None, whys), "")


def _why_held(rollout: Rollout, said: Said, pool: NodePool) -> str:
    late = rollout.why_not_now(said.now)
    if late or rollout.is_held or (said.nodes is not None and not rollout.left(pool, said.nodes)):
        return _stands(rollout, said.nodes, late)
    return "it has moved since this was decided, or its target has" if _has_moved(rollout, said, pool) else ""


def _has_moved(rollout: Rollout, said: Said, pool: NodePool) -> bool:
    """Whether a mark would take a node under a step that is no longer permitted. The caller that decides knows how many
    nodes there are; here it matters which step: otherwise everything that was decided on for the last target would
    still begin at another one."""
    if said.basis is None:
        return False
    has_changed = not rollout.goes_back and is_other(rollout.status.target, pool.target)
    return has_changed or not said.basis.has(rollout.place)


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
