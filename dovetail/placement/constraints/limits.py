"""May this NodePool grow by another node?

Asked before every new node (PLC-61, PLC-62, PLC-159, PLC-161). When a draft is opened, the largest type that it may be
is charged, and nothing is given back within the pass (PLQ-19), because the cloud may launch the largest.
"""

from collections.abc import Iterable

from dovetail.model.pools import InstanceType, NodePool
from dovetail.model.values.resources import NODES
from dovetail.placement.facts.cluster_nodes import ClusterNode
from dovetail.placement.facts.templates import Template
from dovetail.placement.settings import Profile


def starting_limits(pools: Iterable[NodePool], nodes: Iterable[ClusterNode]) -> dict[str, dict[str, int]]:
    """What each pool may still add to the nodes that stay (PLC-61, PLC-62)."""
    remaining = {pool.name: dict(pool.limits) for pool in pools if pool.limits}
    for item in nodes:
        left = remaining.get(item.pool, {})
        for name in left:
            left[name] -= 1 if name == NODES else item.capacity.get(name, 0)
    return remaining


class Limits:
    """What is left of the pools' limits in one pass."""

    def __init__(self, remaining: dict[str, dict[str, int]], profile: Profile) -> None:
        self._remaining = remaining
        self._is_node_limit_reached = profile.is_node_limit_reached
        self._node_charge = profile.node_limit_charge

    def nodes_exhausted(self, template: Template) -> bool:
        """Whether the pool may have no further node, however small (PLC-159)."""
        left = self._remaining.get(template.pool.name)
        return left is not None and NODES in left and self._is_node_limit_reached(left[NODES])

    def rows(self, template: Template) -> int:
        """The rows of the types that are small enough (PLC-159)."""
        left = self._remaining.get(template.pool.name)
        if left is None:
            return template.rows
        rows = template.rows
        for name, amount in left.items():
            if amount < 0:
                return 0
            if name != NODES and amount < template.capacities[name].most:
                rows &= template.capacities[name].at_most(amount)
        return rows

    def admits(self, template: Template, item: InstanceType) -> bool:
        """Whether the type is small enough, whether it has rows or not."""
        left = self._remaining.get(template.pool.name) or {}
        return all(item.capacity.get(name, 0) <= amount for name, amount in left.items() if name != NODES)

    def charge_draft(self, template: Template, rows: int) -> None:
        """Subtract the most that a draft with these rows could become (PLC-161), and one node (PLQ-1)."""
        left = self._remaining.get(template.pool.name)
        if left is None:
            return
        for name in left:
            left[name] -= self._node_charge if name == NODES else template.capacities[name].largest(rows)
