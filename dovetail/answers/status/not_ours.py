"""Nodes without a NodeClaim: from a managed node group, from Fargate, or made by hand. They are shown and left alone.

Their price comes from our NodePools' catalogues, if one lists the type in that zone. A node whose labels do not say
spot counts as on-demand.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from dovetail.disruption.nodes.costs import node_price
from dovetail.model import names
from dovetail.model.nodes import Node
from dovetail.model.pools import InstanceType
from dovetail.model.snapshot import Snapshot

# The name, under any domain, of the labels that other tools use for how a node is paid for.
_MARKET: Final = "/capacityType"

Types = Mapping[str, Mapping[str, InstanceType]]  # by pool, then by name


def nodes_without_claim(snapshot: Snapshot) -> Iterator[Node]:
    """The nodes that no NodeClaim names, and that share no claim's instance."""
    named = {claim.node_name for claim in snapshot.claims.values()}
    for name, node in snapshot.nodes.items():
        if name not in named and not snapshot.pairing.claims_of(node):
            yield node


def count_not_ours(snapshot: Snapshot) -> int:
    """The nodes without a claim, and those of another provider's claims."""
    others = sum(
        1 for c in snapshot.claims.values() if c.node_name in snapshot.nodes and not snapshot.is_ours(c.node_class)
    )
    return others + sum(1 for _ in nodes_without_claim(snapshot))


def market_of(node: Node) -> str:
    """Its capacity type, as Karpenter writes it; empty if no label gives it."""
    by_others = (value for key, value in sorted(node.labels.items()) if key.endswith(_MARKET))
    said = node.labels.get(names.CAPACITY_TYPE) or next(by_others, "")
    return said.lower().replace("_", "-")


def price_of_node(node: Node, types: Types) -> float | None:
    """The node's price by a catalogue; None if none lists it."""
    kind, zone = node.labels.get(names.INSTANCE_TYPE, ""), node.labels.get(names.ZONE, "")
    market = market_of(node) or names.CAPACITY_ON_DEMAND
    prices = (node_price(known.get(kind), zone, market) for known in types.values())
    return next((price for price in prices if price), None)
