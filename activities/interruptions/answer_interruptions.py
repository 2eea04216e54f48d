"""Answers the cloud's warnings by deleting the claims of the instances that are about to end."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from temporalio import activity

from dovetail.activities.interruptions.doubts import (
    LEAST,
    TURN_SECONDS,
    Met,
    apart,
    beyond,
    instance_of,
    is_fresh,
    is_plausible,
    met_by,
)
from dovetail.activities.shared.writes.claim_deletion import delete_because, hurry, take_back, write_ending
from dovetail.activities.shared.writes.revisions import revise_claim
from dovetail.lifecycle.unfinished import reference
from dovetail.messages.interruptions import Answered, Interruption, Warned
from dovetail.messages.writes import claim_write
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.objects.watched_kinds import CLAIMS
from dovetail.model.reasons.endings import OF_REASONS
from dovetail.model.values.time import format_time
from dovetail.ports.failures import NotSeenYet, Postponed, Unreachable
from dovetail.ports.interruptions import Interruptions
from dovetail.ports.objects import MetadataChange, NodeClaims
from dovetail.ports.view import ClusterView
from dovetail.telemetry.log import departures
from dovetail.telemetry.log.saying import few
from dovetail.telemetry.metrics.ours.outcomes import not_borne_out

READS = CLAIMS  # a warning leaves two minutes: nothing else is waited for
AGAIN_SECONDS = 5.0
CONFIRM_SECONDS = 5.0
SEEN_SECONDS = 2.0  # within which a cache shows what was written a moment ago

_log = logging.getLogger(__name__)


class Outcome(NamedTuple):
    """What was met and answered, and whether its claim is deleted for it."""

    met: Met
    deleted: bool


class AnswerInterruptions:
    def __init__(
        self, view: ClusterView, claims: NodeClaims, interruptions: Interruptions, now: Callable[[], float]
    ) -> None:
        self.view, self.claims, self.interruptions, self.now = view, claims, interruptions, now
        self._believed: dict[str, float] = {}  # UID -> when: answers side by side have the room of one

    def ours(self, warnings: Sequence[Interruption]) -> Sequence[Interruption]:
        """The warnings about instances of this cluster's claims, because the queue carries those of a whole account.
        All of them while that cannot be known: a claim that is being launched does not name its instance yet."""
        try:
            claims = self.view.snapshot(READS).claims.values()
        except NotSeenYet:
            return warnings
        known = {instance_of(claim) for claim in claims}
        return warnings if "" in known else [each for each in warnings if not known.isdisjoint(each.instances)]

    @activity.defn
    async def answer_interruptions(self, interruptions: tuple[Interruption, ...]) -> tuple[Answered, ...]:
        """Remember what they say about the offerings, then delete the claims of the instances (AWS-129, AWS-130).

        All are tried before one that fails is retried: a claim that cannot be deleted holds up no other, and a warning
        that is believed does not wait until the cloud has confirmed the others.
        """
        fleet = [claim for claim in self.view.snapshot(READS).claims.values() if claim.provider_id]
        now = self.now()
        self._believed = {uid: at for uid, at in self._believed.items() if now - at < TURN_SECONDS}
        sure, doubted = apart(met_by(interruptions, fleet), fleet, self._believed, now)
        for each in sure:
            if each.ends_claim and is_plausible(each, now):
                self._believed.setdefault(each.claim.uid, now)
        late = await self._beyond([each for each in sure if each.ends_claim and is_plausible(each, now)])
        doubted += [each for each in sure if each.claim.uid in late]
        sure = [each for each in sure if each.claim.uid not in late]
        both = await asyncio.gather(self._each(sure), self._borne_out(doubted), return_exceptions=True)
        outcomes: list[Outcome] = []
        for found in both:
            if isinstance(found, BaseException):
                raise found
            outcomes += found
        return tuple(_answered(each, [one for one in outcomes if one.met.warning is each]) for each in interruptions)

    async def _beyond(self, ends: Sequence[Met]) -> set[str]:
        """The UIDs of the claims that are not believed in this turn because other workers have believed as many as may
        go. Each says on its claims what ends them, and counts once it sees that; a cache that does not show it in time
        holds up no answer."""
        if not ends or len(self._believed) <= LEAST:
            return set()
        known = {each.claim.uid: (each.claim, OF_REASONS[each.warning.reason]) for each in ends}
        written = await asyncio.gather(*[write_ending(self.claims, *one) for one in known.values()])
        mine = {claim.uid: claim for claim in written if claim is not None}
        with suppress(NotSeenYet, TimeoutError):
            async with asyncio.timeout(SEEN_SECONDS):
                await self.view.catch_up([claim_write(claim) for claim in mine.values()])
        fleet = [claim for claim in self.view.snapshot(READS).claims.values() if claim.provider_id]
        versions = {uid: int(claim.resource_version) for uid, claim in mine.items()}
        late = beyond(fleet, versions, self._believed, self.now())
        for uid in late:
            self._believed.pop(uid, None)
        await asyncio.gather(*[take_back(self.claims, mine[uid]) for uid in late])
        return late

    async def _borne_out(self, doubted: Sequence[Met]) -> list[Outcome]:
        """The warnings that the cloud confirms. The rest is tried again while it is fresh, and then dropped."""
        if not doubted:
            return []
        confirmed = await self._confirmed(frozenset(each.warned for each in doubted))
        outcomes = await self._each([each for each in doubted if each.warned in confirmed])
        rest = [each for each in doubted if each.warned not in confirmed]
        waiting = [each for each in rest if is_fresh(each.warning, self.now())]
        if waiting:
            raise Postponed("warnings", f"the cloud does not confirm them yet: {_words(waiting)}", AGAIN_SECONDS)
        if rest:
            _log.warning("dropped warnings that the cloud does not confirm: %s", _words(rest))
        for each in rest:
            not_borne_out(each.warning.reason)
        return outcomes

    async def _confirmed(self, warned: frozenset[Warned]) -> frozenset[Warned]:
        """Those that the cloud confirms. One that hangs is not waited for: its answer would come after minutes, and who
        reads the queue without Temporal has a few hands for all its messages."""
        try:
            async with asyncio.timeout(CONFIRM_SECONDS):
                return await self.interruptions.borne_out(warned)
        except TimeoutError:
            raise Unreachable("warnings", f"the cloud does not answer whether {len(warned)} are true") from None

    async def _each(self, met: Sequence[Met]) -> list[Outcome]:
        """Answer all of them; raises the first failure."""
        found = await asyncio.gather(*[self._answer(*each) for each in met], return_exceptions=True)
        outcomes: list[Outcome] = []
        for each, deleted in zip(met, found, strict=True):
            if isinstance(deleted, BaseException):
                raise deleted
            outcomes.append(Outcome(each, deleted))
        return outcomes

    async def _answer(self, interruption: Interruption, claim: NodeClaim) -> bool:
        await self.interruptions.learn_from(interruption, claim)
        if not interruption.ends_instances:
            return False
        if Met(interruption, claim).shortens(self.now()):
            await self._note(claim)
        ending = OF_REASONS[interruption.reason]
        if claim.deleting_since is None:
            await delete_because(self.claims, claim, ending)
            departures.interrupted(claim, interruption.reason)
        elif not _is_again() or claim.annotations.get(names.ENDED_BECAUSE) != ending:
            return False
        if interruption.forceful:
            await hurry(self.claims, claim, self.now())
        return True

    async def _note(self, claim: NodeClaim) -> None:
        """Say on the claim that its pods wait for no others any more, nor for hooks."""
        change = MetadataChange(annotations={names.INTERRUPTED: format_time(self.now())})
        await revise_claim(self.claims, claim, lambda _: change)


def _answered(interruption: Interruption, outcomes: Sequence[Outcome]) -> Answered:
    return Answered(
        interruption=interruption,
        claims=tuple(reference(each.met.claim) for each in outcomes),
        nodes=tuple(each.met.claim.node_name for each in outcomes),
        deleted=tuple(each.met.claim.name for each in outcomes if each.deleted),
    )


def _words(met: Sequence[Met]) -> str:
    return few([f"NodeClaim {each.claim.name} ({each.warning.reason.replace('_', ' ')})" for each in met])


def _is_again() -> bool:
    """Whether an earlier attempt of this step has done a part of it."""
    return activity.in_activity() and activity.info().attempt > 1
