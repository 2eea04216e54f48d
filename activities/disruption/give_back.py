"""Gives back the replacements of a disruption that was undone.

The claims are found by the names that the plan gave them, because a cancel may have lost the answer of the step that
created them. A replacement to which pods have already moved stays, and no longer belongs to the plan.
"""

from functools import partial

from temporalio import activity

from dovetail.activities.disruption.breakers import BreakerMemory
from dovetail.activities.shared.writes.claim_deletion import delete_because
from dovetail.activities.shared.writes.revisions import revise_claim
from dovetail.messages.outcomes import StepOutcome
from dovetail.messages.requests import GiveBackRequest
from dovetail.messages.writes import Write
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.objects.pod_rules import is_reschedulable
from dovetail.model.reasons.endings import Ending
from dovetail.ports.objects import MetadataChange, NodeClaims, Pods
from dovetail.telemetry.metrics.karpenters.disruption import failed
from dovetail.telemetry.metrics.karpenters.lifecycle import is_first_attempt


class GiveBack:
    def __init__(self, claims: NodeClaims, pods: Pods, memory: BreakerMemory) -> None:
        self.claims = claims
        self.pods = pods
        self.memory = memory

    @activity.defn
    async def give_back(self, request: GiveBackRequest) -> StepOutcome:
        """Delete each replacement that carries no pods; keep the others."""
        writes: list[Write] = []
        kept: list[str] = []
        for name in request.names:
            claim = await self.claims.read(name)
            if claim is None or claim.deleting_since is not None or claim.plan != request.plan_id:
                continue
            if await self._has_pods(claim):
                await revise_claim(self.claims, claim, partial(_without_plan, request.plan_id))
                kept.append(name)
            else:
                await self.memory.given_back(claim, request.method, request.plan_id)
                writes.append(await delete_because(self.claims, claim, Ending.GIVEN_BACK, request.why))
        unready = len(request.names) - len(kept)
        if request.method and is_first_attempt():
            failed(request.method, unready)
        return StepOutcome(message=f"kept {', '.join(kept)}" if kept else "", writes=tuple(writes))

    async def _has_pods(self, claim: NodeClaim) -> bool:
        if not claim.node_name:
            return False
        return any(is_reschedulable(pod) for pod in await self.pods.list_on(claim.node_name))


def _without_plan(plan_id: str, claim: NodeClaim) -> MetadataChange | None:
    removed = {names.PLAN: None, names.PLANNED_PODS: None, names.PLANNED_BUFFERS: None}
    return MetadataChange(annotations=removed) if claim.plan == plan_id else None
