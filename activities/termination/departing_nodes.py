"""Which of a departure's nodes still exist.

Others may delete a Node in mid-drain, and another may be created with its name: after a finalizer was removed by hand,
or when the cloud reuses an address. Its UID shows that it is another node, and its pods are not ours to evict.
"""

from dovetail.messages.subjects import ClaimRef, Departure
from dovetail.model.nodes import Node, NodeClaim
from dovetail.ports.objects import Nodes
from dovetail.ports.view import ClusterLookups


def nodes_left(lookups: ClusterLookups, departure: Departure) -> list[Node]:
    """The nodes that the cache has, by name and UID."""
    known = [(lookups.node(name), uid) for name, uid in zip(departure.nodes, departure.node_uids, strict=True)]
    return [node for node, uid in known if node is not None and node.uid == uid]


async def nodes_there(lookups: ClusterLookups, nodes: Nodes, departure: Departure) -> list[Node]:
    """The nodes that exist. One that the cache lacks is read live before it counts as gone, with its pods and volumes:
    the cache has not shown it yet, or nobody can read it (NotReadable)."""
    found = []
    for name, uid in zip(departure.nodes, departure.node_uids, strict=True):
        cached = lookups.node(name)
        node = cached if cached is not None and cached.uid == uid else await nodes.read(name)
        if node is not None and node.uid == uid:
            found.append(node)
    return found


def belongs_to(node: Node, ref: ClaimRef, claim: NodeClaim | None) -> bool:
    """Whether the node is that claim's, whatever the departure says: by its instance or its owner, or by the name that
    the claim says, while it names no instance yet."""
    by_instance = claim is not None and claim.provider_id != "" and node.provider_id == claim.provider_id
    by_name = claim is not None and node.provider_id == "" and node.name == claim.node_name
    return by_instance or by_name or any(owner.uid == ref.uid for owner in node.owners)
