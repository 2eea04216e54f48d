"""Notices about pods that are moved by a roll-out of their Deployment, on the Deployment and on the node."""

from typing import Final

from dovetail.model.nodes import Node
from dovetail.model.objects.workloads import Deployment
from dovetail.model.places.moves import WhyNotMoved
from dovetail.model.pods import Pod
from dovetail.notices.about import notice_about
from dovetail.notices.notice import Notice


def move_begun(deployment: Deployment, node: Node) -> Notice:
    """Its template was changed."""
    text = f"Rolled out anew, so that another pod is available before the one on node {node.name} goes"
    return notice_about(deployment, "MoveBegun", text)


def moved(deployment: Deployment, node: Node) -> Notice:
    """The new pod is available and the old one gone."""
    return notice_about(deployment, "Moved", f"Its pod has left node {node.name}")


UNDONE: Final = "somebody else has put the template back, and the old pod stays"
_NOT_AVAILABLE: Final = "the new pod did not become available, so the roll-out was taken back and the old pod stays"


def move_failed(deployment: Deployment, node: Node, why: str = _NOT_AVAILABLE) -> tuple[Notice, Notice]:
    """The move was undone."""
    about = notice_about(deployment, "MoveFailed", f"Not moved from node {node.name}: {why}", "Warning")
    return about, notice_about(node, "MoveFailed", f"{deployment.key}: {why}", "Warning", distinct=deployment.uid)


def move_called_off(deployment: Deployment, node: Node) -> Notice:
    """The disruption of its node was called off before the move was over."""
    text = f"Not moved from node {node.name}: its disruption was called off; the old pod stays"
    return notice_about(deployment, "MoveCalledOff", text)


def move_impossible(pod: Pod, why: WhyNotMoved) -> Notice:
    """It is evicted as usual, although its owner asks for a move."""
    return notice_about(pod, "MoveImpossible", f"Evicted, not moved: {why.words}", "Warning", distinct=pod.uid)
