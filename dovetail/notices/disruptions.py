"""Notices while a disruption is carried out: replacements that start, nodes that are deleted (DIS-150, DIS-151).

Reasons and types are upstream's. The notices about the decision itself are in decisions.py.
"""

from collections.abc import Iterable

from dovetail.model import names
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.notices.about import notice_about
from dovetail.notices.notice import Notice


def replacing(claim: NodeClaim, label: str) -> tuple[Notice, ...]:
    """A replacement was created and is awaited; empty for a claim that replaces no node (DIS-150)."""
    reason = DisruptionReason.of_label(label)
    if reason is None:
        return ()
    return (
        notice_about(claim, "DisruptionLaunching", f"Launching NodeClaim: {reason}"),
        notice_about(claim, "DisruptionWaitingReadiness", "Waiting on readiness to continue disruption"),
    )


def disrupting(claim: NodeClaim, nodes: Iterable[Node]) -> tuple[Notice, ...]:
    """A marked claim is deleted; empty if it is deleted for another reason (DIS-151)."""
    marked = claim.condition(names.DISRUPTION_REASON)
    if marked is None or marked.status != "True":
        return ()
    notices = [notice_about(claim, "DisruptionTerminating", f"Disrupting NodeClaim: {marked.reason}")]
    notices += [notice_about(node, "DisruptionTerminating", f"Disrupting Node: {marked.reason}") for node in nodes]
    return tuple(notices)
