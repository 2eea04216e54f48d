"""Terminates the instance of a departure and looks until it is gone.

One step for the whole wait, with a look every 5 s (TRM-36): a step that failed until the next look would be billed for
each. Terminating is the look: it is safe to repeat, and only "gone" ends it. An empty providerID does not prove that
nothing was launched, so the cloud is then asked by the claim's UID (DUR-3).
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import count
from typing import Final

from temporalio import activity

from dovetail.activities.shared.every_step.heartbeats import keep, kept, report
from dovetail.activities.shared.waits.repeated_looks import looks
from dovetail.activities.shared.writes.known_claims import KnownClaims
from dovetail.activities.shared.writes.revisions import set_conditions
from dovetail.activities.termination.begin_and_end_departure import BeginAndEndDeparture, NodesHeld
from dovetail.activities.termination.holds import HoldMemory, LeavingClaim
from dovetail.lifecycle.conditions import true
from dovetail.lifecycle.initialization import is_ready
from dovetail.messages.outcomes import TerminationOutcome
from dovetail.messages.subjects import ClaimRef, Departure
from dovetail.messages.writes import Write, claim_write
from dovetail.model.names import (
    DRAINED,
    INSTANCE_TERMINATING,
    PRE_TERMINATE_HOOK,
    REGISTERED_CONDITION,
    VOLUMES_DETACHED,
)
from dovetail.model.nodes import Condition, NodeClaim
from dovetail.model.own.drain_rules import Blocker
from dovetail.ports.cloud import Cloud
from dovetail.ports.failures import Failure, Refused
from dovetail.telemetry.log import departures
from dovetail.telemetry.log.saying import few
from dovetail.telemetry.metrics.karpenters.lifecycle import instance_terminated, node_drained
from dovetail.termination import timing
from dovetail.termination.deadline import deadline_of
from dovetail.termination.evictions import plan_evictions
from dovetail.termination.forced import forced_of
from dovetail.termination.hooks import Hook, words_of
from dovetail.termination.ladder import DrainHold, drain_reason

_MOMENTS: Final = "moments "  # of what a step keeps for its next try


class TerminateInstance:
    def __init__(
        self,
        known: KnownClaims,
        cloud: Cloud,
        now: Callable[[], float],
        departing: BeginAndEndDeparture,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.known, self.claims, self.cloud, self.now, self.pause = known, known.claims, cloud, now, pause
        self.departing, self.holds = departing, departing.holds

    @activity.defn
    async def terminate_instance(self, departure: Departure) -> TerminationOutcome:
        """Terminate it; done once the cloud says that it is gone. Nothing is waited for then, so the same step takes
        the finalizers off; where others hold a Node, the step after this one does."""
        claim = await self.known.leaving(departure.claim)
        ended = await self._end(departure, claim)
        try:
            released = await self.departing.release(departure, await self.known.find(departure.claim))
        except NodesHeld:
            return ended  # this step must not end the instance again with every try
        return replace(ended, released=True, writes=(*ended.writes, *released.writes))

    async def _end(self, departure: Departure, claim: NodeClaim | None) -> TerminationOutcome:
        provider_id = departure.provider_id or await self._launched(departure.claim.uid)
        if not provider_id:
            return TerminationOutcome(message="nothing was ever launched for it")
        before = kept()
        if provider_id in before:  # only the release was left
            return replace(_when(before), message=f"{provider_id} was gone before")
        if claim is None or claim.provider_id != provider_id:
            await self._refuse_anothers(departure.claim, provider_id)
        if claim is not None:
            await self._refuse_while_pods_leave(claim, provider_id)
        await self._wait_for_hooks(departure)
        asked = looked = self.now()
        for look in count(1):
            answer = await self._terminate(departure, provider_id)
            last, looked = looked, self.now()
            writes = await self._write_condition(departure, answer) if look == 1 or answer == "gone" else ()
            if answer == "gone":
                break
            report(f"instance {provider_id} is terminating")
            await self.pause(timing.pause_after_look(look))
        departures.terminated_instance(departure.claim.name, provider_id)
        ended = TerminationOutcome(
            message=f"{provider_id} is gone", writes=writes, asked=asked, gone=(last + looked) / 2
        )
        keep(provider_id)
        keep(f"{_MOMENTS}{ended.asked} {ended.gone}")
        return ended

    async def _terminate(self, departure: Departure, provider_id: str) -> str:
        """What the cloud answers; where it does not, the claim says at least how far its leaving has come."""
        try:
            return await self.cloud.terminate(provider_id, departure.claim.name)
        except Failure:
            await self._say_emptied(departure)
            raise

    async def _wait_for_hooks(self, departure: Departure) -> None:
        """Wait for hooks. An instance that has never joined has nothing that a hook could keep, nor has one that is
        gone, and one that is already terminating is not held up."""
        memory, asked = HoldMemory(), float("-inf")
        async for _ in looks(self.pause):
            claim = await self.known.find(departure.claim)
            hooks = self._hooks(claim, departure)
            if not hooks:
                claim = await self.known.live_unless_cached(departure.claim)
                hooks = self._hooks(claim, departure)
            if claim is None or not hooks:
                return
            began = self._emptied_at(claim, departure)
            claim = await self._say_emptied(departure) or claim
            words = f"waiting for {words_of(hooks)}"
            hold = DrainHold(blockers=frozenset({Blocker.HOOK_WAITS}), reason=drain_reason(claim), says=words)
            nodes = self.known.nodes_of(claim.provider_id)
            if self.now() - asked >= timing.INSTANCE_LOOK and not any(is_ready(node) for node in nodes):
                asked = self.now()
                if await self._is_gone(departure.provider_id):
                    return
            await self.holds.look(LeavingClaim(claim=claim, began=began, nodes=nodes, hold=hold), memory)
            report(words + (f"; {memory.words}" if memory.words else ""))

    async def _refuse_while_pods_leave(self, claim: NodeClaim, provider_id: str) -> None:
        """Refuse to end an instance that is still being drained, whatever the request says. Pods that have come since
        the deletion do not count: that they leave is nobody's promise. Refused for good: the next departure begins with
        the drain."""
        deadline, since, force = deadline_of(claim), claim.deleting_since or self.now(), forced_of(claim)
        of_force = None if force is None else force.deadline
        if not claim.is_true(REGISTERED_CONDITION) or (deadline is not None and self.now() > deadline):
            return
        for node in self.known.nodes_of(provider_id):
            waiting = plan_evictions(self.known.lookups.pods_on(node.name), deadline, self.now(), of_force).waiting
            if waiting:  # the cache may lag
                there = await self.holds.pods.list_on(node.name)
                waiting = plan_evictions(there, deadline, self.now(), of_force).waiting
            left = [pod.key for pod in waiting if pod.created <= since]
            if left and node.created <= since and not await self._is_gone(provider_id):
                raise Refused(f"NodeClaim/{claim.name}", f"pods are still to leave its node: {few(left)}")

    async def _is_gone(self, provider_id: str) -> bool:
        """Whether the cloud says so (TRM-5); one that does not answer is no proof."""
        try:
            return provider_id != "" and await self.cloud.find(provider_id=provider_id) is None
        except Failure:
            return False

    def _hooks(self, claim: NodeClaim | None, departure: Departure) -> tuple[Hook, ...]:
        if claim is None or not claim.is_true(REGISTERED_CONDITION):
            return ()
        if claim.is_true(INSTANCE_TERMINATING):
            return ()
        return self.holds.hooks(claim, PRE_TERMINATE_HOOK, self._emptied_at(claim, departure), deadline_of(claim))

    def _emptied_at(self, claim: NodeClaim, departure: Departure) -> float:
        """The moment from which hooks of the instance's end are waited for: its pods and volumes are off, or its
        deletion; now, where neither is known, or where the drain has just ended and the claim does not say so yet: the
        time of a drain that took long is none of theirs."""
        if departure.emptied and not claim.is_true(VOLUMES_DETACHED):
            return self.now()
        found = [claim.condition(kind) for kind in (VOLUMES_DETACHED, DRAINED)]
        moments = [claim.deleting_since, *(condition.changed for condition in found if condition is not None)]
        return max([moment for moment in moments if moment], default=self.now())

    async def _refuse_anothers(self, ref: ClaimRef, provider_id: str) -> None:
        """Refuse an instance whose claim is not this one, if the claim itself names none: an id in a request is only a
        text."""
        found = await self.cloud.find(provider_id=provider_id)
        if found is not None and found.claim_uid != ref.uid:
            raise Refused(f"NodeClaim/{ref.name}", f"{provider_id} is not its instance, and is not terminated")

    async def _launched(self, claim_uid: str) -> str:
        instance = await self.cloud.find(claim_uid=claim_uid) if claim_uid else None
        return "" if instance is None else instance.provider_id

    async def _write_condition(self, departure: Departure, answer: str) -> tuple[Write, ...]:
        """InstanceTerminating on the claim, once, with what was not said before; how long it took is counted at the
        end."""
        claim = await self.known.find(departure.claim)
        if claim is None:
            return ()
        if answer == "gone":
            instance_terminated(claim, self.now())
        if claim.is_true(INSTANCE_TERMINATING):
            return ()
        written = await self._say(departure, claim, true(INSTANCE_TERMINATING, self.now()))
        return () if written is None else (claim_write(written),)

    async def _say_emptied(self, departure: Departure) -> NodeClaim | None:
        """Write that its nodes are drained and its volumes off, before its instance ends; None where it is gone."""
        claim = await self.known.find(departure.claim)
        return claim if claim is None or not departure.emptied else await self._say(departure, claim)

    async def _say(self, departure: Departure, claim: NodeClaim, *conditions: Condition) -> NodeClaim | None:
        """These conditions, and those that the drain has left to this step."""
        now = self.now()
        emptied = (true(DRAINED, now), true(VOLUMES_DETACHED, now)) if departure.emptied else ()
        written = await set_conditions(self.claims, claim, *emptied, *conditions)
        if written is not None and emptied and not claim.is_true(DRAINED):
            node_drained(claim)
            departures.drained(written)
        return written


def _when(kept: frozenset[str]) -> TerminationOutcome:
    """The moments that an earlier try has seen, as far as its heartbeat has them."""
    found = next((text.removeprefix(_MOMENTS).split() for text in kept if text.startswith(_MOMENTS)), None)
    return TerminationOutcome() if found is None else TerminationOutcome(asked=float(found[0]), gone=float(found[1]))
