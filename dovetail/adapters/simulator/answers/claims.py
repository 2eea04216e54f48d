"""The port NodeClaims over the simulated cluster.

An existing claim of a wanted name is ours only if it carries the same dovetail.sh/plan.
"""

from dovetail.adapters.kubernetes_json.parsing.errors import parsed
from dovetail.adapters.kubernetes_json.parsing.nodes import parse_node_claim
from dovetail.adapters.kubernetes_json.rendering.claims import render_claim, render_status
from dovetail.adapters.simulator.answers.patching import deleted_version, patched, status_patched
from dovetail.adapters.simulator.api_server.cluster import Cluster
from dovetail.adapters.simulator.api_server.rejected import Rejected
from dovetail.adapters.simulator.calls import Calls, failure_of
from dovetail.model.names import PLAN
from dovetail.model.nodes import NodeClaim
from dovetail.model.values.json import Json
from dovetail.ports.failures import Taken
from dovetail.ports.objects import ClaimStatus, MetadataChange, NewClaim


class SimulatedNodeClaims:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def create(self, claim: NewClaim) -> NodeClaim:
        subject = f"NodeClaim/{claim.name}"
        try:
            body = await self._calls.cluster("create", subject, lambda cluster: _created(cluster, claim))
        except Rejected as rejected:
            raise failure_of(rejected, subject) from None
        if body is None:
            raise Taken(subject, "a claim of that name exists and belongs to another plan")
        return parsed(parse_node_claim, body)

    async def may_create(self, claim: NewClaim) -> None:
        subject = f"NodeClaim/{claim.name}"
        try:
            await self._calls.cluster("create", subject, lambda cluster: _judged(cluster, claim))
        except Rejected as rejected:
            raise failure_of(rejected, subject) from None
        except _OnlyJudgedError:
            return

    async def read(self, name: str) -> NodeClaim | None:
        body = await self._calls.read(lambda connection: Cluster(connection, "", 0.0).read("NodeClaim", name))
        return None if body is None else parsed(parse_node_claim, body)

    def answered(self, name: str) -> NodeClaim | None:
        return None  # nothing is saved by not asking it

    async def patch(self, claim: NodeClaim, change: MetadataChange) -> NodeClaim | None:
        body = await patched(self._calls, "NodeClaim", claim, change)
        return None if body is None else parsed(parse_node_claim, body)

    async def annotated_by(self, name: str, annotation: str) -> str:
        return ""  # the simulated API server records no managers of fields

    async def patch_status(self, claim: NodeClaim, status: ClaimStatus) -> NodeClaim | None:
        body = await status_patched(self._calls, "NodeClaim", claim, render_status(claim, status))
        return None if body is None else parsed(parse_node_claim, body)

    async def delete(self, name: str, uid: str) -> int:
        return await deleted_version(self._calls, "NodeClaim", name, uid)


class _OnlyJudgedError(Exception):
    """Undoes the transaction of a claim that was only to be judged."""


def _judged(cluster: Cluster, claim: NewClaim) -> None:
    cluster.create(render_claim(claim))
    raise _OnlyJudgedError


def _created(cluster: Cluster, claim: NewClaim) -> Json | None:
    """The claim created, or the existing one of that name if it belongs to the same plan, or None."""
    try:
        return cluster.create(render_claim(claim))
    except Rejected as rejected:
        if rejected.reason != "AlreadyExists":
            raise
        found = cluster.read("NodeClaim", claim.name) or {"metadata": {}}
        plan = claim.annotations.get(PLAN)
        ours = plan is not None and (found["metadata"].get("annotations") or {}).get(PLAN) == plan
        return found if ours else None
