"""Which object, and at which version: what a step's outcome says of its writes.

Asked by every step. The trap avoided: another object under the same name; a claim is the one meant only if its UID is.
"""

from core.model.nodes import Node, NodeClaim
from core.model.writes import Write


def is_same(claim: NodeClaim | None, uid: str) -> bool:
    """Whether this is the claim of that UID."""
    return claim is not None and claim.uid == uid


def claim_write(claim: NodeClaim) -> Write:
    """The claim at its version."""
    return Write(kind="NodeClaim", name=claim.name, uid=claim.uid, version=_number(claim.resource_version))


def node_write(node: Node) -> Write:
    """The node at its version."""
    return Write(kind="Node", name=node.name, uid=node.uid, version=_number(node.resource_version))


def _number(version: str) -> int:
    return int(version) if version.isdigit() else 0
