"""May this NodePool grow by another node?

Asked before every new claim (S-61, S-62, S-159, S-161). A claim is charged with the largest type that it may still
become, and nothing is given back within the pass (Q-19): the cloud may launch the largest.
"""

from collections.abc import Iterable

from dovetail.model.pools import NodePool
from dovetail.model.resources import NODES
from dovetail.placement.cluster.cluster_nodes import ClusterNode
from dovetail.placement.cluster.templates import Template


def starting_limits(pools: Iterable[NodePool], nodes: Iterable[ClusterNode]) -> dict[str, dict[str, int]]:
    """S-61, S-62: what each pool may still add, after the nodes that stay."""
    remaining = {pool.name: dict(pool.limits) for pool in pools if pool.limits}
    for item in nodes:
        left = remaining.get(item.pool, {})
        for name in left:
            left[name] -= 1 if name == NODES else item.capacity.get(name, 0)
    return remaining


class Limits:
    """What is left of the pools' limits in one pass."""

    def __init__(self, remaining: dict[str, dict[str, int]], count_nodes: bool) -> None:
        self._remaining = remaining
        self._count_nodes = count_nodes

    def nodes_exhausted(self, template: Template) -> bool:
        """S-159: no further node, however small."""
        left = self._remaining.get(template.pool.name)
        if left is None or NODES not in left:
            return False
        return left[NODES] <= 0 if self._count_nodes else left[NODES] == 0

    def rows(self, template: Template) -> int:
        """S-159: the rows of the types that are small enough."""
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

    def charge_claim(self, template: Template, rows: int) -> None:
        """S-161: take off the most that the claim could become; Q-1: and one node, where that is mended."""
        left = self._remaining.get(template.pool.name)
        if left is None:
            return
        for name in left:
            if name != NODES:
                left[name] -= template.capacities[name].largest(rows)
            elif self._count_nodes:
                left[name] -= 1
