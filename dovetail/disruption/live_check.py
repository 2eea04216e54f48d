"""Whether a node that was just marked is still as the decision saw it.

Between the decision and the taint the kube-scheduler may have bound a pod; after the taint it cannot. Anything
unexpected removes the mark again.
"""

from collections.abc import Iterable

from dovetail.disruption.budgets.budgets import judge_budgets, limit_for
from dovetail.messages.plans import Target
from dovetail.model.names import DO_NOT_DISRUPT
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.objects.judging import Judging, Unjudged
from dovetail.model.objects.pod_rules import is_protected, is_reschedulable, is_terminal, protection
from dovetail.model.pods import Pod
from dovetail.model.pools import NodePool
from dovetail.model.reasons.disruption_reasons import DisruptionReason


def why_closed(pool: NodePool | None, reason: str, now: float) -> str:
    """Why the pool's budgets, as they are now, let not a single node go for that reason; empty where they let one. Of
    several nodes that the decision counted none is counted again."""
    if pool is None:
        return ""
    budget = next((known.budget for known in DisruptionReason if known == reason), reason)
    limit = limit_for(judge_budgets(pool.disruption.budgets, now), budget, 1)
    return "" if limit.allowed > 0 else f"spec.disruption.budgets of NodePool {pool.name} lets no node go for {reason}"


def why_not_now(claim: NodeClaim, node: Node, pods: Iterable[Pod], target: Target, now: float) -> str:
    """Why the mark must be removed, in words; empty if the node may leave."""
    if claim.deleting_since is not None:
        return "the NodeClaim is being deleted"
    if node.deleting_since is not None:
        return "the Node is being deleted"
    if node.annotations.get(DO_NOT_DISRUPT) == "true":
        return f"the Node carries {DO_NOT_DISRUPT}"
    known, judging = frozenset(target.pods), Judging()
    for pod in pods:
        why_not = judging.judge(pod, "live check", _why_pod_holds, pod, claim, known, now)
        if why_not:
            return why_not.says if isinstance(why_not, Unjudged) else why_not
    return ""


def _why_pod_holds(pod: Pod, claim: NodeClaim, known: frozenset[str], now: float) -> str:
    if is_terminal(pod):
        return ""
    if is_protected(pod, now) and claim.termination_grace is None:
        return f"pod {pod.key} {protection(pod, now).says}"
    if is_reschedulable(pod) and pod.uid not in known:
        return f"pod {pod.key} was bound after the decision"
    return ""
