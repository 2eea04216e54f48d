"""What to launch for a claim: offerings and an image, as a short text."""

from dataclasses import dataclass

import orjson

from dovetail.adapters.kwok.instance_types import OfferingKey
from dovetail.adapters.simulator.cloud.node_classes import NodeClass
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
<<<<<<< HEAD
from dovetail.model.own.stable_images import BACK, images_of, pin_of
from dovetail.model.values.resources import fits, total

# AWS-81: a launch names at most 60 offerings.
MAX_OFFERINGS: Final = 60
=======
>>>>>>> fc41a763 (The simulated cloud sells the types of the cloud kwok and chooses among them as that does)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedLaunch:
    """The capacity pools in the order in which they are tried, and the class as it was then."""

    node_class: str
    stamps: tuple[tuple[str, str], ...]
    image: str
    pools: tuple[OfferingKey, ...]


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
        pools=tuple(OfferingKey(*pool) for pool in body["pools"]),
    )


def image_for(claim: NodeClaim, node_class: NodeClass) -> str:
    """The one that the claim names, as long as it exists; a claim that accepts no other gets none."""
<<<<<<< HEAD
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
=======
    wanted = claim.annotations.get(names.STABLE_IMAGES, "").partition("=")[0]
    how = claim.annotations.get(names.IMAGE)
    if how in ("stable", "back") and wanted not in node_class.gone:
        return wanted
    return node_class.images[0] if node_class.images and how != "back" else ""
>>>>>>> fc41a763 (The simulated cloud sells the types of the cloud kwok and chooses among them as that does)
