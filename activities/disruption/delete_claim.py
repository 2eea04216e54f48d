"""Deletes a claim: the order by which a node leaves.

What the deletion means is carried out by TerminateNode, whoever deleted. "Already gone" is success. A claim that a
disruption marked carries the reason, so people are told without the caller having to say it.
"""

from temporalio import activity

from dovetail.messages.outcomes import StepOutcome
from dovetail.messages.requests import DeleteRequest
from dovetail.messages.writes import Write
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
    async def delete_claim(self, ref: DeleteRequest) -> StepOutcome:
        """Delete the claim of that UID; another claim under the name is left alone. A plan's delete is counted."""
        claim = self.lookups.claim(ref.name)
        version = await self.claims.delete(ref.name, ref.uid)
        if version and claim is not None and claim.uid == ref.uid:
            await self.notices.publish(*disrupting(claim, self.lookups.nodes_of(claim.provider_id)))
        if version and ref.target is not None and is_first_attempt():
            disrupted(ref.target, ref.reason)
        write = Write(kind="NodeClaim", name=ref.name, uid=ref.uid, version=version)
        return StepOutcome(message="deleting" if version else "already gone", writes=(write,))
