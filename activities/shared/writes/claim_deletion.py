"""The one way to delete a NodeClaim. What the deletion means is carried out by TerminateNode."""

from contextlib import suppress

from dovetail.activities.shared.writes.revisions import revise_claim
from dovetail.lifecycle.unfinished import reference
from dovetail.messages.subjects import ClaimRef
from dovetail.messages.writes import Write
from dovetail.model.names import DISRUPTION_REASON, ENDED_BECAUSE, TERMINATION_DEADLINE
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.claim_memory import remembering
from dovetail.model.reasons.endings import Ending, ended_text
from dovetail.model.values.time import format_time, time_or_none
from dovetail.ports.failures import Failure
from dovetail.ports.objects import MetadataChange, NodeClaims


async def delete_claim(claims: NodeClaims, claim: ClaimRef) -> Write:
    """Delete the claim of that UID; the answered write has version 0 if the claim was already gone.

    Another claim with the same name is left alone.
    """
    version = await claims.delete(claim.name, claim.uid)
    return Write(kind="NodeClaim", name=claim.name, uid=claim.uid, version=version)


async def delete_because(claims: NodeClaims, claim: NodeClaim, ending: Ending, words: str = "") -> Write:
    """Write on the claim why it is deleted, then delete it. Where that fails it may stay for long, and no later
    departure has that reason."""
    written = await write_ending(claims, claim, ending, words)
    try:
        return await delete_claim(claims, reference(claim))
    except Failure:
        with suppress(Failure):  # the first failure is raised
            await take_back(claims, written or claim)
        raise


async def take_back(claims: NodeClaims, claim: NodeClaim) -> None:
    """Take off the reason of a deletion that does not happen after all."""
    await revise_claim(claims, claim, _without_ending)


def _without_ending(claim: NodeClaim) -> MetadataChange | None:
    if claim.deleting_since is not None or ENDED_BECAUSE not in claim.annotations:
        return None
    return MetadataChange(annotations={ENDED_BECAUSE: None})


async def hurry(claims: NodeClaims, claim: NodeClaim, until: float, *, pods_alone: bool = False) -> NodeClaim | None:
    """GCR-15: the deadline of a claim that is being deleted; an earlier one stays, a later one is replaced.
    Never before the delete: that may fail, and the node's next departure would force all of its pods. `pods_alone`:
    hooks and volumes go on by what the claim gives itself."""
    text = format_time(until)

    def deadline(found: NodeClaim) -> MetadataChange | None:
        written = time_or_none(found.annotations.get(TERMINATION_DEADLINE, ""))
        if written is not None and written <= until:
            return None
        noted = remembering(found.annotations, pods_deadline=text) if pods_alone else {}
        return MetadataChange(annotations={TERMINATION_DEADLINE: text, **noted})

    return await revise_claim(claims, claim, deadline)


async def write_ending(claims: NodeClaims, claim: NodeClaim, ending: Ending, words: str = "") -> NodeClaim | None:
    """Write the reason, unless the claim has one: it is being deleted already, or a disruption has marked it."""

    def why(found: NodeClaim) -> MetadataChange | None:
        marked = found.is_true(DISRUPTION_REASON) and not found.is_rebooting
        if found.deleting_since is not None or marked:
            return None
        text = ended_text(ending, words)
        return (
            None if found.annotations.get(ENDED_BECAUSE) == text else MetadataChange(annotations={ENDED_BECAUSE: text})
        )

    return await revise_claim(claims, claim, why)
