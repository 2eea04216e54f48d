"""Forgets a failure seen here once the step succeeds in another worker, or its workflow has ended.

The next attempt after a failure may run in another worker, and workers do not talk to each other. Temporal knows which
worker has a step, so it is asked about those that are listed as failing and have been quiet here for a while. If the
step fails in the other worker, that one reports it. For a short step that is not under way, Temporal cannot say whether
it was done or given up; its failure stays listed for its five minutes.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from dovetail.activities.shared.every_step.step_health import LOOPS, WELL_SECONDS, FailingStep, StepHealth
from dovetail.activities.shared.running_workflows import ANSWER_TIMEOUT
from dovetail.worker.predecessors import STARTED

LOOK_SECONDS: Final = 15.0
MOST_AT_ONCE: Final = 10  # that one look asks for, those with the most failures first


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """Follows the steps that failed here."""

    steps: StepHealth
    client: Callable[[], Client]
    silent: Callable[[], bool]  # whether Temporal does not answer
    now: Callable[[], float] = time.time  # as the server counts

    async def watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if not self.silent():
                await self.look()

    async def look(self) -> None:
        """Ask about the failing steps, if there are any."""
        for failing in self.steps.quiet()[:MOST_AT_ONCE]:
            if await self._is_over(failing):
                self.steps.forget(failing)

    async def _is_over(self, failing: FailingStep) -> bool:
        try:
            found = await self.client().get_workflow_handle(failing.workflow_id).describe(rpc_timeout=ANSWER_TIMEOUT)
        except RPCError as error:
            return error.status == RPCStatusCode.NOT_FOUND  # all else means that nothing is known
        if found.status != WorkflowExecutionStatus.RUNNING:
            return True
        steps = found.raw_description.pending_activities
        return any(one.activity_type.name == failing.step and self._is_well(one, failing) for one in steps)

    def _is_well(self, step: PendingActivityInfo, failing: FailingStep) -> bool:
        """Whether another worker has taken up the loop since, and has run it for long enough to show that it works."""
        if failing.step not in LOOPS or step.state != STARTED:
            return False
        age = self.now() - step.last_started_time.ToMilliseconds() / 1000
        return WELL_SECONDS <= age < self.steps.now() - failing.last
