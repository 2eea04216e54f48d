"""Nodes and NodeClaims: JSON of the API in, core.model out.

Asked by the cache for each event of the two watches. Raises UnreadableObject and nothing else. The trap avoided:
`expireAfter: Never` is no duration but the absence of one.
"""

from typing import Final

from adapters.kube.parsing.fields import Json, conditions, node_class
from adapters.kube.parsing.quick import draft_of
from adapters.kube.parsing.reading import name_of, reading
from adapters.kube.parsing.selectors import parse_expressions, parse_owners, parse_taints
from adapters.kube.parsing.times import optional_time
from core.model.durations import parse_seconds
from core.model.nodes import Node, NodeClaim
from core.model.resources import shared_resources

_NodeDraft: Final = draft_of(Node)
_ClaimDraft: Final = draft_of(NodeClaim)


def lasting(text: str | None) -> float | None:
    """A duration that may be absent or, under its own name, endless: both are None (D-194)."""
    return None if text is None or text == "Never" else parse_seconds(text)


def parse_node(raw: Json) -> Node:
    """One Node."""
    with reading("Node", raw) as place:
        meta, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
        name, created = name_of(meta), optional_time(meta.get("creationTimestamp"))
        deleting = optional_time(meta.get("deletionTimestamp"))
        place.field = "status.capacity"
        capacity = shared_resources(status.get("capacity"))
        place.field = "status.allocatable"
        allocatable = shared_resources(status.get("allocatable"))
        place.field = "spec or status"
        draft = _NodeDraft(
            name=name,
            uid=meta.get("uid") or "",
            resource_version=meta.get("resourceVersion") or "",
            provider_id=spec.get("providerID") or "",
            created=created or 0.0,
            deleting_since=deleting,
            labels=meta.get("labels") or {},
            annotations=meta.get("annotations") or {},
            taints=parse_taints(spec.get("taints")),
            finalizers=tuple(meta.get("finalizers") or ()),
            owners=parse_owners(meta),
            unschedulable=bool(spec.get("unschedulable")),
            capacity=capacity,
            allocatable=allocatable,
            conditions=conditions(status.get("conditions")),
        )
        draft.__class__ = Node
        node: Node = draft
        return node


def parse_node_claim(raw: Json) -> NodeClaim:
    """One NodeClaim."""
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
        draft = _ClaimDraft(
            name=name,
            uid=meta.get("uid") or "",
            resource_version=meta.get("resourceVersion") or "",
            generation=meta.get("generation") or 0,
            created=created or 0.0,
            deleting_since=deleting,
            labels=meta.get("labels") or {},
            annotations=meta.get("annotations") or {},
            finalizers=tuple(meta.get("finalizers") or ()),
            owners=parse_owners(meta),
            node_class=node_class(spec.get("nodeClassRef")),
            requirements=parse_expressions(spec.get("requirements")),
            requests=shared_resources((spec.get("resources") or {}).get("requests")),
            taints=parse_taints(spec.get("taints")),
            startup_taints=parse_taints(spec.get("startupTaints")),
            expire_after=expire_after,
            termination_grace=termination_grace,
            node_name=status.get("nodeName") or "",
            provider_id=status.get("providerID") or "",
            image_id=status.get("imageID") or "",
            capacity=shared_resources(status.get("capacity")),
            allocatable=shared_resources(status.get("allocatable")),
            conditions=conditions(status.get("conditions")),
            last_pod_event=optional_time(status.get("lastPodEventTime")),
        )
        draft.__class__ = NodeClaim
        claim: NodeClaim = draft
        return claim
