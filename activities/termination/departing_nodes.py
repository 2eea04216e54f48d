"""Which of a departure's nodes still stand.

A Node may be deleted by others in mid-drain and another be made under its name: a finalizer that was taken off by hand,
an address that the cloud gave out again. By its UID it is another node, and nothing on it is ours to move.
"""

from dovetail.messages.subjects import ClaimRef, Departure
from dovetail.model.nodes import Node, NodeClaim
from dovetail.ports.view import ClusterLookups


def nodes_left(lookups: ClusterLookups, departure: Departure) -> list[Node]:
    """The nodes that the cache has, by name and UID."""
    known = [(lookups.node(name), uid) for name, uid in zip(departure.nodes, departure.node_uids, strict=True)]
    return [node for node, uid in known if node is not None and node.uid == uid]


def belongs_to(node: Node, ref: ClaimRef, claim: NodeClaim | None) -> bool:
    """Whether the node is that claim's, as the node itself says and not the departure: by its instance or its owner."""
    by_instance = claim is not None and claim.provider_id != "" and node.provider_id == claim.provider_id
    return by_instance or any(owner.uid == ref.uid for owner in node.owners)
