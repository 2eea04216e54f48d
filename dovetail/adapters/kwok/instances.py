"""An instance is a Node object: how it is made, and what it records about itself.

Nothing else remembers it, so that a worker that dies at any moment leaves nothing half done. While it boots, its Node
has no providerID: it has not joined, and its taint keeps pods off though kwok plays it already. `ends-at` in the past
means that the cloud has taken the machine away; the Node itself is deleted when its finalizers allow it.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

import orjson

from dovetail.adapters.kwok import names as own
from dovetail.adapters.kwok.instance_types import OfferingKey, SoldType
from dovetail.adapters.kwok.node_class import KwokClass
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.pools import InstanceType
from dovetail.model.scheduling.taints import Taint
from dovetail.model.values.json import Json
from dovetail.model.values.resources import format_resources, parse_resources, subtract
from dovetail.model.values.time import format_time, parse_time, time_or_none
from dovetail.ports.cloud import Instance

# The label by which instances are found; a Node of Karpenter's kwok provider has it too.
SELECTOR: Final = f"{own.PLAYED}={own.FAKE}"
IMAGE: Final = "kwok"  # there is none, and who asks for an image gets a name
_UNREGISTERED: Final = Taint(key=names.UNREGISTERED_TAINT, effect="NoExecute")


@dataclass(frozen=True, slots=True, kw_only=True)
class Purchase:
    """What is launched: for whom, of which class, from where."""

    claim: NodeClaim
    node_class: KwokClass
    request: str
    sold: SoldType
    sizes: InstanceType  # as the class makes it
    pool: OfferingKey


def node_name(token: str) -> str:
    """One token, one Node: a repeated launch finds the Node that it made."""
    return f"kwok-{hashlib.sha256(token.encode()).hexdigest()[:12]}"


def name_of(provider_id: str) -> str:
    """The Node of a providerID; empty if it is not one of kwok's."""
    return provider_id.removeprefix(own.SCHEME) if provider_id.startswith(own.SCHEME) else ""


def request_hash(claim: NodeClaim, request: str) -> str:
    """What one token may be used for."""
    return hashlib.sha256(orjson.dumps([claim.uid, request])).hexdigest()[:16]


def node_of(name: str, bought: Purchase, now: float) -> Json:
    """The Node as its kubelet would register it, with what the cloud itself must know."""
    claim, boots = bought.claim, bought.node_class.boot_seconds > 0
    # Played from the beginning: kwok keeps a lease of a Node that it finds played, and of none that becomes so later;
    # without the lease it never says that the Node is ready.
    annotations = {
        own.CLAIM: claim.name,
        own.REQUEST: request_hash(claim, bought.request),
        own.CLASS_HASH: bought.node_class.hash,
        own.PLAYED: own.FAKE,
        **({own.BOOTS_AT: format_time(now + bought.node_class.boot_seconds)} if boots else {}),
    }
    taints = (_UNREGISTERED, *claim.taints, *claim.startup_taints)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"labels": _labels(name, bought), "annotations": annotations},
        "spec": {
            **({} if boots else {"providerID": own.SCHEME + name}),
            "taints": [{"key": t.key, "effect": t.effect, **({"value": t.value} if t.value else {})} for t in taints],
        },
        "status": {
            "capacity": format_resources(bought.sizes.capacity),
            "allocatable": format_resources(subtract(bought.sizes.capacity, bought.sizes.overhead)),
        },
    }


def _labels(name: str, bought: Purchase) -> dict[str, str]:
    return {
        **single_values(bought.claim),
        **bought.claim.labels,
        **{key: values[0] for key, values in bought.sold.labels.items() if len(values) == 1},
        names.ZONE: bought.pool.zone,
        names.CAPACITY_TYPE: bought.pool.capacity_type,
        names.HOSTNAME: name,
        names.CLAIM_UID_TAG: bought.claim.uid,
        own.PLAYED: own.FAKE,
    }


def single_values(claim: NodeClaim) -> dict[str, str]:
    """Requirements that leave one value are labels of the node (KWK-5)."""
    return {each.key: each.values[0] for each in claim.requirements if each.operator == "In" and len(each.values) == 1}


def is_instance(raw: Json) -> bool:
    labels = raw["metadata"].get("labels") or {}
    return labels.get(own.PLAYED) == own.FAKE and _provider_id(raw) == own.SCHEME + raw["metadata"]["name"]


def _provider_id(raw: Json) -> str:
    """For a booting one: the id that it will have."""
    said = (raw.get("spec") or {}).get("providerID")
    booting = own.BOOTS_AT in (raw["metadata"].get("annotations") or {})
    return str(said or (own.SCHEME + raw["metadata"]["name"] if booting else ""))


def has_ended(annotations: Mapping[str, str], now: float) -> bool:
    """Whether the cloud has taken the machine away."""
    ends = time_or_none(annotations.get(own.ENDS_AT, ""))
    return ends is not None and ends <= now


def is_gone(raw: Json, now: float) -> bool:
    """Whether only a Node that waits for its finalizers is left."""
    meta = raw["metadata"]
    return has_ended(meta.get("annotations") or {}, now) and "deletionTimestamp" in meta


def instance_of(raw: Json, now: float) -> Instance:
    """A Node in the port's form of an instance."""
    meta, status = raw["metadata"], raw.get("status") or {}
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    state: Literal["pending", "running", "terminating"] = "pending" if own.BOOTS_AT in annotations else "running"
    return Instance(
        provider_id=_provider_id(raw),
        claim_uid=labels.get(names.CLAIM_UID_TAG, ""),
        claim_name=annotations.get(own.CLAIM, ""),
        state="terminating" if has_ended(annotations, now) else state,
        launched=parse_time(meta["creationTimestamp"]),
        image_id=IMAGE,
        labels={key: value for key, value in labels.items() if key in own.INSTANCE_LABELS},
        annotations={own.CLASS_HASH: annotations[own.CLASS_HASH]} if own.CLASS_HASH in annotations else {},
        capacity=parse_resources(status.get("capacity")),
        allocatable=parse_resources(status.get("allocatable")),
    )
