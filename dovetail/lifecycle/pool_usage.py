"""How much does each NodePool use?

A claim counts with what was launched for it until its node is initialised, then with what the node says (STA-7). What
is leaving, or marked to leave, counts nothing (STA-12), so that its replacement fits within the limits.
"""

from collections.abc import Mapping
from typing import Final

from dovetail.model import names
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.resources import CPU, EPHEMERAL_STORAGE, MEMORY, NODES, PODS, Resources, total

ALWAYS: Final = (CPU, MEMORY, PODS, EPHEMERAL_STORAGE, NODES)


def pool_usage(snapshot: Snapshot) -> dict[str, Resources]:
    """status.resources of every pool; zeros where it has no nodes."""
    parts = {name: _Sum() for name in snapshot.pools}
    for claim in snapshot.claims.values():
        pool = claim.labels.get(names.NODE_POOL, "")
        if pool in parts and not is_leaving(claim):
            parts[pool].add(tracked_capacity(claim, snapshot.pairing.node_of(claim)))
    for node in snapshot.nodes.values():
        pool = node.labels.get(names.NODE_POOL, "")
        if pool in parts and node.deleting_since is None and not snapshot.pairing.claims_of(node):
            parts[pool].add(node.capacity)
    return {name: amounts.result() for name, amounts in parts.items()}


class _Sum:
    """What nodes offer together. Those of one type share one object, so it is counted and multiplied at the end."""

    def __init__(self) -> None:
        self._times: dict[int, tuple[Resources, int]] = {}  # by identity, which holds because the object is held

    def add(self, capacity: Resources) -> None:
        _, times = self._times.get(id(capacity), (capacity, 0))
        self._times[id(capacity)] = capacity, times + 1

    def result(self) -> dict[str, int]:
        """Resource by resource, and how many nodes."""
        each = [{name: amount * times for name, amount in capacity.items()} for capacity, times in self._times.values()]
        nodes = sum(times for _, times in self._times.values())
        return {**total([dict.fromkeys(ALWAYS, 0), *each]), NODES: nodes}


def tracked_capacity(claim: NodeClaim, node: Node | None) -> Resources:
    """What a claim counts with: its own capacity, and the node's as far as the node says it already (STA-7)."""
    if node is None:
        return claim.capacity
    if claim.is_true(names.INITIALIZED_CONDITION):
        return node.capacity
    return {**claim.capacity, **{name: amount for name, amount in node.capacity.items() if amount}}


def is_leaving(claim: NodeClaim) -> bool:
    """STA-9: deleted, its instance terminating, or marked by a disruption."""
    return (
        claim.deleting_since is not None
        or claim.is_true(names.INSTANCE_TERMINATING)
        or names.OWNER in claim.annotations
    )


def same_usage(one: Mapping[str, int] | None, other: Mapping[str, int]) -> bool:
    """Whether two say the same; nothing written yet is not the same as zeros."""
    return one is not None and dict(one) == dict(other)
