"""Answers the annotation `dovetail.sh/cancel` on a NodeClaim: its disruption is called off, and an Event says so.

For a person with kubectl and without Temporal. The annotation works before it is answered: planners leave such a claim
alone, and no mark is put on it. Answering it means to tell the disruption that has marked the claim, or, where none
has, to write down that the node rests; then the annotation is taken off.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from temporalio import activity
from temporalio.service import RPCError, RPCStatusCode

from dovetail.activities.shared.look import Look, Write, earliest
from dovetail.activities.shared.revisions import revise_claim
from dovetail.activities.shared.running_workflows import ANSWER_TIMEOUT
from dovetail.disruption.nodes.resting import read_rest, rest_text
from dovetail.disruption.nodes.written_requests import cancel_reason, cancelled_by
from dovetail.messages.workflow_ids import cluster_of
from dovetail.model import names
from dovetail.model.disruption_reasons import DisruptionReason
from dovetail.model.nodes import NodeClaim
from dovetail.model.snapshot import Snapshot
from dovetail.notices.cancels import cancel_too_late, cancelled
from dovetail.ports.objects import MetadataChange, NodeClaims, Notices

AGAIN_SECONDS: Final = 20.0  # a disruption that was signalled is signalled once more after this
UNNAMED: Final = "annotation"  # the author, where the API server does not say who wrote it


class CancelUpkeep:
    """Finds the claims whose disruption a person has called off."""

    def __init__(self, cluster: str, claims: NodeClaims, notices: Notices, now: Callable[[], float]) -> None:
        self.cluster, self.claims, self.notices, self.now = cluster, claims, notices, now
        self.asked: dict[tuple[str, str], float] = {}  # claim UID and owner -> when

    async def look(self, snapshot: Snapshot) -> Look[Write]:
        """The answers that are due."""
        asked = [
            c for c in snapshot.claims.values() if names.CANCEL in c.annotations and snapshot.is_ours(c.node_class)
        ]
        keys = {(claim.uid, claim.annotations.get(names.OWNER, "")) for claim in asked}
        self.asked = {key: at for key, at in self.asked.items() if key in keys}
        due = [write for claim in asked if (write := self._answer(claim)) is not None]
        return Look(due=due, again=earliest(*[at + AGAIN_SECONDS for at in self.asked.values()]))

    def _answer(self, claim: NodeClaim) -> Write | None:
        owner = claim.annotations.get(names.OWNER, "")
        if claim.deleting_since is not None:
            return partial(self._too_late, claim)
        if not owner:
            return partial(self._rest, claim)
        if self.now() - self.asked.get((claim.uid, owner), 0.0) < AGAIN_SECONDS:
            return None
        return partial(self._tell, claim, owner)

    async def _tell(self, claim: NodeClaim, owner: str) -> None:
        """The disruption undoes what it did, takes its mark off and lets the node rest; the next look answers."""
        self.asked[claim.uid, owner] = self.now()
        if cluster_of(owner) != self.cluster:
            return  # whose mark this is, is not ours to say
        handle = activity.client().get_workflow_handle(owner)
        try:
            asked = (cancel_reason(claim), await self._author(claim))
            await handle.signal("cancel", args=asked, rpc_timeout=ANSWER_TIMEOUT)
        except RPCError as error:
            if error.status != RPCStatusCode.NOT_FOUND:  # it has ended, and the Caretaker takes its mark off
                raise

    async def _rest(self, claim: NodeClaim) -> None:
        """Nothing has marked it: a plan that holds it is dropped because it rests, for whatever reason it was made."""
        words = await self._words(claim)
        done = await revise_claim(self.claims, claim, self._rested)
        if done is not None:
            await self.notices.publish(cancelled(done, words, read_rest(done).until))

    def _rested(self, claim: NodeClaim) -> MetadataChange | None:
        if names.CANCEL not in claim.annotations or claim.annotations.get(names.OWNER):
            return None
        annotations: dict[str, str | None] = {names.CANCEL: None, names.CANCEL_BY: None}
        if names.REPLACE in claim.annotations:  # who calls the replacement off does not ask for it any more
            annotations.update(dict.fromkeys(names.REPLACE_ANNOTATIONS))
        if read_rest(claim).until <= self.now():
            annotations[names.REST] = rest_text(claim, self.now(), DisruptionReason.EMPTY, cancelled=True)
        return MetadataChange(annotations=annotations)

    async def _too_late(self, claim: NodeClaim) -> None:
        words = await self._words(claim)
        done = await revise_claim(self.claims, claim, _without_cancel)
        if done is not None:
            await self.notices.publish(cancel_too_late(claim, words))

    async def _words(self, claim: NodeClaim) -> str:
        """The reason, and who gave it."""
        return f"{cancel_reason(claim)} (by {await self._author(claim)})"

    async def _author(self, claim: NodeClaim) -> str:
        """As `dovetail cancel` wrote it down, else the program by whose name the API server has the annotation."""
        return cancelled_by(claim) or await self.claims.annotated_by(claim.name, names.CANCEL) or UNNAMED


def _without_cancel(claim: NodeClaim) -> MetadataChange | None:
    if names.CANCEL not in claim.annotations:
        return None
    return MetadataChange(annotations={names.CANCEL: None, names.CANCEL_BY: None})
