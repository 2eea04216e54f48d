"""NodeClaims as they are written: a new one whole, and the status fields that a change sets."""

from dovetail.adapters.kubernetes_json.rendering import fields
from dovetail.model.nodes import NodeClaim
from dovetail.model.values.json import Json
from dovetail.model.values.resources import format_resources
from dovetail.model.values.time import format_time
from dovetail.ports.objects import ClaimStatus, NewClaim


def render_claim(claim: NewClaim) -> Json:
    meta: Json = {
        "name": claim.name,
        "labels": dict(claim.labels),
        "annotations": dict(claim.annotations),
        "finalizers": list(claim.finalizers),
    }
    if claim.owner is not None:
        meta["ownerReferences"] = [fields.owner(claim.owner)]
    spec: Json = {
        "nodeClassRef": fields.node_class(claim.node_class),
        "requirements": [fields.expression(e) for e in claim.requirements],
        "resources": {"requests": format_resources(claim.requests)},
        "expireAfter": fields.duration(claim.expire_after),
    }
    if claim.taints:
        spec["taints"] = [fields.taint(t) for t in claim.taints]
    if claim.startup_taints:
        spec["startupTaints"] = [fields.taint(t) for t in claim.startup_taints]
    if claim.termination_grace is not None:
        spec["terminationGracePeriod"] = fields.duration(claim.termination_grace)
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": meta, "spec": spec}


def render_status(claim: NodeClaim, status: ClaimStatus) -> Json:
    """The status fields that are set."""
    rendered: Json = {
        "providerID": status.provider_id,
        "imageID": status.image_id,
        "nodeName": status.node_name,
        "lastPodEventTime": None if status.last_pod_event is None else format_time(status.last_pod_event),
        "conditions": None if status.conditions is None else fields.conditions(status.conditions),
        "capacity": None if status.capacity is None else fields.amounts(status.capacity, claim.capacity),
        "allocatable": None if status.allocatable is None else fields.amounts(status.allocatable, claim.allocatable),
    }
    return {name: value for name, value in rendered.items() if value is not None}
