"""How many nodes are disrupted at a moment, and how many may be: counted afresh, not by the code that decides.

Pools here have plain budgets without windows.
"""

from collections.abc import Mapping

from dovetail.model import names
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.pools import NodePool
from dovetail.model.snapshot import Snapshot
from tests.properties.marks.lagging import Cluster


def tainted(cluster: Cluster) -> frozenset[str]:
    return frozenset(n.name for n in cluster.nodes.values() if is_tainted(n))


def is_tainted(node: Node) -> bool:
    return any(taint.key == names.DISRUPTED_TAINT for taint in node.taints)


def is_ready(node: Node) -> bool:
    return any(c.type == "Ready" and c.status == "True" for c in node.conditions)


def disrupted(nodes: Mapping[str, Node], claims: Mapping[str, NodeClaim]) -> set[str]:
    """The nodes that are not ready, leaving or marked, whatever the reason; each once (DIS-51)."""
    by_node = {claim.node_name: claim for claim in claims.values() if claim.node_name}
    return {
        node.name
        for node in nodes.values()
        if node.name in by_node
        and (not is_ready(node) or is_tainted(node) or by_node[node.name].deleting_since is not None)
    }


def allowed(pool: NodePool, reason: str, nodes: int) -> int:
    """How many nodes the budgets permit (DIS-52, DIS-53)."""
    amounts = [
        -(-int(b.nodes[:-1]) * nodes // 100) if b.nodes.endswith("%") else int(b.nodes)
        for b in pool.disruption.budgets
        if b.reasons is None or reason in b.reasons
    ]
    return min(amounts, default=nodes)


def excess(cluster: Cluster, reason: str) -> int:
    """How many more nodes are disrupted than the budget of this moment permits."""
    counted = sum(1 for c in cluster.claims.values() if c.node_name in cluster.nodes)
    return len(disrupted(cluster.nodes, cluster.claims)) - allowed(cluster.pools["a"], reason, counted)


def excused(cluster: Cluster, seen: Snapshot, reason: str, deleted: set[str]) -> int:
    """How many were disrupted, or taken from the budget, by others since the cluster was seen like that."""
    before = disrupted(seen.nodes, seen.claims)
    failed = {n.name for n in cluster.nodes.values() if not is_ready(n)} - before
    known = {**seen.claims, **cluster.claims}
    removed = {c.node_name for c in known.values() if c.name in deleted} - before - failed
    counted = sum(1 for c in cluster.claims.values() if c.node_name in cluster.nodes)
    lowered = allowed(seen.pools["a"], reason, counted) - allowed(cluster.pools["a"], reason, counted)
    return len(failed) + len(removed) + max(0, lowered)
