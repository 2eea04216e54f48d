"""What to launch for a claim: the offerings that satisfy it, cheapest first, as a short text.

Chosen from the claim itself (requirements, requests, NodeClass), without the product's engine, so that the cloud does
not share its mistakes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import orjson

from dovetail.adapters.simulator.api_server.selecting import satisfies
from dovetail.adapters.simulator.cloud.catalogue import WorldCatalogue
from dovetail.adapters.simulator.cloud.default_types import CapacityPool, SimulatedOffering
from dovetail.adapters.simulator.cloud.node_classes import NodeClass
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.stable_images import BACK, images_of, pin_of
from dovetail.model.values.resources import fits, total

# AWS-81: a launch names at most 60 offerings.
MAX_OFFERINGS: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedLaunch:
    """The capacity pools in the order in which they are tried, and the class as it was then."""

    node_class: str
    stamps: tuple[tuple[str, str], ...]
    image: str
    pools: tuple[CapacityPool, ...]


def as_text(request: EmbeddedLaunch) -> str:
    """The text of a request; equal requests have equal texts."""
    body = {
        "class": request.node_class,
        "image": request.image,
        "pools": [list(pool) for pool in request.pools],
        "stamps": [list(stamp) for stamp in request.stamps],
    }
    return orjson.dumps(body).decode()


def from_text(text: str) -> EmbeddedLaunch:
    """The request that a text stands for."""
    body = orjson.loads(text)
    return EmbeddedLaunch(
        node_class=body["class"],
        stamps=tuple((s[0], s[1]) for s in body["stamps"]),
        image=body["image"],
        pools=tuple(CapacityPool(*pool) for pool in body["pools"]),
    )


def launch_request_for(
    claim: NodeClaim, node_class: NodeClass, on_offer: Iterable[SimulatedOffering], short: Iterable[CapacityPool]
) -> EmbeddedLaunch:
    """The cheapest of the suitable offerings without a known shortage; none if all are short."""
    missing = frozenset(short)
    pools = [each.pool for each in on_offer if each.pool not in missing]
    return EmbeddedLaunch(
        node_class=node_class.name,
        stamps=node_class.stamps,
        image=_image(claim, node_class),
        pools=tuple(pools[:MAX_OFFERINGS]),
    )


def _image(claim: NodeClaim, node_class: NodeClass) -> str:
    """The one that the claim names, as long as it exists; a claim that accepts no other gets none."""
    wanted = images_of(claim.annotations)
    if wanted and wanted[0].id not in node_class.gone:
        return wanted[0].id
    return node_class.images[0] if node_class.images and pin_of(claim.annotations).how != BACK else ""


def suitable(claim: NodeClaim, node_class: NodeClass, catalogue: WorldCatalogue) -> list[SimulatedOffering]:
    """Every offering that a claim and its class allow and that has room for what the claim requests, cheapest first."""
    wanted = total((claim.requests, {"pods": 0}))
    roomy = {name: each for name, each in catalogue.types.items() if fits(wanted, each.allocatable)}
    return [
        offering
        for offering in catalogue.offerings
        if offering.pool.instance_type in roomy
        and node_class.allows(offering.pool.zone, roomy[offering.pool.instance_type])
        and _allowed(claim, catalogue.labels_of(offering.pool))
    ]


def _allowed(claim: NodeClaim, labels: Mapping[str, str]) -> bool:
    """Labels that no instance has by itself come from the claim, so they decide nothing here."""
    return all(
        satisfies(labels, e.key, e.operator, e.values)
        for e in claim.requirements
        if e.key in labels or e.key == names.WINDOWS_BUILD
    )
