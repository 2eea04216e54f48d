"""Answers the cloud's warnings: the claims of the instances that end are deleted."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from temporalio import activity

from dovetail.activities.shared.claim_deletion import delete_because
from dovetail.activities.shared.revisions import revise_claim
from dovetail.lifecycle.unfinished import reference
from dovetail.messages.interruptions import Answered, Interruption
from dovetail.model import names
from dovetail.model.endings import OF_REASONS
from dovetail.model.nodes import NodeClaim
from dovetail.model.time import format_time
from dovetail.model.watched_kinds import CLAIMS
from dovetail.ports.failures import NotSeenYet
from dovetail.ports.interruptions import Interruptions
from dovetail.ports.objects import MetadataChange, NodeClaims
from dovetail.ports.view import ClusterView
from dovetail.telemetry.log import departures

READS = CLAIMS  # a warning leaves two minutes: nothing else is waited for


class AnswerInterruptions:
    """The step that acts."""

    def __init__(
        self, view: ClusterView, claims: NodeClaims, interruptions: Interruptions, now: Callable[[], float]
    ) -> None:
        self.view, self.claims, self.interruptions, self.now = view, claims, interruptions, now

    def ours(self, warnings: Sequence[Interruption]) -> Sequence[Interruption]:
        """Those about instances of this cluster's claims: the queue has the news of a whole account.

        All of them while that cannot be known: a claim that is being launched does not name its instance yet.
        """
        try:
            claims = self.view.snapshot(READS).claims.values()
        except NotSeenYet:
            return warnings
        known = {_instance_of(claim) for claim in claims}
        return warnings if "" in known else [each for each in warnings if not known.isdisjoint(each.instances)]

    @activity.defn
    async def answer_interruptions(self, interruptions: tuple[Interruption, ...]) -> tuple[Answered, ...]:
        """Remember what they say of the offerings, then delete the claims of the instances (AWS-129, AWS-130).

        All are tried before one that fails is tried again: a claim that cannot be deleted holds up no other.
        """
        claims: dict[str, list[NodeClaim]] = {}
        for claim in self.view.snapshot(READS).claims.values():
            if claim.provider_id:
                claims.setdefault(_instance_of(claim), []).append(claim)
        found = await asyncio.gather(*[self._all_of(each, claims) for each in interruptions], return_exceptions=True)
        for each in found:
            if isinstance(each, BaseException):
                raise each
        return tuple(each for each in found if not isinstance(each, BaseException))

    async def _all_of(self, interruption: Interruption, claims: Mapping[str, Sequence[NodeClaim]]) -> Answered:
        met = [claim for instance in interruption.instances for claim in claims.get(instance, ())]
        deleted = [claim for claim in met if await self._answer(interruption, claim)]
        return Answered(
            interruption=interruption,
            claims=tuple(reference(claim) for claim in met),
            nodes=tuple(claim.node_name for claim in met),
            deleted=tuple(claim.name for claim in deleted),
        )

    async def _answer(self, interruption: Interruption, claim: NodeClaim) -> bool:
        await self.interruptions.learn_from(interruption, claim)
        if not interruption.ends_instances:
            return False
        if claim.is_true(names.DISRUPTION_REASON):
            await self._annotate(claim, names.INTERRUPTED)  # its pods wait for no others any more
        if claim.deleting_since is not None:
            return False
        if interruption.forceful and not await self._annotate(claim, names.TERMINATION_DEADLINE):
            return False
        await delete_because(self.claims, claim, OF_REASONS[interruption.reason])
        departures.interrupted(claim, interruption.reason)
        return True

    async def _annotate(self, claim: NodeClaim, annotation: str) -> bool:
        """With the present moment, where it has none; whether the claim is there."""
        if annotation in claim.annotations:
            return True
        change = MetadataChange(annotations={annotation: format_time(self.now())})
        return await revise_claim(self.claims, claim, lambda _: change) is not None


def _instance_of(claim: NodeClaim) -> str:
    """The cloud's own id; empty before the launch."""
    return claim.provider_id.rpartition("/")[2]
