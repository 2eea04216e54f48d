"""Which node and which claim belong together.

They meet by providerID, never by name: the names may differ, a claim exists before its node does, and objects without a
providerID meet nothing (P-3). A node and a claim form a pair, one to one. Two claims that name one instance are a
fault, and so are two nodes; the oldest of them is then the pair's, and the first by name of equally old ones. The
oldest claim is the one for which the instance was launched. Any later one is left without a node, so that nothing
counts the instance twice; what must not act at all on such an instance asks for all of its claims.
"""

from collections.abc import Iterable
from typing import Generic, TypeVar

from dovetail.model.nodes import Node, NodeClaim

T = TypeVar("T", Node, NodeClaim)


class _ByInstance(Generic[T]):
    """Objects by providerID, oldest first. A dictionary of lists would cost a list for each of thousands."""

    __slots__ = ("_first", "_several")

    def __init__(self, objects: Iterable[T]) -> None:
        self._first: dict[str, T] = {}
        self._several: dict[str, list[T]] = {}
        for found in objects:
            if found.provider_id and (known := self._first.setdefault(found.provider_id, found)) is not found:
                self._several.setdefault(found.provider_id, [known]).append(found)
        for provider_id, same in self._several.items():
            same.sort(key=lambda one: (one.created, one.name))
            self._first[provider_id] = same[0]

    def first(self, provider_id: str) -> T | None:
        """The oldest object of that instance."""
        return self._first.get(provider_id)

    def firsts(self) -> Iterable[T]:
        """The oldest object of each instance."""
        return self._first.values()

    def every(self, provider_id: str) -> tuple[T, ...]:
        """All objects of that instance, oldest first."""
        first = self._first.get(provider_id)
        if first is None:
            return ()
        return tuple(self._several.get(provider_id, (first,)))


class Pairing:
    """The nodes and claims of one snapshot, joined."""

    __slots__ = ("_claims", "_nodes")

    def __init__(self, nodes: Iterable[Node], claims: Iterable[NodeClaim]) -> None:
        self._nodes = _ByInstance(nodes)
        self._claims = _ByInstance(claims)

    def claim_of(self, node: Node) -> NodeClaim | None:
        """The claim that forms a pair with the node."""
        first = self._nodes.first(node.provider_id)
        return self._claims.first(node.provider_id) if first is not None and first.name == node.name else None

    def node_of(self, claim: NodeClaim) -> Node | None:
        """The node that forms a pair with the claim."""
        first = self._claims.first(claim.provider_id)
        return self._nodes.first(claim.provider_id) if first is not None and first.name == claim.name else None

    def claims_awaiting_node(self) -> list[NodeClaim]:
        """The claims whose instance has no node yet, one for each instance."""
        return [claim for claim in self._claims.firsts() if self._nodes.first(claim.provider_id) is None]

    def claims_of(self, node: Node) -> tuple[NodeClaim, ...]:
        """Every claim that names the node's instance, oldest first."""
        return self._claims.every(node.provider_id)

    def nodes_of(self, claim: NodeClaim) -> tuple[Node, ...]:
        """Every node of the claim's instance, oldest first."""
        return self._nodes.every(claim.provider_id)
