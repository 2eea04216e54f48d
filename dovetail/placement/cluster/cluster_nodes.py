"""What stands in the cluster: a node, its claim, or both, seen as one thing that pods may land on.

Asked once per snapshot. Until a node has registered, its claim speaks for it, and until it is initialised some taints
do not count (S-62 to S-66). A claim that is not launched has no size and is left out (its pods are spoken for).
The trap avoided: joining a node and its claim by name.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from dovetail.model import names
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.resources import Resources
from dovetail.model.snapshot import Snapshot
from dovetail.model.taints import Taint, is_ephemeral


@dataclass(slots=True, kw_only=True, eq=False)  # not frozen: thousands are made, each at a third of the price
class ClusterNode:
    """One node of the cluster as placement sees it."""

    name: str
    node_name: str  # what pods bind to, empty while there is no Node
    pool: str  # the NodePool it belongs to, if any
    hostname: str
    node: Node | None
    claim: NodeClaim | None
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    capacity: Resources
    allocatable: Resources
    managed: bool
    initialized: bool
    leaving: bool


def _effective_taints(
    node: Node | None, claim: NodeClaim | None, registered: bool, initialized: bool
) -> tuple[Taint, ...]:
    """S-63, S-64: the claim's taints until registration; what goes away by itself is ignored until initialisation."""
    if claim is None:
        return node.taints if node is not None else ()
    taints = claim.taints if node is None or not registered else node.taints
    if initialized:
        return taints
    startup = {(taint.key, taint.effect) for taint in claim.startup_taints}
    return tuple(t for t in taints if not is_ephemeral(t) and (t.key, t.effect) not in startup)


def _amounts(of_node: Resources | None, of_claim: Resources | None, initialized: bool) -> Resources:
    """S-63: until initialisation a zero that the kubelet reports is replaced by what the claim promises."""
    if of_claim is None or (initialized and of_node is not None):
        return of_node or {}
    if of_node is None:
        return of_claim
    return {**of_node, **{name: amount for name, amount in of_claim.items() if not of_node.get(name)}}


def _joined(node: Node | None, claim: NodeClaim | None, leaving: bool) -> ClusterNode:
    managed = claim is not None
    registered = node is not None and (not managed or node.labels.get(names.REGISTERED) == "true")
    initialized = node is not None and (not managed or node.labels.get(names.INITIALIZED) == "true")
    speaker = node if node is not None and registered else claim if claim is not None else node
    assert speaker is not None
    deleting = claim.deleting_since is not None if claim is not None else False
    if node is not None and registered and initialized:  # nearly all: the node speaks for itself
        taints, capacity, allocatable = node.taints, node.capacity, node.allocatable
    else:
        taints = _effective_taints(node, claim, registered, initialized)
        capacity = _amounts(node.capacity if node else None, claim.capacity if claim else None, initialized)
        allocatable = _amounts(node.allocatable if node else None, claim.allocatable if claim else None, initialized)
    return ClusterNode(
        name=speaker.name,
        node_name=node.name if node is not None else "",
        pool=speaker.labels.get(names.NODE_POOL, ""),
        hostname=speaker.labels.get(names.HOSTNAME) or speaker.name,
        node=node,
        claim=claim,
        labels=speaker.labels,
        taints=taints,
        capacity=capacity,
        allocatable=allocatable,
        managed=managed,
        initialized=initialized,
        leaving=leaving or deleting or (node is not None and node.deleting_since is not None),
    )


def cluster_nodes(snapshot: Snapshot) -> list[ClusterNode]:
    """Everything that pods may land on or leave, initialised nodes first, then by name (S-67)."""
    pairing = snapshot.pairing
    found: list[ClusterNode] = []
    for node in snapshot.nodes.values():
        claim = pairing.claim_of(node)
        found.append(_joined(node, claim, claim is not None and claim.name in snapshot.disrupting))
    found += [_joined(None, claim, claim.name in snapshot.disrupting) for claim in pairing.claims_awaiting_node()]
    found.sort(key=lambda item: (not item.initialized, item.name))
    return found


def settling(item: ClusterNode, snapshot: Snapshot) -> bool:
    """S-91: whether an initialised node is still inside its pool's consolidateAfter window."""
    pool = snapshot.pools.get(item.pool)
    if pool is None or item.claim is None or not item.initialized or not pool.disruption.consolidate_after:
        return False
    since = item.claim.last_pod_event
    if since is None:
        condition = item.claim.condition(names.INITIALIZED_CONDITION)
        if condition is None:
            return False
        since = condition.changed
    return snapshot.now - since < pool.disruption.consolidate_after
