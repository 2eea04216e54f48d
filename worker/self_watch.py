"""What a worker reports about itself: whether it is alive, whether it is ready, and what fails in it.

Alive: the process answers, and every loop that runs here has completed a look within ten minutes; otherwise a restart
is worth a try. Failures that others cause are listed in the same answer and in the metrics, but are no reason for a
restart; neither is it that Temporal is away. Ready: the view of the cluster can be used, every poller runs, and
Temporal answers.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from temporalio.service import RPCError
from temporalio.worker import Worker

from dovetail.activities.shared.every_step.step_health import StepHealth
from dovetail.background.supervised import task_troubles
from dovetail.connection.presence import TemporalPresence
from dovetail.model.objects.watched_kinds import PLACEMENT
from dovetail.ports.failures import Failure
from dovetail.ports.view import ClusterView
from dovetail.telemetry.metrics.exposition import measured
from dovetail.telemetry.metrics.gauges import Sample
from dovetail.telemetry.metrics.instruments import OWN_PREFIX
from dovetail.telemetry.metrics.karpenters.reconciles import running_lines
from dovetail.telemetry.metrics.ours import absence
from dovetail.telemetry.metrics.ours import steps as step_metrics
from dovetail.worker.absence.stand_in import StandIn

TEMPORAL_SECONDS: Final = 3.0  # a probe waits no longer for Temporal's answer
MOST_LINES: Final = 20


@dataclass(slots=True, kw_only=True)
class SelfWatch:
    """Everything that a worker knows about its own health."""

    view: ClusterView
    why_unfit: Callable[[], str]  # why this worker may not act; empty where it may
    steps: StepHealth = field(default_factory=StepHealth)
    presence: TemporalPresence
    stand_in: StandIn | None = None  # None: this worker serves no steps that cannot wait
    workers: Sequence[Worker] = ()  # those that poll, once there are any
    only_looks: bool = False  # it serves no steps, and needs no Temporal

    def polls_with(self, workers: Sequence[Worker]) -> None:
        self.workers = workers

    def stuck(self) -> list[str]:
        """Why a restart is worth a try; empty while the worker is alive, or refuses steps on purpose."""
        return [] if self.why_unfit() else list(self.steps.stuck())

    def troubles(self) -> list[str]:
        """What fails, for people: Temporal, then steps, then background tasks."""
        return [*self._absence(), *self._fails()][:MOST_LINES]

    def failures(self) -> list[str]:
        """Loops that do not complete a look, steps that fail again and again, and background tasks."""
        return [*self.stuck(), *self._fails()]

    def _fails(self) -> tuple[str, ...]:
        return *self.steps.lines(), *task_troubles()

    def _absence(self) -> Iterator[str]:
        if self.presence.is_away:
            yield self.presence.trouble()
        if self._departures():
            yield f"{self._departures()} nodes are drained in place of their workflows"

    def _departures(self) -> int:
        return 0 if self.stand_in is None else self.stand_in.departures.in_hand

    def ages(self) -> list[str]:
        """For how long each loop that runs here has not completed a look."""
        return [f"{loop}: last look {age:.0f} s ago" for loop, age in sorted(self.steps.ages().items())]

    async def unready(self) -> str:
        """Why no work should be expected from this worker; empty while it is ready."""
        unfit = self.why_unfit()
        if unfit:
            return f"no step is taken: {unfit}"
        try:
            self.view.snapshot(PLACEMENT)
        except Failure as failure:
            return str(failure)
        if self.only_looks:
            return ""
        if not self.workers:
            return self.presence.trouble() or "the worker has not begun to poll"
        ended = [worker.task_queue for worker in self.workers if not worker.is_running]
        if ended:
            return f"nothing polls {', '.join(ended)}"
        return await self._temporal()

    async def _temporal(self) -> str:
        client = self.presence.client
        if client is None:
            return "not connected to Temporal"
        try:
            async with asyncio.timeout(TEMPORAL_SECONDS):
                well = await client.service_client.check_health(timeout=timedelta(seconds=TEMPORAL_SECONDS))
        except (RPCError, TimeoutError, RuntimeError) as error:
            return f"Temporal does not answer: {str(error) or type(error).__name__}"
        return "" if well else "Temporal says that it is not well"

    def lines(self) -> Iterator[str]:
        """The gauges, as Prometheus reads them."""
        yield from measured(self.samples(), {**absence.HELP, **step_metrics.HELP}, OWN_PREFIX)
        yield from running_lines(self.steps.runs_now(), self.steps.now())

    def samples(self) -> Iterator[Sample]:
        """The gauges, without their prefix."""
        for worker in self.workers:
            queue = worker.task_queue.rpartition("/")[2]
            labels = (("queue", queue),)
            yield Sample(name="queue_polled", labels=labels, value=float(worker.is_running))
        yield Sample(name="temporal_silent_seconds", value=self.presence.silent_seconds)
        yield Sample(name="departures_without_temporal", value=float(self._departures()))
        for loop, age in sorted(self.steps.ages().items()):
            yield Sample(name="loop_last_look_age_seconds", labels=(("loop", loop),), value=age)
        counts: dict[tuple[str, str], int] = {}
        for one in self.steps.failing():
            counts[one.step, one.failure] = counts.get((one.step, one.failure), 0) + 1
        for (step, failure), count in sorted(counts.items()):
            yield Sample(name="steps_failing", labels=(("step", step), ("failure", failure)), value=float(count))
