"""What is wrong with claims and nodes that exist: labels that are missing, nodes that are too small.

Hydration gives objects of older Karpenters the label of their NodeClass, without which a node counts as unmanaged
(LIF-70, PLM-2). Consistency compares a node with what was launched (LIF-75 to LIF-77); it only informs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dovetail.model import names
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.resources import format_amount

CONSISTENT: Final = "ConsistentStateFound"
SHARE: Final = 0.90  # of what was launched
LOOK_SECONDS: Final = 600.0  # LIF-75


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingLabel:
    """A label of the NodeClass that an object lacks."""

    kind: str  # NodeClaim or Node
    name: str
    key: str
    value: str


def missing_class_labels(snapshot: Snapshot) -> tuple[MissingLabel, ...]:
    """LIF-70. Only claims of our classes, and the nodes of exactly one of them."""
    supported = snapshot.supported_node_classes
    claims = [c for c in snapshot.claims.values() if (c.node_class.group, c.node_class.kind) in supported]
    found = [_missing(claim.name, "NodeClaim", claim) for claim in claims if not _has_label(claim.labels, claim)]
    for node in snapshot.nodes.values():
        named = snapshot.pairing.claims_of(node)
        mine = [c for c in named if (c.node_class.group, c.node_class.kind) in supported]
        if len(mine) == 1 and not _has_label(node.labels, mine[0]):
            found.append(_missing(node.name, "Node", mine[0]))
    return tuple(sorted(found, key=lambda missing: (missing.kind, missing.name)))


def class_label(claim: NodeClaim) -> str:
    """The label that names the NodeClass of a node: <group>/<kind in lower case> (PLM-2)."""
    return f"{claim.node_class.group}/{claim.node_class.kind.lower()}"


def shape_issues(claim: NodeClaim, node: Node) -> tuple[str, ...]:
    """LIF-76: resources that were asked for and of which the node has less than nine tenths of what was launched."""
    if claim.deleting_since is not None or not claim.is_true(names.INITIALIZED_CONDITION):
        return ()
    return lacking(claim, node)


def lacking(claim: NodeClaim, node: Node) -> tuple[str, ...]:
    """The same for a node that is only just ready."""
    return tuple(
        _issue(resource, claim.capacity[resource], node.capacity.get(resource, 0))
        for resource in sorted(claim.requests)
        if claim.requests[resource]
        and claim.capacity.get(resource)
        and node.capacity.get(resource, 0) / claim.capacity[resource] < SHARE
    )


def _issue(resource: str, launched: int, found: int) -> str:
    return (
        f"expected {format_amount(resource, launched)} of resource {resource}, but found "
        f"{format_amount(resource, found)} ({100 * found / launched:.1f}% of expected)"
    )


def _has_label(labels: Mapping[str, str], claim: NodeClaim) -> bool:
    return class_label(claim) in labels


def _missing(name: str, kind: str, claim: NodeClaim) -> MissingLabel:
    return MissingLabel(kind=kind, name=name, key=class_label(claim), value=claim.node_class.name)
