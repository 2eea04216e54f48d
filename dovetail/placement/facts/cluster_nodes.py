"""What may pods land on: a node, its claim, or both, seen as one thing.

Until a node has registered, its labels and taints are those of its claim, and until it is initialised some taints do
not count (PLC-62 to PLC-66). A claim that is not launched has no size yet and is left out; it is promised to the pods
that it was planned for. A node and its claim belong together by their provider id; their names say nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dovetail.model import names
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.objects.judging import Judging, Unjudged
from dovetail.model.pools import NodePool
from dovetail.model.scheduling.taints import Taint, is_ephemeral
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.resources import Resources

# Taints of a node while its instance reboots, besides those that are temporary on each new node.
REBOOT_TAINTS: Final = frozenset({names.REBOOTING_TAINT, "node.kubernetes.io/unreachable"})


@dataclass(slots=True, kw_only=True, eq=False)  # not frozen: thousands are made, in a third of the time
class ClusterNode:
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
    """The claim's taints until registration; temporary ones do not count before initialisation (PLC-63, PLC-64)."""
    if claim is None:
        return node.taints if node is not None else ()
    taints = claim.taints if node is None or not registered else node.taints
    if initialized:
        return taints
    startup = {(taint.key, taint.effect) for taint in claim.startup_taints}
    passing = REBOOT_TAINTS if claim.is_rebooting else ()
    return tuple(t for t in taints if not is_ephemeral(t) and (t.key, t.effect) not in startup and t.key not in passing)


def _amounts(of_node: Resources | None, of_claim: Resources | None, initialized: bool) -> Resources:
    """Until initialisation the claim's amount stands in for a zero that the kubelet reports (PLC-63)."""
    if of_claim is None or (initialized and of_node is not None):
        return of_node or {}
    if of_node is None:
        return of_claim
    return {**of_node, **{name: amount for name, amount in of_claim.items() if not of_node.get(name)}}


def _joined(node: Node | None, claim: NodeClaim | None, leaving: bool) -> ClusterNode:
    managed = claim is not None
    registered = node is not None and (not managed or node.labels.get(names.REGISTERED) == "true")
    initialized = node is not None and (not managed or node.labels.get(names.INITIALIZED) == "true")
    if claim is not None and claim.is_rebooting:
        initialized = False  # its pods wait for it, as for a new node
    source = node if node is not None and registered else claim if claim is not None else node
    assert source is not None
    if node is not None and registered and initialized:  # as nearly all are
        taints, capacity, allocatable = node.taints, node.capacity, node.allocatable
    else:
        taints = _effective_taints(node, claim, registered, initialized)
        capacity = _amounts(node.capacity if node else None, claim.capacity if claim else None, initialized)
        allocatable = _amounts(node.allocatable if node else None, claim.allocatable if claim else None, initialized)
    return ClusterNode(
        name=source.name,
        node_name=node.name if node is not None else "",
        pool=source.labels.get(names.NODE_POOL, ""),
        hostname=source.labels.get(names.HOSTNAME) or source.name,
        node=node,
        claim=claim,
        labels=source.labels,
        taints=taints,
        capacity=capacity,
        allocatable=allocatable,
        managed=managed,
        initialized=initialized,
        leaving=leaving,
    )


def cluster_nodes(snapshot: Snapshot, judging: Judging | None = None) -> list[ClusterNode]:
    """All nodes that pods may land on or leave: initialised nodes first, then by name (PLC-67)."""
    pairing, judging = snapshot.pairing, judging or Judging()
    pairs: list[tuple[Node | None, NodeClaim | None]] = [(n, pairing.claim_of(n)) for n in snapshot.nodes.values()]
    pairs += [(None, claim) for claim in pairing.claims_awaiting_node()]
    found: list[ClusterNode] = []
    for node, claim in pairs:
        item = judging.judge(node or claim, "placement", _joined, node, claim, snapshot.is_leaving(node, claim))
        if not isinstance(item, Unjudged):
            found.append(item)
    found.sort(key=lambda item: (not item.initialized, item.name))
    return found


def settling(item: ClusterNode, pool: NodePool | None, now: float) -> bool:
    """Whether a node whose claim is initialised is still within its pool's consolidateAfter (PLC-91). `pool`: its
    NodePool, if it takes part in the pass; nodes of other pools are never settling."""
    if pool is None or item.claim is None or not pool.disruption.consolidate_after:
        return False
    initialized = item.claim.condition(names.INITIALIZED_CONDITION)
    if initialized is None or initialized.status != "True":
        return False
    since = item.claim.last_pod_event
    return now - (initialized.changed if since is None else since) < pool.disruption.consolidate_after
