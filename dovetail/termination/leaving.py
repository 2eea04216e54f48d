"""What does a Node carry while it leaves, and which finalizers stay when it is released?

The taint and the label that takes it out of external load balancers are set in one change, before any eviction (TRM-7).
"""

from collections.abc import Iterable
from typing import Final

from dovetail.model.names import DISRUPTED_TAINT, DISRUPTION_REASON, DRAINED, TERMINATION_FINALIZER
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.scheduling.taints import Taint

EXCLUDE_LABEL: Final = "node.kubernetes.io/exclude-from-external-load-balancers"
LEAVING_TAINT: Final = Taint(key=DISRUPTED_TAINT, effect="NoSchedule")


def leaving_labels(node: Node) -> dict[str, str]:
    """The label to set; none where the node has it."""
    return {} if node.labels.get(EXCLUDE_LABEL) == "karpenter" else {EXCLUDE_LABEL: "karpenter"}


def leaving_taints(node: Node) -> tuple[Taint, ...] | None:
    """All taints with ours among them; None where nothing changes. One of that key with another effect is dropped."""
    if any((taint.key, taint.effect) == (LEAVING_TAINT.key, LEAVING_TAINT.effect) for taint in node.taints):
        return None
    return (*(taint for taint in node.taints if taint.key != DISRUPTED_TAINT), LEAVING_TAINT)


def tainted_since(claim: NodeClaim, nodes: Iterable[Node], now: float) -> float:
    """TRM-17: since when no pod is sent to the nodes any more. A disruption taints long before the deletion, and says
    so on the claim afterwards; so does an earlier try of this departure."""
    if any(leaving_taints(node) is not None for node in nodes):
        return now
    said = (claim.condition(DISRUPTION_REASON), claim.condition(DRAINED))
    return min((c.changed for c in said if c is not None and c.status != "False" and c.changed), default=now)


def finalizers_left(finalizers: tuple[str, ...]) -> tuple[str, ...] | None:
    """The finalizers without ours; those of others stay (TRM-11). None where ours is not there."""
    rest = tuple(name for name in finalizers if name != TERMINATION_FINALIZER)
    return None if rest == finalizers else rest


def held_words(nodes: Iterable[Node]) -> str:
    """Who keeps leaving Nodes that we have let go, for people: the finalizers of others. Empty where nobody does."""
    held = [
        node for node in nodes if node.deleting_since and node.finalizers and finalizers_left(node.finalizers) is None
    ]
    return "; ".join(f"Node {node.name} is held by {_named(node.finalizers)}" for node in held)


def _named(finalizers: tuple[str, ...]) -> str:
    return f"the finalizer{'s' if len(finalizers) > 1 else ''} {', '.join(finalizers)}"
