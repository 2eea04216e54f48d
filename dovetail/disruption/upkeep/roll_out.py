"""Has the latest change of a NodePool reached its nodes? Its condition NodesUpToDate, in the words proposed upstream.

Judged from the claims' own hashes and labels, not from their condition Drifted, which is written some moments after
the change: until then a pool would claim that all is done. Claims that are leaving count until they are gone.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from dovetail.disruption.upkeep.conditions import NODE_POOL_DRIFTED, is_hash_drifted, is_requirement_drifted
from dovetail.lifecycle.conditions import ConditionSet, false, true
from dovetail.model import names
from dovetail.model.names import CLASS_READY
from dovetail.model.nodes import FALSE, Condition, NodeClaim
from dovetail.model.own.rollouts import REFUSED, Rollout
from dovetail.model.pools import NodePool
from dovetail.model.values.hashing import NODE_POOL_HASH_ALGORITHM

NODES_UP_TO_DATE: Final = "NodesUpToDate"


def refused_of(rollouts: Iterable[Rollout], pool: NodePool) -> str:
    """The roll-out that refuses the pool's target, and why; empty if none does."""
    found = (each for each in rollouts if each.pool == pool.name and each.status.state in REFUSED)
    return next((f"NodeRollout {each.name} refuses the target: {each.words}" for each in found), "")


def nodes_up_to_date(
    pool: NodePool, claims: Iterable[NodeClaim], judged: ConditionSet, now: float, refused: str = ""
) -> Condition:
    """The condition. `judged`: the pool's other conditions from the same look; `refused`: why its nodes may not reach
    the target."""
    hashed = {names.NODE_POOL_HASH: pool.hash, names.NODE_POOL_HASH_VERSION: NODE_POOL_HASH_ALGORITHM}
    wanted = replace(pool, annotations=hashed)  # what upkeep is about to write, if it is not there yet
    own = [claim for claim in claims if claim.labels.get(names.NODE_POOL) == pool.name]
    if refused:
        drifted = [claim.is_true(names.DRIFTED) or _is_behind(claim, wanted) for claim in own]
        text = f"{drifted.count(False)}/{len(drifted)} nodes are up to date; {refused}"
        return false(NODES_UP_TO_DATE, now, ("RolloutBlocked", text))
    behind = [_is_behind(claim, wanted) for claim in own]
    if not any(behind):
        return true(NODES_UP_TO_DATE, now)  # without a count, so that a pool that grows is not written for it
    text = f"{behind.count(False)}/{len(behind)} nodes are up to date"
    ready = judged.find(names.READY)
    if ready is None or ready.status != FALSE:
        return false(NODES_UP_TO_DATE, now, ("RolloutInProgress", text))
    class_ready = judged.find(CLASS_READY)
    cause = "NodeClass" if class_ready is not None and class_ready.status == FALSE else "NodePool"
    return false(NODES_UP_TO_DATE, now, ("RolloutBlocked", f"{text}; {cause} is not ready"))


def _is_behind(claim: NodeClaim, pool: NodePool) -> bool:
    """Whether it was made from an earlier template that asks for something else. A hash of another version proves
    nothing; then the claim's condition says whether it had drifted before."""
    if claim.annotations.get(names.NODE_POOL_HASH_VERSION) not in (None, NODE_POOL_HASH_ALGORITHM):
        drifted = claim.condition(names.DRIFTED)
        return drifted is not None and (drifted.status, drifted.reason) == ("True", NODE_POOL_DRIFTED)
    launched = claim.is_true(names.LAUNCHED)  # before launch, labels do not yet say what it will be
    return is_hash_drifted(claim, pool) or (launched and is_requirement_drifted(claim, pool))
