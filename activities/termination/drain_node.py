"""Brings the pods off a node, politely while there is time.

Second step of TerminateNode and ReleaseNode: one long wait that looks at the pods again each turn, so that a restart
forgets nothing that matters (D-12). Before it says "drained" it asks the API server itself. Ends early where the
instance is gone, because nobody would ever answer (T-5). What still holds the node stands in the activity's progress.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from temporalio import activity

from dovetail.activities.shared.heartbeats import report
from dovetail.activities.termination.evictor import EvictionOutcome, EvictionRequest, Evictor
from dovetail.lifecycle.initialization import is_ready
from dovetail.messages.outcomes import DrainOutcome
from dovetail.messages.subjects import Departure
from dovetail.model.names import DRAINED
from dovetail.model.nodes import NodeClaim
from dovetail.model.pod_rules import format_moment
from dovetail.model.pods import Pod
from dovetail.notices.claims import claim_deadline, unreadable_deadline
from dovetail.notices.nodes import failed_draining, node_deadline
from dovetail.notices.pods import protection_notice
from dovetail.ports.cloud import Cloud
from dovetail.ports.failures import Failure, NotReadable
from dovetail.ports.view import ClusterLookups
from dovetail.termination import deadline as deadlines
from dovetail.termination.evictions import Evictions, plan_evictions

MINIMUM_SECONDS: Final = 5.0  # T-17: pods bound before the scheduler saw the taint still turn up
LOST_LOOK_SECONDS: Final = 10.0  # between two questions whether a silent node's instance is there
OVERDUE_SECONDS: Final = 60.0  # past the deadline even a stuck pod holds nothing any more (T-13)
COMPLAIN_SECONDS: Final = 5.0  # T-16 upstream warns 20 ms into every normal drain
NAMED: Final = 5  # pods by name in the progress
FIRST_BACK_OFF: Final = 0.1
LONGEST_BACK_OFF: Final = 10.0


@dataclass(slots=True)
class _Progress:
    """What one attempt remembers: only how long to leave a pod alone, and what to tell."""

    started: float
    again: dict[str, float] = field(default_factory=dict)  # pod UID -> when to ask again
    back_off: dict[str, float] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)
    cause: str = ""
    looked: float = float("-inf")  # when the cloud was last asked for the instance
    rested_at: float = 0.0  # when it may be called drained at the earliest

    def is_due(self, pod: Pod, now: float) -> bool:
        return now >= self.again.get(pod.uid, 0.0)

    def note(self, pod: Pod, asked: EvictionOutcome, now: float) -> None:
        """100 ms doubling to 10 s for each pod that stays (T-26)."""
        wait = min(LONGEST_BACK_OFF, self.back_off.get(pod.uid, FIRST_BACK_OFF / 2) * 2)
        if asked.leaving:
            wait = max(wait, 1.0)  # the watch will show it by then
        self.back_off[pod.uid], self.again[pod.uid], self.why[pod.uid] = wait, now + wait, asked.why
        self.cause = asked.cause

    def pause(self, now: float) -> float:
        """Until the next pod is due or the rest is over, at most a second."""
        due = [moment - now for moment in (*self.again.values(), self.rested_at) if moment > now]
        return max(FIRST_BACK_OFF, min([1.0, *due]))


class Draining:
    """The wait for pods to leave."""

    def __init__(
        self,
        lookups: ClusterLookups,
        evicting: Evictor,
        cloud: Cloud,
        now: Callable[[], float],
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.lookups, self.evicting, self.cloud, self.now, self.pause = lookups, evicting, cloud, now, pause

    @activity.defn
    async def drain_node(self, departure: Departure) -> DrainOutcome:
        """Until nothing waits on any of the departure's nodes."""
        progress = _Progress(started=self.now())
        while True:
            nodes = tuple(name for name in departure.nodes if self.lookups.node(name) is not None)
            if not nodes:
                return DrainOutcome(message="the node is gone")
            if await self._instance_lost(departure, progress):
                return DrainOutcome(message="the instance is gone", instance_gone=True)
            deadline, rested = await self._deadline(departure), self._rested(departure, progress)
            try:
                turns = await self._turns(nodes, deadline, rested)
            except NotReadable as failure:
                if deadline is not None and self.now() > deadline + OVERDUE_SECONDS:
                    return DrainOutcome(message=f"the deadline has passed; one pod could not be read: {failure}")
                await self._say_unreadable(nodes, failure)
                continue
            if rested and not any(turn.waiting for turn in turns.values()):
                return DrainOutcome(message="drained")
            for name, turn in turns.items():
                await self._carry_out(turn, departure, (deadline, progress))
                await self._complain(name, turn, progress)
            report(_told(turns, progress.why))
            await self.pause(progress.pause(self.now()))

    async def _turns(self, nodes: tuple[str, ...], deadline: float | None, rested: bool) -> dict[str, Evictions]:
        """By the cache; where that shows nothing any more, by the API server, before "drained" is said."""
        turns = {name: plan_evictions(self.lookups.pods_on(name), deadline, self.now()) for name in nodes}
        if any(turn.waiting for turn in turns.values()) or not rested:
            return turns
        return {name: plan_evictions(await self.evicting.live_pods(name), deadline, self.now()) for name in nodes}

    async def _say_unreadable(self, nodes: tuple[str, ...], failure: NotReadable) -> None:
        """A pod that cannot be read may be one that must not go: nothing is evicted beside it, and people are told."""
        report(f"waiting for a pod that cannot be read: {failure}")
        found = [self.lookups.node(name) for name in nodes]
        await self.evicting.tell(*[failed_draining(node, str(failure)) for node in found if node is not None])
        await self.pause(1.0)

    async def _carry_out(self, turn: Evictions, departure: Departure, given: tuple[float | None, _Progress]) -> None:
        """Everything that is due, side by side."""
        deadline, progress = given
        now, pool, reason = self.now(), departure.claim.pool, departure.reason
        due = [pod for pod in turn.evict if progress.is_due(pod, now)]
        asks = [
            self.evicting.evict(pod, EvictionRequest(pool=pool, reason=reason, again=pod.uid in progress.again))
            for pod in due
        ]
        if deadline is not None:
            forced = [pod for pod in turn.force if progress.is_due(pod, now)]
            asks += [self.evicting.force(pod, deadline, reason) for pod in forced]
            due += forced
        for pod, asked in zip(due, await asyncio.gather(*asks), strict=True):
            progress.note(pod, asked, self.now())
        told = [protection_notice(pod, now) for pod in turn.waiting]
        await self.evicting.tell(*[notice for notice in told if notice is not None])

    def _claim(self, departure: Departure) -> NodeClaim | None:
        claim = self.lookups.claim(departure.claim.name) if departure.claim.uid else None
        return claim if claim is not None and claim.uid == departure.claim.uid else None

    async def _deadline(self, departure: Departure) -> float | None:
        """As fixed at the start; an earlier one written since counts as well, a later one does not (I7)."""
        claim = self._claim(departure)
        if claim is None:
            return departure.deadline
        bad = deadlines.unreadable_deadline(claim)
        if bad is not None:
            await self.evicting.tell(unreadable_deadline(claim, bad))
        deadline = deadlines.tighter(departure.deadline, deadlines.written_deadline(claim))
        if deadline is not None:
            found = [self.lookups.node(name) for name in departure.nodes]
            moment = format_moment(deadline)
            told = [node_deadline(node, moment) for node in found if node is not None]
            await self.evicting.tell(claim_deadline(claim, moment), *told)
        return deadline

    def _rested(self, departure: Departure, progress: _Progress) -> bool:
        """T-17: five seconds since the claim says Draining. A node without a claim waits for nothing (T-10)."""
        if not departure.claim.uid:
            return True
        claim = self._claim(departure)
        condition = None if claim is None else claim.condition(DRAINED)
        if condition is not None and condition.status == "True":
            return True
        since = progress.started if condition is None else condition.changed
        progress.rested_at = since + MINIMUM_SECONDS
        return self.now() >= progress.rested_at

    async def _instance_lost(self, departure: Departure, progress: _Progress) -> bool:
        """T-5, as long as the drain lasts. NotReady alone is not enough: the cloud must say that it is gone."""
        found = [self.lookups.node(name) for name in departure.nodes]
        silent = not any(is_ready(node) for node in found if node is not None)
        if not silent or not departure.provider_id or self.now() - progress.looked < LOST_LOOK_SECONDS:
            return False
        progress.looked = self.now()
        try:
            return await self.cloud.find(provider_id=departure.provider_id) is None
        except Failure as failure:
            report(f"the node is not ready, and the cloud does not say whether its instance is there: {failure}")
            return False

    async def _complain(self, name: str, turn: Evictions, progress: _Progress) -> None:
        """V-3, once a drain takes longer than a normal one."""
        node = self.lookups.node(name)
        if node is None or not turn.waiting or self.now() - progress.started < COMPLAIN_SECONDS:
            return
        await self.evicting.tell(failed_draining(node, progress.cause or _waiting(len(turn.waiting))))


def _waiting(count: int) -> str:
    return "1 pod is waiting to be evicted" if count == 1 else f"{count} pods are waiting to be evicted"


def _told(turns: dict[str, Evictions], why: dict[str, str]) -> str:
    """ "3 pods left: web/a (a PDB blocks), web/b (terminating) and 1 more"."""
    waiting = [(pod, turn) for turn in turns.values() for pod in turn.waiting]
    if not waiting:
        return "no pods left; waiting for any that were bound before the taint was seen"
    held = {pod.uid for turn in turns.values() for pod in turn.protected}
    named = ", ".join(_one(pod, held, why) for pod, _ in waiting[:NAMED])
    more = f" and {len(waiting) - NAMED} more" if len(waiting) > NAMED else ""
    return f"{len(waiting)} pod{'s' * (len(waiting) > 1)} left: {named}{more}"


def _one(pod: Pod, held: set[str], why: dict[str, str]) -> str:
    if pod.deleting_since is not None:
        return f"{pod.key} (terminating)"
    if pod.uid in held:
        return f"{pod.key} (do-not-disrupt)"
    reason = why.get(pod.uid)
    return f"{pod.key} ({reason})" if reason else pod.key
