"""Nodes and NodeClaims: JSON of the API in, dovetail.model out. Raises UnreadableObject and nothing else."""

from typing import Final

from dovetail.adapters.kubernetes_json.parsing.fields import conditions, node_class
from dovetail.adapters.kubernetes_json.parsing.reading import name_of, reading
from dovetail.adapters.kubernetes_json.parsing.selectors import (
    parse_expressions,
    parse_owners,
    parse_taints,
)
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.values.drafts import draft_of
from dovetail.model.values.durations import parse_seconds
from dovetail.model.values.json import ReadOnlyJson
from dovetail.model.values.resources import shared_resources
from dovetail.model.values.time import optional_time

_NodeDraft: Final = draft_of(Node)
_ClaimDraft: Final = draft_of(NodeClaim)


def lasting(text: str | None) -> float | None:
    """A duration that may be absent or `Never`: both are None (DIS-194)."""
    return None if text is None or text == "Never" else parse_seconds(text)


def parse_node(raw: ReadOnlyJson) -> Node:
    with reading("Node", raw) as place:
        meta, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
        name, created = name_of(meta), optional_time(meta.get("creationTimestamp"))
        deleting = optional_time(meta.get("deletionTimestamp"))
        place.field = "status.capacity"
        capacity = shared_resources(status.get("capacity"))
        place.field = "status.allocatable"
        allocatable = shared_resources(status.get("allocatable"))
        place.field = "spec or status"
        draft = _NodeDraft()
        draft.name = name
        draft.uid = meta.get("uid") or ""
        draft.resource_version = meta.get("resourceVersion") or ""
        draft.provider_id = spec.get("providerID") or ""
        draft.created = created or 0.0
        draft.deleting_since = deleting
        draft.labels = meta.get("labels") or {}
        draft.annotations = meta.get("annotations") or {}
        draft.taints = parse_taints(spec.get("taints"))
        draft.finalizers = tuple(meta.get("finalizers") or ())
        draft.owners = parse_owners(meta)
        draft.unschedulable = bool(spec.get("unschedulable"))
        draft.capacity = capacity
        draft.allocatable = allocatable
        draft.conditions = conditions(status.get("conditions"))
        draft.boot_id = (status.get("nodeInfo") or {}).get("bootID") or ""
        draft.__class__ = Node
        node: Node = draft
        return node


def parse_node_claim(raw: ReadOnlyJson) -> NodeClaim:
    with reading("NodeClaim", raw) as place:
        meta, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
        name, created = name_of(meta), optional_time(meta.get("creationTimestamp"))
        deleting = optional_time(meta.get("deletionTimestamp"))
        place.field = "spec.expireAfter"
        expire_after = lasting(spec.get("expireAfter"))
        place.field = "spec.terminationGracePeriod"
        grace = spec.get("terminationGracePeriod")
        termination_grace = None if grace is None else parse_seconds(grace)
        place.field = "spec or status"
        draft = _ClaimDraft()
        draft.name = name
        draft.uid = meta.get("uid") or ""
        draft.resource_version = meta.get("resourceVersion") or ""
        draft.generation = meta.get("generation") or 0
        draft.created = created or 0.0
        draft.deleting_since = deleting
        draft.labels = meta.get("labels") or {}
        draft.annotations = meta.get("annotations") or {}
        draft.finalizers = tuple(meta.get("finalizers") or ())
        draft.owners = parse_owners(meta)
        draft.node_class = node_class(spec.get("nodeClassRef"))
        draft.requirements = parse_expressions(spec.get("requirements"))
        draft.requests = shared_resources((spec.get("resources") or {}).get("requests"))
        draft.taints = parse_taints(spec.get("taints"))
        draft.startup_taints = parse_taints(spec.get("startupTaints"))
        draft.expire_after = expire_after
        draft.termination_grace = termination_grace
        draft.node_name = status.get("nodeName") or ""
        draft.provider_id = status.get("providerID") or ""
        draft.image_id = status.get("imageID") or ""
        draft.capacity = shared_resources(status.get("capacity"))
        draft.allocatable = shared_resources(status.get("allocatable"))
        draft.conditions = conditions(status.get("conditions"))
        draft.last_pod_event = optional_time(status.get("lastPodEventTime"))
        draft.__class__ = NodeClaim
        claim: NodeClaim = draft
        return claim
