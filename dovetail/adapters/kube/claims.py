"""NodeClaims, written.

Asked through the port NodeClaims. A claim is created with its finalizer in the same request, so that no instance can
exist for a claim that never had it (L-7); a claim of the wished name is ours only if it carries the same
dovetail.sh/plan. Its spec is never written again: it is immutable, and re-serialising it would be refused (P-8).
"""

from typing import Any

from dovetail.adapters.kube.client import Client, Request
from dovetail.adapters.kube.objects import CONFLICT, Collection
from dovetail.adapters.kubernetes_json import rendering
from dovetail.adapters.kubernetes_json.kinds import NODE_CLAIM
from dovetail.adapters.kubernetes_json.parsing.nodes import parse_node_claim
from dovetail.model.names import PLAN
from dovetail.model.nodes import NodeClaim
from dovetail.model.pod_rules import format_moment
from dovetail.model.resources import format_resources
from dovetail.ports.failures import Conflict, Taken
from dovetail.ports.objects import ClaimStatus, MetadataChange, NewClaim

Json = dict[str, Any]


class KubeNodeClaims:
    """NodeClaims on the API server."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._claims = Collection[NodeClaim](client, NODE_CLAIM.name, NODE_CLAIM.path, parse_node_claim)

    async def create(self, claim: NewClaim) -> NodeClaim:
        subject = f"NodeClaim/{claim.name}"
        request = Request(
            method="POST",
            path=NODE_CLAIM.path,
            subject=subject,
            body=render_claim(claim),
            expected=frozenset({CONFLICT}),
        )
        answer = await self._client.call(request)
        if answer.status != CONFLICT:
            return self._claims.parsed(answer.body)
        existing = await self._claims.read(claim.name)
        if existing is None:
            raise Conflict(subject, "existed a moment ago and is gone")
        plan = claim.annotations.get(PLAN)
        if plan is None or existing.annotations.get(PLAN) != plan:
            raise Taken(subject, f"exists and was made by {existing.annotations.get(PLAN) or 'someone else'}")
        return existing

    async def read(self, name: str) -> NodeClaim | None:
        return await self._claims.read(name)

    async def patch(self, claim: NodeClaim, change: MetadataChange) -> NodeClaim | None:
        # The model leaves parts of an owner reference out: where there are any, they are taken from the live object.
        raw = await self._claims.raw_at_version(claim) if change.add_owner and claim.owners else {}
        owners = (raw.get("metadata") or {}).get("ownerReferences") or []
        return await self._claims.patch(claim, {"metadata": rendering.metadata(change, owners)})

    async def patch_status(self, claim: NodeClaim, status: ClaimStatus) -> NodeClaim | None:
        return await self._claims.patch(claim, {"status": render_status(claim, status)}, "status")

    async def delete(self, name: str, uid: str) -> int:
        return await self._claims.delete(name, uid)


def render_claim(claim: NewClaim) -> Json:
    """The object to create."""
    meta: Json = {
        "name": claim.name,
        "labels": dict(claim.labels),
        "annotations": dict(claim.annotations),
        "finalizers": list(claim.finalizers),
    }
    if claim.owner is not None:
        meta["ownerReferences"] = [rendering.owner(claim.owner)]
    spec: Json = {
        "nodeClassRef": rendering.node_class(claim.node_class),
        "requirements": [rendering.expression(e) for e in claim.requirements],
        "resources": {"requests": format_resources(claim.requests)},
        "expireAfter": rendering.duration(claim.expire_after),
    }
    if claim.taints:
        spec["taints"] = [rendering.taint(t) for t in claim.taints]
    if claim.startup_taints:
        spec["startupTaints"] = [rendering.taint(t) for t in claim.startup_taints]
    if claim.termination_grace is not None:
        spec["terminationGracePeriod"] = rendering.duration(claim.termination_grace)
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": meta, "spec": spec}


def render_status(claim: NodeClaim, status: ClaimStatus) -> Json:
    """The status fields that are set."""
    rendered: Json = {
        "providerID": status.provider_id,
        "imageID": status.image_id,
        "nodeName": status.node_name,
        "lastPodEventTime": None if status.last_pod_event is None else format_moment(status.last_pod_event),
        "conditions": None if status.conditions is None else rendering.conditions(status.conditions),
        "capacity": None if status.capacity is None else rendering.amounts(status.capacity, claim.capacity),
        "allocatable": None if status.allocatable is None else rendering.amounts(status.allocatable, claim.allocatable),
    }
    return {name: value for name, value in rendered.items() if value is not None}
