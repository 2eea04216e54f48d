"""Deletes claims, which is how nodes are made to leave.

One step deletes several side by side: five hundred separate steps would be thousands of events and one huge workflow
task. TerminateNode carries out what the deletion means. "Already gone" is success. A claim that a disruption marked
carries the reason, so the caller need not name it for the notices. Claims that a plan deletes get their TerminateNode
at once, a second or two before the Caretaker would find them.
"""

from dataclasses import dataclass
from typing import Final

from temporalio import activity

from dovetail.activities.disruption.returned_moves import ReturnedMoves
from dovetail.activities.identity.askers import asked_by
from dovetail.activities.shared.every_step.heartbeats import keep, kept
from dovetail.activities.shared.looks.live_repairs import LiveRepairs
from dovetail.activities.shared.owner_starts import OwnerStarts
from dovetail.activities.shared.waits.side_by_side import side_by_side
from dovetail.activities.shared.writes import claim_deletion
from dovetail.messages.outcomes import StepOutcome
from dovetail.messages.plans import Target
from dovetail.messages.requests import DeleteRequest, DeletesRequest
from dovetail.messages.subjects import ClaimRef
from dovetail.messages.workflow_types import TERMINATE_NODE
from dovetail.messages.writes import Write, newest_of_each_kind
from dovetail.model.names import OWNER, REGISTERED_CONDITION
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.model.reasons.endings import Ending
from dovetail.notices.disruptions import disrupting
from dovetail.ports.failures import Refused
from dovetail.ports.objects import NodeClaims, Nodes, Notices
from dovetail.ports.view import ClusterLookups
from dovetail.telemetry.metrics.karpenters.disruption import disrupted
from dovetail.telemetry.metrics.karpenters.lifecycle import is_first_attempt
from dovetail.termination.ladder import drain_reason

AT_ONCE: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePorts:
    """What the steps read and write. `repairs`: whether the node is still to be repaired."""

    claims: NodeClaims
    nodes: Nodes
    notices: Notices
    lookups: ClusterLookups
    repairs: LiveRepairs


class DeleteClaims:
    def __init__(self, ports: DeletePorts, owners: OwnerStarts, returned: ReturnedMoves) -> None:
        self.claims, self.nodes, self.notices = ports.claims, ports.nodes, ports.notices
        self.lookups, self.repairs = ports.lookups, ports.repairs
        self.returned, self.owners = returned, owners

    @activity.defn
    async def delete_claim(self, request: DeleteRequest) -> StepOutcome:
        """Delete the claim of that UID. A delete that a plan asks for is counted."""
        claim = self.lookups.claim(request.name)
        await self._refuse_what_stays(ClaimRef(name=request.name, uid=request.uid), planned=request.target is not None)
        if request.because:
            await self._write_why(request)
        write = await claim_deletion.delete_claim(self.claims, ClaimRef(name=request.name, uid=request.uid))
        if not write.version:
            return StepOutcome(message="already gone", writes=(write,))
        await self._bound(ClaimRef(name=request.name, uid=request.uid), request.reason)
        if claim is not None and claim.uid == request.uid:
            await self.notices.publish(*disrupting(claim, self.lookups.nodes_of(claim.provider_id)))
        if request.target is None:
            return StepOutcome(message="deleting", writes=(write,))
        if is_first_attempt():
            disrupted(request.target, request.reason, claim)
            await self.returned.taken((request.target,), request.reason)
        await self._start(request.target)
        return StepOutcome(message="deleting", writes=(write,), owned=True)

    async def _write_why(self, request: DeleteRequest) -> None:
        claim = self.lookups.claim(request.name) or await self.claims.read(request.name)
        if claim is not None and claim.uid == request.uid:
            await claim_deletion.write_ending(self.claims, claim, Ending(request.because), request.because_words)

    @activity.defn
    async def delete_claims(self, request: DeletesRequest) -> StepOutcome:
        """Delete the claims of these targets, each as `delete_claim` does; a retry continues where the last attempt
        stopped."""
        before = kept()
        left = [target for target in request.targets if target.claim not in before]
        writes = await side_by_side([self._delete(target, request.reason) for target in left], AT_ONCE)
        if is_first_attempt():
            await self.returned.taken(request.targets, request.reason)
        words = f"deleting {len(request.targets)} claims"
        return StepOutcome(message=words, writes=newest_of_each_kind(writes), owned=True)

    async def _delete(self, target: Target, reason: str) -> Write:
        """Delete it, and count the deletion if this step made it: no other step of this workflow deletes."""
        claim = self.lookups.claim(target.claim)
        await self._refuse_what_stays(ClaimRef(name=target.claim, uid=target.claim_uid), planned=True)
        write = await claim_deletion.delete_claim(self.claims, ClaimRef(name=target.claim, uid=target.claim_uid))
        if write.version and claim is not None and claim.uid == target.claim_uid:
            await self.notices.publish(*disrupting(claim, self.lookups.nodes_of(claim.provider_id)))
        if write.version and (claim is None or claim.deleting_since is None):
            disrupted(target, reason, claim)
        if write.version:
            await self._bound(ClaimRef(name=target.claim, uid=target.claim_uid), reason)
            await self._start(target)
        keep(target.claim)
        return write

    async def _bound(self, ref: ClaimRef, reason: str) -> None:
        """GCR-20: the drain of an unhealthy node lasts as long as its repair lets it, from the delete on; by the node
        as it is now, and only where its own disruption asks: a request may say so of any node."""
        if reason != DisruptionReason.UNHEALTHY:
            return
        claim = await self.claims.read(ref.name)
        if claim is None or claim.uid != ref.uid or claim.deleting_since is None or not claim.provider_id:
            return
        if drain_reason(claim) != reason or not asked_by(claim.annotations.get(OWNER, "")):
            return
        fault = await self.repairs.first_fault(await self.nodes.list_by_provider_id(claim.provider_id), claim)
        bound = fault.bound(claim) if fault is not None else None
        if bound is not None:
            await claim_deletion.hurry(self.claims, claim, claim.deleting_since + bound, pods_alone=True)

    async def _refuse_what_stays(self, ref: ClaimRef, *, planned: bool) -> None:
        """Refuse a deletion that its workflow may not ask for. A plan deletes only what carries its own mark; a launch
        deletes only a claim whose node has not joined. Anybody who can write to Temporal's namespace can request the
        deletion of any claim."""
        if not ref.uid:
            raise Refused(f"NodeClaim/{ref.name}", "no UID says which claim of that name is meant, so none is deleted")
        known = self.lookups.claim(ref.name) if planned else None  # a mark that the cache shows is nobody else's
        if known is None or known.uid != ref.uid or not asked_by(known.annotations.get(OWNER, "")):
            known = await self.claims.read(ref.name)
        if known is None or known.uid != ref.uid or known.deleting_since is not None:
            return
        if planned and not asked_by(known.annotations.get(OWNER, "")):
            raise Refused(f"NodeClaim/{ref.name}", "it does not carry the mark of the workflow that would delete it")
        if not planned and known.is_true(REGISTERED_CONDITION):
            raise Refused(f"NodeClaim/{ref.name}", "its node has joined, so its launch is not given up")

    async def _start(self, target: Target) -> None:
        claim = ClaimRef(name=target.claim, uid=target.claim_uid, pool=target.pool)
        await self.owners.try_to_start(TERMINATE_NODE, claim, target.node)
