"""The NodeClasses of the simulated cloud: which image instances run, and which zones and families they may use.

A world understands dovetail.sh/EmbeddedNodeClass, whose spec may leave out every field, or the kinds that its catalogue
names: EC2NodeClass in worlds taken from AWS, with its wire format but without its adapter. The status has the condition
Ready, as any NodeClass has.
"""

import hashlib
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from dovetail.adapters.kubernetes_json.kinds import raw_kind
from dovetail.adapters.kubernetes_json.parsing.class_hashes import (
    EC2_NODE_CLASS_HASH_VERSION,
    ec2_node_class_hash,
)
from dovetail.adapters.kubernetes_json.store import Kind
from dovetail.adapters.kwok.node_class import KwokClass, state_of
from dovetail.adapters.simulator.api_server import objects
from dovetail.adapters.simulator.cloud.catalogue import EC2_CLASS, EMBEDDED_CLASS, WorldCatalogue, read_catalogue
from dovetail.model.nodes import NodeClaim, NodeClassRef
from dovetail.model.values.json import Json

# The class as it was when an instance was launched: part of the claim's annotations, compared for drift (CLD-6).
CLASS_HASH: Final = "embedded.dovetail.sh/class-hash"
EC2_HASH: Final = "karpenter.k8s.aws/ec2nodeclass-hash"
EC2_HASH_VERSION: Final = "karpenter.k8s.aws/ec2nodeclass-hash-version"

NONE_SUPPOSED: Final[Mapping[tuple[str, str], Json]] = {}
DEFAULT_IMAGE: Final = "image-1"
GONE_IMAGES: Final = "embedded.dovetail.sh/gone-images"  # on a class: images that have been taken away

# Watched like any other kind, so that a change of a class wakes those who wait for a change.
WATCHED_CLASSES: Final[dict[tuple[str, str], Kind]] = {
    EMBEDDED_CLASS: raw_kind(EMBEDDED_CLASS[1], ""),
    EC2_CLASS: raw_kind(EC2_CLASS[1], "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeClass(KwokClass):
    """One class as read from its object. `stamps`: the annotations with which a claim records its class."""

    images: tuple[str, ...] = ()  # the first is used for launches; all are right
    zones: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    stamps: tuple[tuple[str, str], ...] = ()  # the hash, and the version of its algorithm where there are several
    gone: tuple[str, ...] = ()  # images that nothing can be started from any more

    def drift(self, claim: NodeClaim) -> str:
        """Why a claim is not what would be launched today; hashes of other versions are not compared (AWS-115)."""
        if any(key not in claim.annotations for key, _ in self.stamps):
            return ""
        (hash_key, wanted), *versions = self.stamps
        comparable = all(claim.annotations[key] == version for key, version in versions)
        if comparable and claim.annotations[hash_key] != wanted:
            return "NodeClassDrift"
        return "ImageDrift" if claim.image_id and claim.image_id not in self.images else ""


def read_class(
    connection: sqlite3.Connection, reference: NodeClassRef, supposed: Mapping[tuple[str, str], Json] = NONE_SUPPOSED
) -> NodeClass | None:
    """The class of that name, if this cloud has and understands it. `supposed`: objects that replace the existing ones,
    by kind and name."""
    catalogue = read_catalogue(connection)
    kind = (reference.group, reference.kind)
    body = supposed.get((reference.kind, reference.name)) or objects.read(connection, reference.kind, reference.name)
    if body is None or kind not in catalogue.node_classes:
        return None
    return _READERS[kind](body, catalogue)


def _embedded_class(body: Json, catalogue: WorldCatalogue) -> NodeClass:
    spec: dict[str, Any] = body.get("spec") or {}
    image, stamp = spec.get("image") or DEFAULT_IMAGE, class_hash(spec)
    gone = (body["metadata"].get("annotations") or {}).get(GONE_IMAGES, "")
    return NodeClass(
        name=body["metadata"]["name"],
        state=replace(state_of(body), makes=f"{stamp}/{image}"),
        images=(image,),
        zones=tuple(spec.get("zones") or catalogue.zones),
        families=tuple(spec.get("families") or ()),
        stamps=((CLASS_HASH, stamp),),
        gone=tuple(gone.split(",")),
    )


def _ec2_class(body: Json, catalogue: WorldCatalogue) -> NodeClass:
    """As far as this cloud goes: the zones of the subnets and the images in its status; neither is resolved again.

    A hash on the class is used as it is: it covers the cluster's CA bundle (AWS-116), which this world does not have.
    """
    status: dict[str, Any] = body.get("status") or {}
    zones = {subnet["zone"] for subnet in status.get("subnets") or []}
    stamped = body["metadata"].get("annotations") or {}
    stamps = (
        (EC2_HASH, stamped.get(EC2_HASH) or ec2_node_class_hash(body["spec"])),
        (EC2_HASH_VERSION, stamped.get(EC2_HASH_VERSION) or EC2_NODE_CLASS_HASH_VERSION),
    )
    return NodeClass(
        name=body["metadata"]["name"],
        state=state_of(body),
        images=tuple(image["id"] for image in status.get("amis") or []),
        zones=tuple(zone for zone in catalogue.zones if zone in zones),
        stamps=stamps,
    )


_READERS: Final[dict[tuple[str, str], Callable[[Json, WorldCatalogue], NodeClass]]] = {
    EMBEDDED_CLASS: _embedded_class,
    EC2_CLASS: _ec2_class,
}


def class_hash(spec: dict[str, Any]) -> str:
    """A hash of the spec without its image, whose change is drift of the image."""
    rest = {name: value for name, value in spec.items() if name != "image"}
    return hashlib.sha256(orjson.dumps(rest, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]
