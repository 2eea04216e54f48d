"""The NodeClass of the embedded cloud: which image its instances run, and which zones and families they may be of.

Asked by the catalogue, by launches and by the check for drift. Group dovetail.sh, kind EmbeddedNodeClass; every field
of its spec may be left out. Its status says Ready as any NodeClass's does.
"""

import hashlib
import sqlite3
from dataclasses import dataclass
from typing import Any, Final

import orjson

from adapters.embedded import objects
from adapters.embedded.admission import NODE_CLASS_GROUP, NODE_CLASS_KIND
from adapters.embedded.catalogue import FAMILY, ZONES, Offer, machine_types
from adapters.kube.kinds import raw_kind
from core.model.nodes import NodeClassRef
from ports.cloud import NodeClassState

# The class as it was when an instance was bought from it: part of the claim's annotations, compared for drift (C-6).
CLASS_HASH: Final = "embedded.dovetail.sh/class-hash"

DEFAULT_IMAGE: Final = "image-1"
# Watched like any other kind, so that a change of a class wakes whoever waits for one.
WATCHED_CLASS: Final = raw_kind(NODE_CLASS_KIND, "")

SUPPORTED: Final = frozenset({(NODE_CLASS_GROUP, NODE_CLASS_KIND)})


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeClass:
    """One class as read from its object."""

    name: str
    state: NodeClassState
    image: str = DEFAULT_IMAGE
    zones: tuple[str, ...] = ZONES
    families: tuple[str, ...] = ()
    hash: str = ""

    def allows(self, offer: Offer) -> bool:
        """Whether instances of this class may be bought that way."""
        family = dict(machine_types()[offer.instance_type].labels)[FAMILY]
        return offer.zone in self.zones and (not self.families or family in self.families)


def read_class(connection: sqlite3.Connection, reference: NodeClassRef) -> NodeClass:
    """The class of that name; `state.found` tells whether there is one that this cloud understands."""
    if (reference.group, reference.kind) not in SUPPORTED:
        return NodeClass(name=reference.name, state=NodeClassState(found=False))
    body = objects.read(connection, NODE_CLASS_KIND, reference.name)
    if body is None:
        return NodeClass(name=reference.name, state=NodeClassState(found=False))
    spec: dict[str, Any] = body.get("spec") or {}
    return NodeClass(
        name=reference.name,
        state=_state(body),
        image=spec.get("image") or DEFAULT_IMAGE,
        zones=tuple(spec.get("zones") or ZONES),
        families=tuple(spec.get("families") or ()),
        hash=class_hash(spec),
    )


def class_hash(spec: dict[str, Any]) -> str:
    """A hash of the spec without its image, whose change is told apart as drift of the image."""
    rest = {name: value for name, value in spec.items() if name != "image"}
    return hashlib.sha256(orjson.dumps(rest, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def _state(body: objects.Body) -> NodeClassState:
    conditions = (body.get("status") or {}).get("conditions") or []
    ready: dict[str, Any] = next((c for c in conditions if c.get("type") == "Ready"), {})
    status = ready.get("status")
    return NodeClassState(
        found=True,
        deleting="deletionTimestamp" in body["metadata"],
        ready=status if status in ("True", "False") else "Unknown",
        reason=ready.get("reason") or "",
        message=ready.get("message") or "",
        generation=body["metadata"].get("generation", 0),
    )
