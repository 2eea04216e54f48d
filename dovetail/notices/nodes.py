"""Notices about nodes that leave. Reasons and types are upstream's (EVT-3 to EVT-5, EVT-12)."""

from dataclasses import replace
from typing import Final

from dovetail.model import names
from dovetail.model.nodes import Node
from dovetail.notices.about import notice_about
from dovetail.notices.notice import Notice

NAMED: Final = 5  # attachments that are named (EVT-4)


def failed_draining(node: Node, cause: str) -> Notice:
    """Pods are still on the node (EVT-3)."""
    return notice_about(node, "FailedDraining", f"Failed to drain node, {cause}", "Warning")


def awaiting_detachment(node: Node, attachments: tuple[str, ...]) -> Notice:
    """Volumes are still attached (EVT-4)."""
    more = len(attachments) - NAMED
    tail = f" and {more} other(s)" if more > 0 else ""
    text = f"Waiting for volume attachments to be deleted: {', '.join(attachments[:NAMED])}{tail}"
    return notice_about(node, "AwaitingVolumeDetachment", text)


def node_deadline(node: Node, timestamp: str) -> Notice:
    """Until when its pods may stay (EVT-5)."""
    return notice_about(node, "TerminationGracePeriodExpiring", f"All pods will be deleted by {timestamp}", "Warning")


def repair_blocked(node: Node, where: str) -> Notice:
    """Why an unhealthy node is not replaced (EVT-12): the nodepool or cluster that `where` names has too many, or, if
    `where` is empty, an annotation keeps the node."""
    if not where:
        text = f'Repair is blocked through the "{names.DO_NOT_REPAIR}" annotation'
        return replace(notice_about(node, "DisruptionBlocked", text), window=900.0)
    text = f"More than 20% nodes are unhealthy in the {where}"
    return replace(notice_about(node, "NodeRepairBlocked", text, "Warning"), window=900.0)
