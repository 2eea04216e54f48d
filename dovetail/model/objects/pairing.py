"""Which node and which claim belong together.

They are matched by providerID, never by name: the names may differ, a claim exists before its node does, and objects
without a providerID match nothing (PLM-3). A node and a claim form a pair, one to one. Two claims that name one
instance are a fault, and so are two nodes; then the oldest belongs to the pair, and of equally old ones the first by
name. The oldest claim is the one for which the instance was launched. Any later one is left without a node, so that
nothing counts the instance twice; code that must not act on such an instance at all asks for all of its claims.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Generic, TypeVar

from dovetail.model.nodes import Node, NodeClaim

T = TypeVar("T", Node, NodeClaim)


class _ByInstance(Generic[T]):
    """Objects by providerID. A list of them, oldest first, exists only if several name one instance."""

    __slots__ = ("first", "several")

    def __init__(self, objects: Iterable[T]) -> None:
        named = [one for one in objects if one.provider_id]
        self.first: dict[str, T] = {one.provider_id: one for one in named}
        self.several: dict[str, list[T]] = {}
        if len(self.first) < len(named):
            self._find_several(named)

    def _find_several(self, named: list[T]) -> None:
        counts = Counter(one.provider_id for one in named)
        for one in sorted(named, key=lambda one: (one.created, one.name)):
            if counts[one.provider_id] > 1:
                self.several.setdefault(one.provider_id, []).append(one)
        self.first.update({provider_id: same[0] for provider_id, same in self.several.items()})

    def is_first(self, one: T) -> bool:
        """Whether no other object of its instance comes before this one."""
        same = self.several.get(one.provider_id)
        return same is None or same[0].name == one.name

    def every(self, provider_id: str) -> tuple[T, ...]:
        """All objects of that instance, oldest first."""
        if provider_id not in self.first:
            return ()
        return tuple(self.several.get(provider_id, (self.first[provider_id],)))


class Pairing:
    """The nodes and claims of one snapshot, joined."""

    __slots__ = ("_claims", "_nodes")

    def __init__(self, nodes: Iterable[Node], claims: Iterable[NodeClaim]) -> None:
        self._nodes = _ByInstance(nodes)
        self._claims = _ByInstance(claims)

    def claim_of(self, node: Node) -> NodeClaim | None:
        return self._claims.first.get(node.provider_id) if self._nodes.is_first(node) else None

    def node_of(self, claim: NodeClaim) -> Node | None:
        return self._nodes.first.get(claim.provider_id) if self._claims.is_first(claim) else None

    def claims_awaiting_node(self) -> list[NodeClaim]:
        """The claims whose instance has no node yet, one for each instance."""
        known = self._nodes.first
        return [claim for provider_id, claim in self._claims.first.items() if provider_id not in known]

    def claims_of(self, node: Node) -> tuple[NodeClaim, ...]:
        """Every claim that names the node's instance, oldest first."""
        return self._claims.every(node.provider_id)

    def nodes_of(self, claim: NodeClaim) -> tuple[Node, ...]:
        """Every node of the claim's instance, oldest first."""
        return self._nodes.every(claim.provider_id)
