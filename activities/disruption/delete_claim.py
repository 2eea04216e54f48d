"""Deletes claims: the order by which nodes leave.

Several are deleted side by side in one step: five hundred steps of their own would be thousands of events and one huge
workflow task. What the deletion means is carried out by TerminateNode. "Already gone" is success. A claim that a
disruption marked carries the reason, so its notices are published without the caller having to name it.
"""

from typing import Final

from temporalio import activity

from dovetail.activities.shared import claim_deletion
from dovetail.activities.shared.heartbeats import keep, kept
from dovetail.activities.shared.side_by_side import side_by_side
from dovetail.messages.outcomes import StepOutcome
from dovetail.messages.plans import Target
from dovetail.messages.requests import DeleteRequest, DeletesRequest
from dovetail.messages.subjects import ClaimRef
from dovetail.messages.writes import Write, newest_of_each_kind
from dovetail.notices.disruptions import disrupting
from dovetail.ports.objects import NodeClaims, Notices
from dovetail.ports.view import ClusterLookups
from dovetail.telemetry.metrics.disruption import disrupted
from dovetail.telemetry.metrics.lifecycle import is_first_attempt

AT_ONCE: Final = 20


class DeleteClaims:
    """The step that deletes."""

    def __init__(self, claims: NodeClaims, notices: Notices, lookups: ClusterLookups) -> None:
        self.claims = claims
        self.notices = notices
        self.lookups = lookups

    @activity.defn
    async def delete_claim(self, request: DeleteRequest) -> StepOutcome:
        """Delete the claim of that UID. A delete that a plan asks for is counted."""
        claim = self.lookups.claim(request.name)
        write = await claim_deletion.delete_claim(self.claims, ClaimRef(name=request.name, uid=request.uid))
        if not write.version:
            return StepOutcome(message="already gone", writes=(write,))
        if claim is not None and claim.uid == request.uid:
            await self.notices.publish(*disrupting(claim, self.lookups.nodes_of(claim.provider_id)))
        if request.target is not None and is_first_attempt():
            disrupted(request.target, request.reason)
        return StepOutcome(message="deleting", writes=(write,))

    @activity.defn
    async def delete_claims(self, request: DeletesRequest) -> StepOutcome:
        """Delete the claims of these targets, each as `delete_claim` does; a second try goes on where the first was."""
        before = kept()
        left = [target for target in request.targets if target.claim not in before]
        writes = await side_by_side([self._delete(target, request.reason) for target in left], AT_ONCE)
        return StepOutcome(message=f"deleting {len(request.targets)} claims", writes=newest_of_each_kind(writes))

    async def _delete(self, target: Target, reason: str) -> Write:
        """The same, counted where this deletes it: no other step of this workflow does."""
        claim = self.lookups.claim(target.claim)
        write = await claim_deletion.delete_claim(self.claims, ClaimRef(name=target.claim, uid=target.claim_uid))
        if write.version and claim is not None and claim.uid == target.claim_uid:
            await self.notices.publish(*disrupting(claim, self.lookups.nodes_of(claim.provider_id)))
        if write.version and (claim is None or claim.deleting_since is None):
            disrupted(target, reason)
        keep(target.claim)
        return write
