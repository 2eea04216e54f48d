"""Gives back the replacements of a disruption that was undone.

Asked by DisruptNodes. The claims are found by the names that the plan gave them, because a cancel may have dropped the
result of the step that created them. One that pods have already moved to is needed: it stays, and is no longer the
plan's.
"""

from functools import partial

from temporalio import activity

from activities.contending import settled
from activities.counting_disruption import failed
from core.model import names
from core.model.inputs import GiveBackRequest
from core.model.pod_rules import is_reschedulable
from core.model.steps import StepOutcome
from core.model.writes import Write
from ports.objects import MetadataChange, NodeClaims, Pods


class GivingBack:
    """The step that gives back."""

    def __init__(self, claims: NodeClaims, pods: Pods) -> None:
        self.claims = claims
        self.pods = pods

    @activity.defn
    async def give_back(self, request: GiveBackRequest) -> StepOutcome:
        """Delete each replacement that carries no pods; keep the others."""
        writes: list[Write] = []
        kept: list[str] = []
        for name in request.names:
            await settled(partial(self._give_back, request, name, writes, kept))
        unready = len(request.names) - len(kept)
        if request.method and (not activity.in_activity() or activity.info().attempt == 1):
            failed(request.method, unready)
        return StepOutcome(message=f"kept {', '.join(kept)}" if kept else "", writes=tuple(writes))

    async def _give_back(self, request: GiveBackRequest, name: str, writes: list[Write], kept: list[str]) -> None:
        claim = await self.claims.read(name)
        if claim is None or claim.deleting_since is not None:
            return
        if not claim.annotations.get(names.PLAN, "").startswith(f"{request.plan_id}/"):
            return
        if claim.node_name and any(is_reschedulable(p) for p in await self.pods.list_on(claim.node_name)):
            removed = {names.PLAN: None, names.PLANNED_PODS: None}
            await self.claims.patch(claim, MetadataChange(annotations=removed))
            kept.append(name)
            return
        version = await self.claims.delete(name, claim.uid)
        writes.append(Write(kind="NodeClaim", name=name, uid=claim.uid, version=version))
