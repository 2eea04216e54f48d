"""What to launch for a claim: offerings and an image, as a short text."""

from dataclasses import dataclass

import orjson

from dovetail.adapters.kwok.instance_types import OfferingKey
from dovetail.adapters.simulator.cloud.node_classes import NodeClass
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.claim_memory import BACK, images_of, memory_of


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
    body = orjson.loads(text)
    return EmbeddedLaunch(
        node_class=body["class"],
        stamps=tuple((s[0], s[1]) for s in body["stamps"]),
        image=body["image"],
        pools=tuple(OfferingKey(*pool) for pool in body["pools"]),
    )


def image_for(claim: NodeClaim, node_class: NodeClass) -> str:
    """The one that the claim names, as long as it exists; a claim that accepts no other gets none."""
    wanted = images_of(claim.annotations)
    if wanted and wanted[0].id not in node_class.gone:
        return wanted[0].id
    return node_class.images[0] if node_class.images and memory_of(claim.annotations).roll_out.how != BACK else ""
