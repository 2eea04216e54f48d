"""Whether budgets let a node go that is to be marked, and whether one that was just marked is as the decision saw it.

Between the decision and the taint the kube-scheduler may have bound a pod; after the taint it cannot. Anything
unexpected removes the mark again.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from dovetail.disruption.budgets.budgets import judge_budgets, limit_for
from dovetail.messages.plans import Target
from dovetail.model.names import (
    DISRUPTION_REASON,
    DO_NOT_DISRUPT,
    INITIALIZED,
    INSTANCE_TERMINATING,
    NODE_POOL,
    OWNER,
    READY,
)
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.objects.judging import Judging, Unjudged
from dovetail.model.objects.pod_rules import is_protected, is_reschedulable, is_terminal, protection
from dovetail.model.pods import Pod
from dovetail.model.pools import NodePool
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetCount:
    """What a pool's budgets let go, and what is going. `busy`: the claims of nodes that are leaving, being rebooted or,
    unless unhealthy ones are asked for, not ready, without those that are asked for."""

    pool: NodePool
    reason: str
    nodes: int
    busy: tuple[NodeClaim, ...]
    now: float

    @property
    def left(self) -> int:
        """How many more may go."""
        return max(0, self._allowed - len(self.busy))

    @property
    def says(self) -> str:
        """Why no more may go."""
        field, allowed = f"spec.disruption.budgets of NodePool {self.pool.name}", self._allowed
        if allowed <= 0:
            return f"{field} lets no node go for {self.reason}"
        return (
            f"{field} lets {allowed} of {self.nodes} nodes go at once for {self.reason}, and {len(self.busy)} are "
            "leaving or not ready"
        )

    @property
    def _allowed(self) -> int:
        budget = next((known.budget for known in DisruptionReason if known == self.reason), self.reason)
        return limit_for(judge_budgets(self.pool.disruption.budgets, self.now), budget, self.nodes).allowed


def why_closed(pool: NodePool | None, reason: str, now: float) -> str:
    """Why the pool's budgets, as they are now, let not a single node go for that reason; empty where they let one."""
    if pool is None:
        return ""
    count = BudgetCount(pool=pool, reason=reason, nodes=1, busy=(), now=now)
    return "" if count.left else count.says


def claims_of_pool(snapshot: Snapshot, pool: str) -> list[tuple[NodeClaim, bool, bool]]:
    """Each claim of the pool, whether budgets count its node (DIS-50), and whether that is busy."""
    ours = [claim for claim in snapshot.claims.values() if claim.labels.get(NODE_POOL) == pool]
    pairs = [(claim, snapshot.pairing.node_of(claim)) for claim in ours]
    return [(claim, _is_counted(claim, node), is_busy(claim, node)) for claim, node in pairs]


def _is_counted(claim: NodeClaim, node: Node | None) -> bool:
    if node is None or claim.is_true(INSTANCE_TERMINATING):
        return False
    return claim.is_rebooting or node.labels.get(INITIALIZED) == "true"


def is_busy(claim: NodeClaim, node: Node | None) -> bool:
    """Whether its node is leaving or not ready (DIS-49)."""
    ready = node.condition(READY) if node is not None else None
    return is_going(claim) or ready is None or ready.status != "True"


def is_going(claim: NodeClaim) -> bool:
    """Whether its node is leaving, or its instance being rebooted."""
    return claim.deleting_since is not None or OWNER in claim.annotations or claim.is_rebooting


def why_not_now(claim: NodeClaim, node: Node, pods: Iterable[Pod], target: Target, now: float) -> str:
    """Why the mark must be removed, in words; empty if the node may leave for the reason that its claim says."""
    if claim.deleting_since is not None:
        return "the NodeClaim is being deleted"
    if node.deleting_since is not None:
        return "the Node is being deleted"
    if node.annotations.get(DO_NOT_DISRUPT) == "true":
        return f"the Node carries {DO_NOT_DISRUPT}"
    known, judging = frozenset(target.pods), Judging()
    waives = claim.termination_grace is not None and _is_eventual(claim)
    for pod in pods:
        why_not = judging.judge(pod, "live check", _why_pod_holds, pod, waives, known, now)
        if why_not:
            return why_not.says if isinstance(why_not, Unjudged) else why_not
    return ""


def _is_eventual(claim: NodeClaim) -> bool:
    mark = claim.condition(DISRUPTION_REASON)
    return mark is not None and any(mark.reason == each and each.is_eventual for each in DisruptionReason)


def _why_pod_holds(pod: Pod, waives: bool, known: frozenset[str], now: float) -> str:
    if is_terminal(pod):
        return ""
    if is_protected(pod, now) and not waives:
        return f"pod {pod.key} {protection(pod, now).says}"
    if is_reschedulable(pod) and pod.uid not in known:
        return f"pod {pod.key} was bound after the decision"
    return ""
