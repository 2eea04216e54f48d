"""What a worker says of itself: is it alive, is it ready, what fails in it.

Alive: the process answers, and every loop that works here has come to the end of a look within ten minutes; a worker
that is not is worth a restart. What fails with the failures of others is shown, in the same answer and in the metrics,
but is no reason for a restart. Ready: the view of the cluster can be used, every poller runs, and Temporal answers.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from temporalio.client import Client
from temporalio.service import RPCError
from temporalio.worker import Worker

from dovetail.activities.shared.step_health import StepHealth
from dovetail.background.supervised import task_troubles
from dovetail.metrics.gauges import Sample
from dovetail.model.watched_kinds import PLACEMENT
from dovetail.ports.failures import Failure
from dovetail.ports.view import ClusterView

TEMPORAL_SECONDS: Final = 3.0  # a probe waits no longer for Temporal's answer
MOST_LINES: Final = 20


@dataclass(slots=True, kw_only=True)
class SelfWatch:
    """Everything that a worker knows of its own health."""

    view: ClusterView
    why_unfit: Callable[[], str] = str  # why this worker stands aside; empty where it may act
    steps: StepHealth = field(default_factory=StepHealth)
    client: Client | None = None  # None: not connected yet
    workers: Sequence[Worker] = ()

    def stuck(self) -> list[str]:
        """Why a restart is worth a try; empty while the worker is alive, or stands aside on purpose."""
        return [] if self.why_unfit() else list(self.steps.stuck())

    def troubles(self) -> list[str]:
        """What fails, for people: steps first, then background tasks."""
        return [*self.steps.lines(), *task_troubles()][:MOST_LINES]

    def ages(self) -> list[str]:
        """For how long each loop that works here has not seen everything."""
        return [f"{loop}: last look {age:.0f} s ago" for loop, age in sorted(self.steps.ages().items())]

    async def unready(self) -> str:
        """Why no work should be expected of this worker; empty while it is ready."""
        unfit = self.why_unfit()
        if unfit:
            return f"no step is taken: {unfit}"
        try:
            self.view.snapshot(PLACEMENT)
        except Failure as failure:
            return str(failure)
        if not self.workers:
            return "the worker has not begun to poll"
        ended = [worker.task_queue for worker in self.workers if not worker.is_running]
        if ended:
            return f"nothing polls {', '.join(ended)}"
        return await self._temporal()

    async def _temporal(self) -> str:
        if self.client is None:
            return "not connected to Temporal"
        try:
            async with asyncio.timeout(TEMPORAL_SECONDS):
                well = await self.client.service_client.check_health(timeout=timedelta(seconds=TEMPORAL_SECONDS))
        except (RPCError, TimeoutError, RuntimeError) as error:
            return f"Temporal does not answer: {str(error) or type(error).__name__}"
        return "" if well else "Temporal says that it is not well"

    def samples(self) -> Iterator[Sample]:
        """The gauges, without their prefix."""
        for loop, age in sorted(self.steps.ages().items()):
            yield Sample(name="loop_last_look_age_seconds", labels=(("loop", loop),), value=age)
        counts: dict[tuple[str, str], int] = {}
        for one in self.steps.failing():
            counts[one.step, one.failure] = counts.get((one.step, one.failure), 0) + 1
        for (step, failure), count in sorted(counts.items()):
            yield Sample(name="steps_failing", labels=(("step", step), ("failure", failure)), value=float(count))
