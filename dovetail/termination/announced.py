"""What a Node says of its own leaving, in the conditions that Kubernetes 1.37 reserves for it.

Each phase is one write of all the conditions that it means, and none where the node says them all: what a cache shows
may lag behind the write before.
"""

from typing import Final

from dovetail.lifecycle.conditions import false
from dovetail.model.names import DRAINED
from dovetail.model.nodes import TRUE, Condition, Node

PLANNED: Final = "MaintenancePlanned"
DRAINING: Final = "DrainInProgress"


def planned(node: Node, now: float, reason: str) -> tuple[Condition, ...]:
    """A disruption has chosen it; its pods stay until their replacement is ready."""
    return _unless_said(node, _true(PLANNED, now, (reason, f"Dovetail is about to disrupt it: {reason}")))


def draining(node: Node, now: float, reason: str) -> tuple[Condition, ...]:
    """Its pods are asked to leave."""
    began = _true(DRAINING, now, ("Draining", f"Pods are being evicted: {reason}"))
    return _unless_said(node, began, false(DRAINED, now, ("Draining", "Pods are being evicted")))


def drained(node: Node, now: float) -> tuple[Condition, ...]:
    """Nothing on it is waited for any more."""
    why = ("Drained", "No pod is waited for any more")
    return _unless_said(node, _true(DRAINED, now, why), false(DRAINING, now, why))


def says_anything(node: Node) -> bool:
    """Whether it says anything of its leaving, which is then to be taken to its end."""
    return any(each.type in (PLANNED, DRAINING) and each.status == TRUE for each in node.conditions)


def undone(node: Node, now: float) -> tuple[Condition, ...]:
    """The disruption was called off, and the node stays."""
    why = ("DisruptionUndone", "The disruption was called off, and the node stays")
    said = [each.type for each in node.conditions if each.status == TRUE]
    return tuple(false(kind, now, why) for kind in (PLANNED, DRAINING, DRAINED) if kind in said)


def _true(kind: str, now: float, why: tuple[str, str]) -> Condition:
    return Condition(type=kind, status=TRUE, reason=why[0], message=why[1], changed=now)


def _unless_said(node: Node, *wanted: Condition) -> tuple[Condition, ...]:
    standing = {(each.type, each.status) for each in node.conditions}
    return () if {(each.type, each.status) for each in wanted} <= standing else wanted
