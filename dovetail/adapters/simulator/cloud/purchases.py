"""What to buy for a claim: the offers that satisfy it, cheapest first, frozen as a short text.

Chosen by the claim's own words (requirements, requests, NodeClass), with none of the product's engine, so that the
cloud does not share its mistakes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import orjson

from dovetail.adapters.simulator.api_server.selecting import satisfies
from dovetail.adapters.simulator.cloud.catalogue import Offer
from dovetail.adapters.simulator.cloud.node_classes import NodeClass
from dovetail.adapters.simulator.cloud.offers import Shelf
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.resources import fits, total

# W-81: a launch names at most 60 ways to buy.
MAX_OFFERS: Final = 60

Pool = tuple[str, str, str]  # instance type, zone, capacity type


@dataclass(frozen=True, slots=True, kw_only=True)
class Purchase:
    """A frozen request: the ways to buy in the order in which they are tried, and the class as it then was."""

    node_class: str
    stamps: tuple[tuple[str, str], ...]
    image: str
    pools: tuple[Pool, ...]


def frozen(purchase: Purchase) -> str:
    """The request as text, the same for the same purchase."""
    body = {
        "class": purchase.node_class,
        "image": purchase.image,
        "pools": [list(pool) for pool in purchase.pools],
        "stamps": [list(stamp) for stamp in purchase.stamps],
    }
    return orjson.dumps(body).decode()


def thawed(request: str) -> Purchase:
    """The purchase that a text stands for."""
    body = orjson.loads(request)
    return Purchase(
        node_class=body["class"],
        stamps=tuple((s[0], s[1]) for s in body["stamps"]),
        image=body["image"],
        pools=tuple((p[0], p[1], p[2]) for p in body["pools"]),
    )


def purchase_for(claim: NodeClaim, node_class: NodeClass, shelf: Shelf, short: Iterable[Pool]) -> Purchase:
    """The cheapest offers for a claim that are not known to be short; none at all where nothing fits."""
    missing = frozenset(short)
    pools = [offer.pool for offer in suitable(claim, node_class, shelf) if offer.pool not in missing]
    return Purchase(
        node_class=node_class.name,
        stamps=node_class.stamps,
        image=node_class.images[0] if node_class.images else "",
        pools=tuple(pools[:MAX_OFFERS]),
    )


def suitable(claim: NodeClaim, node_class: NodeClass, shelf: Shelf) -> list[Offer]:
    """Every offer that a claim and its class allow and that has room for what the claim asks, cheapest first."""
    wanted = total((claim.requests, {"pods": 0}))
    roomy = {name: machine for name, machine in shelf.machines.items() if fits(wanted, machine.allocatable)}
    return [
        offer
        for offer in shelf.offers
        if offer.instance_type in roomy
        and node_class.allows(offer, roomy[offer.instance_type])
        and _allowed(claim, shelf.labels_of(offer))
    ]


def _allowed(claim: NodeClaim, labels: Mapping[str, str]) -> bool:
    """Labels that no machine has by itself are the claim's own to give, so they decide nothing here."""
    return all(
        satisfies(labels, e.key, e.operator, e.values)
        for e in claim.requirements
        if e.key in labels or e.key == names.WINDOWS_BUILD
    )
