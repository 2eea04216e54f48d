"""Calls disruptions off: for the annotation `dovetail.sh/cancel` on a NodeClaim, for a hook that denies one, and for a
Freeze that says so.

The annotation is for people with kubectl and without Temporal. It takes effect before it is answered: planners leave
such a claim alone, and no mark is put on it. The answer is to signal the disruption that has marked the claim or, if
none has, to write down that the node rests; then the annotation is removed. A Freeze with `inFlight: Undo` signals each
disruption that has marked a claim and has not deleted it; a hook that denies a disruption signals that of its own
claim. A reboot has no owner: the node rests, and the step that advances the reboot ends it, unless the cloud may have
been asked.
"""

import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from temporalio import activity
from temporalio.service import RPCError, RPCStatusCode

from dovetail.activities.shared.cancel_authors import called_off_by
from dovetail.activities.shared.looks.look import Look, Write, earliest
from dovetail.activities.shared.running_workflows import ANSWER_TIMEOUT
from dovetail.activities.shared.writes.revisions import revise_claim
from dovetail.disruption.nodes.resting import called_off, read_rest, rest_by_order
from dovetail.disruption.nodes.written_requests import cancel_reason, cancelled_by
from dovetail.messages.workflow_ids import cluster_of
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.claim_memory import CalledOff, remembering
from dovetail.model.snapshot import Snapshot
from dovetail.notices.cancels import cancel_too_late, cancelled
from dovetail.ports.objects import MetadataChange, NodeClaims, Notices
from dovetail.rules.pause.pauses import undoing_freeze
from dovetail.rules.said import Cause
from dovetail.termination.hooks import denial

_log = logging.getLogger(__name__)

AGAIN_SECONDS: Final = 20.0  # a disruption that was signalled is signalled once more after this


class CancelUpkeep:
    """Finds the claims whose disruption a person has called off."""

    def __init__(self, cluster: str, claims: NodeClaims, notices: Notices, now: Callable[[], float]) -> None:
        self.cluster, self.claims, self.notices, self.now = cluster, claims, notices, now
        self.asked: dict[tuple[str, str], float] = {}  # claim UID and owner -> when
        self.unknown: set[str] = set()  # UIDs of claims whose reason is not known, which was said

    async def look(self, snapshot: Snapshot) -> Look[Write]:
        asked = [
            c for c in snapshot.claims.values() if names.CANCEL in c.annotations and snapshot.is_ours(c.node_class)
        ]
        others = [*_denied(snapshot, self.now()), *self._frozen(snapshot)]
        to_call_off = (*asked, *[claim for claim, *_ in others])
        keys = {(claim.uid, claim.annotations.get(names.OWNER, "")) for claim in to_call_off}
        self.asked = {key: at for key, at in self.asked.items() if key in keys}
        self.unknown.intersection_update(claim.uid for claim in snapshot.claims.values())
        due = [write for claim in asked if (write := self._answer(claim)) is not None]
        for claim, why, by in others:
            if not claim.annotations.get(names.OWNER):
                due.append(partial(self._rest, claim, why, by))
            elif self._is_due(claim):
                due.append(partial(self._signal, claim, why, by))
        begins = (freeze.begins for freeze in snapshot.freezes.values() if freeze.undoes)
        coming = (moment for moment in begins if moment is not None and moment > self.now())
        return Look(due=due, again=earliest(*[at + AGAIN_SECONDS for at in self.asked.values()], *coming))

    def _answer(self, claim: NodeClaim) -> Write | None:
        owner = claim.annotations.get(names.OWNER, "")
        if claim.deleting_since is not None or claim.is_reboot_ordered:
            return partial(self._too_late, claim)
        if not owner:
            return partial(self._rest, claim, cancel_reason(claim))
        return partial(self._signal, claim, cancel_reason(claim)) if self._is_due(claim) else None

    def _is_due(self, claim: NodeClaim) -> bool:
        """Whether its disruption was not signalled a short time ago."""
        last = self.asked.get((claim.uid, claim.annotations[names.OWNER]))
        return last is None or self.now() - last >= AGAIN_SECONDS

    async def _signal(self, claim: NodeClaim, why: str, by: str = "") -> None:
        """The disruption undoes what it did, takes its mark off and lets the node rest; the next look answers."""
        owner = claim.annotations[names.OWNER]
        self.asked[claim.uid, owner] = self.now()
        if cluster_of(owner) != self.cluster:
            return  # whose mark this is, is not ours to say
        handle = activity.client().get_workflow_handle(owner)
        try:
            await handle.signal("cancel", args=(why, by or await self._author(claim)), rpc_timeout=ANSWER_TIMEOUT)
        except RPCError as error:
            if error.status != RPCStatusCode.NOT_FOUND:  # it has ended, and the Caretaker takes its mark off
                raise

    async def _rest(self, claim: NodeClaim, why: str, by: str = "") -> None:
        """Nothing has marked it: a plan that holds it is dropped because it rests, for whatever reason it was made, and
        so is a reboot."""
        by = by or await self._author(claim)
        words = f"{why} (by {by})"
        done = await revise_claim(self.claims, claim, partial(self._rested, why, by))
        if done is not None and names.CANCEL not in done.annotations and read_rest(done).until > self.now():
            await self.notices.publish(cancelled(done, words, read_rest(done).until))

    def _rested(self, why: str, by: str, claim: NodeClaim) -> MetadataChange | None:
        if claim.annotations.get(names.OWNER) or claim.is_reboot_ordered:
            return None
        if names.CANCEL not in claim.annotations and not _is_rebooting(claim, self.now()):
            return None
        annotations: dict[str, str | None] = {names.CANCEL: None, names.CANCEL_BY: None}
        annotations[names.REST] = rest_by_order(claim, self.now())
        annotations.update(remembering(claim.annotations, called_off=CalledOff(why=why, by=by)))
        if names.REPLACE in claim.annotations:  # who calls the replacement off does not ask for it any more
            annotations.update(dict.fromkeys(names.REPLACE_ANNOTATIONS))
        return MetadataChange(annotations=annotations)

    async def _too_late(self, claim: NodeClaim) -> None:
        words = f"{cancel_reason(claim)} (by {await self._author(claim)})"
        done = await revise_claim(self.claims, claim, _without_cancel)
        if done is not None:
            await self.notices.publish(cancel_too_late(claim, words))

    def _frozen(self, snapshot: Snapshot) -> Iterator[tuple[NodeClaim, str, str]]:
        """The claims whose disruption a Freeze calls off, why, and by which Freeze. Disruptions that have deleted their
        claim continue; if a person calls one off too, the person's order is carried out."""
        now = self.now()
        freezes = [freeze for freeze in snapshot.freezes.values() if freeze.undoes and freeze.holds(now)]
        for claim in snapshot.claims.values() if freezes else ():
            reason = claim.condition(names.DISRUPTION_REASON)
            if reason is None or not _can_be_called_off(snapshot, claim, now) or denial(claim) is not None:
                continue
            cause = Cause.of_mark(reason.reason)
            if cause is None:
                self._say_unknown(claim, reason.reason)
                continue
            freeze = undoing_freeze(freezes, cause.activity, now)
            if freeze is not None:
                yield claim, freeze.reason or f"Freeze {freeze.name}", f"Freeze {freeze.name}"

    def _say_unknown(self, claim: NodeClaim, reason: str) -> None:
        if claim.uid in self.unknown:
            return
        self.unknown.add(claim.uid)
        said = "NodeClaim %s is disrupted as %s, a reason that this version does not know: no Freeze calls it off"
        _log.warning(said, claim.name, reason)

    async def _author(self, claim: NodeClaim) -> str:
        return await called_off_by(self.claims, claim.name, cancelled_by(claim))


def _denied(snapshot: Snapshot, now: float) -> Iterator[tuple[NodeClaim, str, str]]:
    """The claims whose disruption a hook denies, why, and by which hook."""
    for claim in snapshot.claims.values():
        hook = denial(claim)
        if hook is not None and _can_be_called_off(snapshot, claim, now):
            yield claim, hook.words, f"hook {hook.name}"


def _can_be_called_off(snapshot: Snapshot, claim: NodeClaim, now: float) -> bool:
    """Whether a disruption has marked it and has not deleted it, or a reboot has begun, and no person has called that
    off."""
    begun = bool(claim.annotations.get(names.OWNER)) or _is_rebooting(claim, now)
    return (
        begun
        and claim.deleting_since is None
        and names.CANCEL not in claim.annotations
        and snapshot.is_ours(claim.node_class)
    )


def _is_rebooting(claim: NodeClaim, now: float) -> bool:
    """Whether a reboot has begun that can be called off and is not: one that a hook denies ends by itself."""
    return claim.is_rebooting and not claim.is_reboot_ordered and called_off(claim, now) is None


def _without_cancel(claim: NodeClaim) -> MetadataChange | None:
    if names.CANCEL not in claim.annotations:
        return None
    return MetadataChange(annotations={names.CANCEL: None, names.CANCEL_BY: None})
