"""NodeClaims, created, read live and changed.

A claim is created with its finalizer in the same request, so that no instance can exist for a claim that never had it
(LIF-7). An existing claim of that name is ours only if it carries the same dovetail.sh/plan. The spec is never written
again: it is immutable, and re-serialising it would be refused (PLM-8).
"""

from dovetail.adapters.kube.failures import CONFLICT
from dovetail.adapters.kube.objects.collection import Collection
from dovetail.adapters.kube.requests import Caller, Request
from dovetail.adapters.kubernetes_json.parsing.managers import manager_of_annotation
from dovetail.adapters.kubernetes_json.parsing.nodes import parse_node_claim
from dovetail.adapters.kubernetes_json.rendering import fields
from dovetail.adapters.kubernetes_json.rendering.claims import render_claim, render_status
from dovetail.adapters.kubernetes_json.written_kinds import NODE_CLAIM
from dovetail.model.names import PLAN
from dovetail.model.nodes import NodeClaim
from dovetail.ports.failures import Conflict, Taken
from dovetail.ports.objects import ClaimStatus, MetadataChange, NewClaim


class KubeNodeClaims:
    def __init__(self, client: Caller) -> None:
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
            return self._claims.latest.remember(self._claims.parsed(answer.body))
        existing = await self._claims.read(claim.name)
        if existing is None:
            raise Conflict(subject, "existed a moment ago and is gone")
        plan = claim.annotations.get(PLAN)
        if plan is None or existing.annotations.get(PLAN) != plan:
            raise Taken(subject, f"exists and was made by {existing.annotations.get(PLAN) or 'someone else'}")
        return existing

    async def may_create(self, claim: NewClaim) -> None:
        request = Request(
            method="POST",
            path=NODE_CLAIM.path,
            subject=f"NodeClaim/{claim.name}",
            query={"dryRun": "All"},
            body=render_claim(claim),
        )
        await self._client.call(request)

    async def read(self, name: str) -> NodeClaim | None:
        return await self._claims.read(name)

    def answered(self, name: str) -> NodeClaim | None:
        return self._claims.latest.of(name)

    async def patch(self, claim: NodeClaim, change: MetadataChange) -> NodeClaim | None:
        # The model keeps only parts of an owner reference, so existing references are copied from the live object.
        raw = await self._claims.raw_at_version(claim) if change.add_owner and claim.owners else {}
        owners = (raw.get("metadata") or {}).get("ownerReferences") or []
        return await self._claims.patch(claim, {"metadata": fields.metadata(change, owners)})

    async def annotated_by(self, name: str, annotation: str) -> str:
        raw = await self._claims.read_raw(name)
        return "" if raw is None else manager_of_annotation(raw, annotation)

    async def patch_status(self, claim: NodeClaim, status: ClaimStatus) -> NodeClaim | None:
        return await self._claims.patch(claim, {"status": render_status(claim, status)}, "status")

    async def delete(self, name: str, uid: str) -> int:
        return await self._claims.delete(name, uid)
