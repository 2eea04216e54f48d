"""Awaits the next disruption, and checks again what was held.

Asked by the Scheduler's disruption loop. One long step: wait until our own writes are seen, then choose; a plan that
must be checked again after 15 s (D-134) is handed out to be held, and comes back in the next request, so that other
decisions go on meanwhile. When it is due, the same function judges it on a fresh snapshot. Nothing waits for a poll:
the step sleeps until the cluster changes or until the moment at which time itself changes an answer.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from temporalio import activity

from activities.beating import report
from activities.decision_notices import publishable
from activities.snapshots import whole_snapshot
from activities.solving import ShouldStop, Solver
from activities.waking import until_changed
from core.disruption.choose import Choice, choose
from core.disruption.resting import resting
from core.disruption.revalidate import Valid, revalidate
from core.disruption.settings import DisruptionSettings
from core.model.inputs import DisruptionAnswer, DisruptionRequest, Drop, Go, Held, Hold, NothingPlanned
from core.model.plans import DisruptionPlan
from core.model.snapshot import Snapshot
from ports.cloud import Catalogues
from ports.objects import Notices
from ports.view import ClusterView

RETURN_SECONDS = 3600.0
# Changes come in bursts: wait for this much quiet before choosing, and never choose more often than this.
QUIET_SECONDS = 0.1
# A decision that took long is not made again at once: at most half of the time is spent deciding.
REST_FACTOR = 1.0


class Disrupting:
    """The step that the disruption loop waits for."""

    def __init__(
        self,
        view: ClusterView,
        catalogues: Catalogues,
        notices: Notices,
        settings: DisruptionSettings,
        now: Callable[[], float],
    ) -> None:
        self.view = view
        self.catalogues = catalogues
        self.notices = notices
        self.settings = settings
        self.now = now
        self.solver = Solver()

    @activity.defn
    async def await_disruption_plan(self, request: DisruptionRequest) -> DisruptionAnswer:
        """The next thing to do about a disruption, or nothing after an hour."""
        until = self.now() + RETURN_SECONDS
        await self.view.catch_up(request.must_see)
        await self._pause(request.quiet_until - self.now())
        while self.now() < until:
            revision = self.view.revision()
            started = self.now()
            snapshot = self._known(await whole_snapshot(self.view, self.catalogues), request)
            due = next((i for i, held in enumerate(request.held) if held.due <= self.now()), -1)
            if due >= 0:
                return await self._check(snapshot, request, due)
            answer, next_due = await self._choose(snapshot)
            if answer is not None:
                return answer
            report("nothing to disrupt now")
            await self._pause((self.now() - started) * REST_FACTOR)
            wake = min([until, next_due, *[held.due for held in request.held]])
            await until_changed(self.view, revision, wake - self.now(), QUIET_SECONDS)
        return NothingPlanned()

    def _known(self, snapshot: Snapshot, request: DisruptionRequest) -> Snapshot:
        """With what only the Scheduler knows: nominations, and the claims that held plans have taken."""
        return replace(
            snapshot,
            nominations=dict(request.nominations),
            disrupting=_targets(request.held),
            resting=resting(snapshot),
        )

    async def _choose(self, snapshot: Snapshot) -> tuple[DisruptionAnswer | None, float]:
        """A plan, or when to look again."""

        def decide(stop: ShouldStop) -> Choice:
            return choose(snapshot, self.settings, stop)

        choice = await self.solver.solve(decide)
        if isinstance(choice, DisruptionPlan):
            if choice.validate_after > 0:
                return Hold(plan=choice, due=self.now() + choice.validate_after), 0.0
            return Go(plan=choice), 0.0
        await self.notices.publish(*[publishable(snapshot, notice) for notice in choice.notices])
        return None, choice.next_due if choice.next_due is not None else self.now() + RETURN_SECONDS

    async def _check(self, snapshot: Snapshot, request: DisruptionRequest, index: int) -> DisruptionAnswer:
        """Whether a held plan still stands; what no longer does is left out (D-134).

        Only what was held before it counts as taken: a later plan was made in the knowledge of this one. Were both to
        count, an empty node whose neighbour's pods would land there, and the neighbour, would rule each other out for
        ever.
        """
        held = request.held[index]
        fresh = replace(snapshot, disrupting=_targets(request.held[:index]))
        verdict = await self.solver.solve(lambda stop: revalidate(held.plan, fresh, self.settings, stop))
        if isinstance(verdict, Valid):
            return Go(plan=verdict.plan, held=index)
        return Drop(held=index, why=f"{verdict.reason}: {verdict.message}")

    async def _pause(self, seconds: float) -> None:
        if seconds > 0:
            await asyncio.sleep(seconds)


def _targets(held: Sequence[Held]) -> frozenset[str]:
    """The claims that held plans would take."""
    return frozenset(t.claim for h in held for c in h.plan.commands for t in c.targets)
