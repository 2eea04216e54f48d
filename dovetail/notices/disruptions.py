"""Notices while a disruption is carried out: replacements that start, nodes that are deleted (DIS-150, DIS-151).

Reasons and types are upstream's. The notices about the decision itself are in decisions.py.
"""

from collections.abc import Iterable

from dovetail.model import names
from dovetail.model.disruption_reasons import DisruptionReason
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.notice import Notice


def replacing(claim: NodeClaim, label: str) -> tuple[Notice, ...]:
    """A replacement was created and is waited for; nothing for a claim that replaces no node (DIS-150)."""
    reason = DisruptionReason.of_label(label)
    if reason is None:
        return ()
    return (
        _of_claim(claim, "DisruptionLaunching", f"Launching NodeClaim: {reason}"),
        _of_claim(claim, "DisruptionWaitingReadiness", "Waiting on readiness to continue disruption"),
    )


def disrupting(claim: NodeClaim, nodes: Iterable[Node]) -> tuple[Notice, ...]:
    """A marked claim is deleted; nothing for one that is deleted for another reason (DIS-151)."""
    marked = claim.condition(names.DISRUPTION_REASON)
    if marked is None or marked.status != "True":
        return ()
    notices = [_of_claim(claim, "DisruptionTerminating", f"Disrupting NodeClaim: {marked.reason}")]
    for node in nodes:
        text = f"Disrupting Node: {marked.reason}"
        notices.append(Notice(kind="Node", name=node.name, uid=node.uid, reason="DisruptionTerminating", message=text))
    return tuple(notices)


def _of_claim(claim: NodeClaim, reason: str, message: str) -> Notice:
    return Notice(kind="NodeClaim", name=claim.name, uid=claim.uid, reason=reason, message=message)
