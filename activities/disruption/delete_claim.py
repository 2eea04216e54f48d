"""Deletes a claim: the order by which a node leaves.

What the deletion means is carried out by TerminateNode. "Already gone" is success. A claim that a
disruption marked carries the reason, so its notices are published without the caller having to name it.
"""

from temporalio import activity

from dovetail.activities.shared import claim_deletion
from dovetail.messages.outcomes import StepOutcome
from dovetail.messages.requests import DeleteRequest
from dovetail.messages.subjects import ClaimRef
from dovetail.metrics.disruption import disrupted
from dovetail.metrics.lifecycle import is_first_attempt
from dovetail.notices.disruptions import disrupting
from dovetail.ports.objects import NodeClaims, Notices
from dovetail.ports.view import ClusterLookups


class Deleting:
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
