"""Waits for the next disruption, and checks again what was held.

One long step: wait until the cache shows our own writes, then choose. A plan that must be checked again after 15 s
(DIS-134) is returned to be held, and comes back with the next request, so that other decisions continue meanwhile. When
it is due, it is checked against a fresh snapshot. Nothing is polled: the step sleeps until the cluster changes, or
until the next moment at which time alone may change the answer.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from temporalio import activity

from dovetail.activities.shared.every_step.heartbeats import report
from dovetail.activities.shared.looks.decision_thread import DecisionThread, ShouldStop, rest_after
from dovetail.activities.shared.looks.flights import DecisionFollowers
from dovetail.activities.shared.looks.snapshots import Snapshots
from dovetail.activities.shared.turns import by_turns
from dovetail.activities.shared.waits.cluster_changes import ClusterSleep, until_seen
from dovetail.disruption.choose import Decision, decide
from dovetail.disruption.decision_snapshot import claims_of, for_disruption, nominations_that_last
from dovetail.disruption.nodes.pod_movements import Movements
from dovetail.disruption.nodes.resting import called_off
from dovetail.disruption.revalidate import SecondLook, Valid, look_again
from dovetail.disruption.rounds import Round
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.outcomes import DisruptionAnswer, Drop, Due, Go, Hold, NothingPlanned
from dovetail.messages.plans import DisruptionPlan, Target
from dovetail.messages.requests import DisruptionRequest
from dovetail.model.objects.watched_kinds import BUFFERS, PLACEMENT, POLICIES, SELECTORS, Kinds
from dovetail.model.own.claim_memory import CalledOff
from dovetail.model.reasons.disruption_reasons import Invalidity
from dovetail.model.snapshot import Snapshot
from dovetail.notices.notice import Notice
from dovetail.notices.publishable import publishable, says_enough
from dovetail.ports.failures import Failure
from dovetail.ports.objects import Notices
from dovetail.telemetry.metrics.karpenters.disruption import begin, decided, looked_again
from dovetail.telemetry.metrics.ours.outcomes import plans_held

_log = logging.getLogger(__name__)

READS = PLACEMENT | POLICIES | {"CapacityBuffer"}

RETURN_SECONDS = 3600.0
# Changes come in bursts: wait for this much quiet before choosing, and never choose more often than this.
QUIET_SECONDS = 0.1
# A held plan whose budget is not free yet is checked again with every change, for this long.
PATIENCE_SECONDS = 30.0
# Held plans that are due go together, as many as are judged within this long.
TOGETHER_SECONDS = 1.0


class AwaitDisruptionPlan:
    """The step that the disruption loop waits for."""

    def __init__(
        self,
        snapshots: Snapshots,
        notices: Notices,
        settings: DisruptionSettings,
        now: Callable[[], float],
        followers: DecisionFollowers,
    ) -> None:
        self.snapshots = snapshots
        self.view = snapshots.view
        self.notices = notices
        self.settings = settings
        self.now = now
        self.reads = READS | SELECTORS if settings.default_spread else READS
        self.faults, self.flights = followers.faults, followers.flights
        self.thread = DecisionThread(settings.search_seconds)
        self.movements = Movements()
        self.publishing: set[asyncio.Task[None]] = set()
        self.beside, self.called_off = followers.beside, followers.called_off
        begin()

    @activity.defn
    async def await_disruption_plan(self, request: DisruptionRequest) -> DisruptionAnswer:
        """The next thing to do about a disruption, or nothing after an hour."""
        until, sleep, in_vain = self.now() + RETURN_SECONDS, ClusterSleep(self.view), 0
        plans_held(len(request.held))
        await until_seen(self.view, request.must_see, request.must_see_until, self.now())
        await self._pause(request.quiet_until - self.now())
        while self.now() < until:
            revision = self.view.revision()
            started = self.now()
            found = await self.snapshots.whole(self._reads())
            await by_turns(self.movements.catch_up(found))
            whole = self.movements.seen(found)
            nominated = nominations_that_last(whole, request.nominations, request.expected, request.expected_seen)
            snapshot = for_disruption(whole, nominated, claims_of(request.held))
            judged = await self._judge_due(snapshot, request, started + TOGETHER_SECONDS)
            if judged is not None:
                return judged
            again = self.beside(snapshot)
            answer, next_due = await self._next(snapshot, request)
            if answer is not None:
                return answer
            in_vain += 1
            due = _due_after(started, request)
            await self._pause(min(rest_after(self.now() - started, in_vain), due - self.now()))
            wake = min(until, next_due, again, due)
            await sleep.until_changed(revision, wake - self.now(), QUIET_SECONDS)
        return NothingPlanned()

    def _reads(self) -> Kinds:
        """The kinds that must be up to date. Where there are buffers, that includes the kinds they refer to: without
        those, the nodes that are kept for buffers would look empty."""
        if self.view.stale() and self.view.snapshot(READS).buffers:
            return self.reads | BUFFERS
        return self.reads

    async def _next(self, snapshot: Snapshot, request: DisruptionRequest) -> tuple[DisruptionAnswer | None, float]:
        """The next choice; nothing is chosen while the Scheduler holds as many plans as it can carry."""
        if request.holds_enough:
            report(f"{len(request.held)} plans wait for their second look, nothing more is chosen")
            return None, self.now() + RETURN_SECONDS
        return await self._choose(snapshot)

    async def _choose(self, snapshot: Snapshot) -> tuple[DisruptionAnswer | None, float]:
        """A plan, or when to look again."""

        def decide_now(stop: ShouldStop) -> tuple[Decision, list[Notice]]:
            found = decide(snapshot, self.settings, stop)
            return found, _worth_saying(snapshot, found.notices)

        started = self.now()
        decision, said = await self.thread.run(decide_now)
        decided(decision, self.now() - started)
        self.flights.decided("disruption", snapshot, decision.choice)
        self.faults.judged("disruption", decision.unjudged)
        self._publish_beside(said)
        choice = decision.choice
        if isinstance(choice, DisruptionPlan):
            choice = self._ready(choice)
            if choice.validate_after > 0:
                return Hold(plan=choice, due=self.now() + choice.validate_after), 0.0
            return Go(plan=choice), 0.0
        report("nothing to disrupt now")
        return None, choice.next_due if choice.next_due is not None else self.now() + RETURN_SECONDS

    async def _judge_due(self, snapshot: Snapshot, request: DisruptionRequest, until: float) -> Go | Drop | None:
        """All held plans that may be carried out now, or the first that is dropped; None where nothing is due. A plan
        that a person has called off is dropped at once."""
        going: list[Due] = []
        for index, held in enumerate(request.held):
            found = _called_off(held.plan, snapshot)
            if found is not None:
                target, off = found
                if off.by:
                    await self.called_off(held.plan, target, off)
                return Drop(held=index, why=f"{target.node or target.claim}: {off.words}")
        for index, held in enumerate(request.held):
            if going and self.now() > until:
                break
            checked = await self._check(snapshot, request, index) if held.due <= self.now() else None
            if isinstance(checked, Drop):
                if not going:
                    return checked
                break
            if checked is not None:
                going.append(checked)
        return Go(plan=going[0].plan, held=going[0].held, others=tuple(going[1:])) if going else None

    async def _check(self, snapshot: Snapshot, request: DisruptionRequest, index: int) -> Due | Drop | None:
        """Whether a held plan is still valid; nodes for which it is not are left out (DIS-134). None: it is checked
        again later.

        Only plans that were held before this one count as taken: a later plan was made with this one in view. If both
        counted, an empty node onto which its neighbour's pods would move, and that neighbour, would block each other
        forever.
        """
        held = request.held[index]
        fresh = replace(snapshot, disrupting=claims_of(request.held[:index]))

        def look(stop: ShouldStop) -> SecondLook:
            return look_again(held.plan, Round(fresh, self.settings, stop))

        second = await self.thread.run(look)
        looked_again(second, held.plan.commands[0].method if held.plan.commands else "")
        self._publish_beside(_worth_saying(snapshot, second.notices))
        validity = second.validity
        if isinstance(validity, Valid):
            return Due(plan=self._ready(validity.plan), held=index)
        if validity.reason == Invalidity.BUDGET and self.now() < held.due + PATIENCE_SECONDS:
            return None  # it was made while other nodes were drained, and they are not gone yet
        return Drop(held=index, why=f"{validity.reason}: {validity.message}")

    def _ready(self, plan: DisruptionPlan) -> DisruptionPlan:
        return replace(plan, seen=plan.seen.ready(self.now()), nominate_for=self.settings.nominate_for)

    def _publish_beside(self, notices: Sequence[Notice]) -> None:
        """Publish while the decision continues, so that no mark waits for Events. The same notice is not repeated at
        once."""
        if notices:
            task = asyncio.create_task(self._publish(notices))
            self.publishing.add(task)
            task.add_done_callback(self.publishing.discard)

    async def _publish(self, notices: Sequence[Notice]) -> None:
        try:
            await self.notices.publish(*notices)
        except Failure as failure:
            _log.warning("Events about disruption could not be published: %s", failure)

    async def _pause(self, seconds: float) -> None:
        if seconds > 0:
            await asyncio.sleep(seconds)


def _due_after(judged: float, request: DisruptionRequest) -> float:
    """When a held plan that was not due then is to be judged next."""
    moments = [moment for held in request.held for moment in (held.due, held.due + PATIENCE_SECONDS)]
    return min([moment for moment in moments if moment > judged], default=math.inf)


def _worth_saying(snapshot: Snapshot, notices: Sequence[Notice]) -> list[Notice]:
    return [publishable(snapshot, notice) for notice in notices if says_enough(snapshot, notice)]


def _called_off(plan: DisruptionPlan, snapshot: Snapshot) -> tuple[Target, CalledOff] | None:
    """The nodes of the plan that a person has called off; None where there is none. The other nodes of the plan are
    chosen again at once."""
    for target in (target for command in plan.commands for target in command.targets):
        claim = snapshot.claims.get(target.claim)
        off = called_off(claim, snapshot.now) if claim is not None and claim.uid == target.claim_uid else None
        if off is not None:
            return target, off
    return None
