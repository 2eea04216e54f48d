"""Notices about nodes that have drifted and cannot begin to leave."""

from dovetail.model.nodes import Node
from dovetail.model.values.durations import DAY
from dovetail.notices.about import notice_about
from dovetail.notices.notice import Notice


def drift_waits(node: Node, waited: float, why: str) -> Notice:
    """It has waited for long. `why`: the rule of people that keeps it; empty if there is another cause."""
    cause = why or f"`dovetail explain node {node.name}` says why"
    message = f"It has drifted and has stayed for {int(waited // DAY)} days: {cause}"
    return notice_about(node, "DriftWaits", message, "Warning", distinct=why)
