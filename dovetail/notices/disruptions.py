"""What people are told while a disruption is carried out: replacements that start, nodes that go (D-150, D-151).

Reasons and senses are upstream's. What led to the decision is told elsewhere, when it is made.
"""

from collections.abc import Iterable

from dovetail.model import names
from dovetail.model.disruption_reasons import DisruptionReason
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.notice import Notice


def replacing(claim: NodeClaim, label: str) -> tuple[Notice, ...]:
    """A replacement was created and is waited for; nothing for a claim that replaces no node (D-150)."""
    reason = DisruptionReason.of_label(label)
    if reason is None:
        return ()
    return (
        _of_claim(claim, "DisruptionLaunching", f"Launching NodeClaim: {reason}"),
        _of_claim(claim, "DisruptionWaitingReadiness", "Waiting on readiness to continue disruption"),
    )


def disrupting(claim: NodeClaim, nodes: Iterable[Node]) -> tuple[Notice, ...]:
    """D-151: a marked claim is deleted; nothing for one that goes for another reason."""
    marked = claim.condition(names.DISRUPTION_REASON)
    if marked is None or marked.status != "True":
        return ()
    told = [_of_claim(claim, "DisruptionTerminating", f"Disrupting NodeClaim: {marked.reason}")]
    for node in nodes:
        text = f"Disrupting Node: {marked.reason}"
        told.append(Notice(kind="Node", name=node.name, uid=node.uid, reason="DisruptionTerminating", message=text))
    return tuple(told)


def _of_claim(claim: NodeClaim, reason: str, message: str) -> Notice:
    return Notice(kind="NodeClaim", name=claim.name, uid=claim.uid, reason=reason, message=message)
