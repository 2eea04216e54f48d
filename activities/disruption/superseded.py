"""May another Scheduler than the one that decided have planned without knowing of this?

A Scheduler that begins anew plans nothing for 20 s and then sees the owner that has just been written, but not one that
is written later. So a mark that was held up for nearly that long asks. Where one is held up many are, so all of a
process ask together. Of a run that planned before the decision the server knows that by itself; an answer of the
Scheduler is a task of an overloaded worker, for which all marks would wait and ask again.
"""

import math
from typing import Final

from temporalio import activity
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from dovetail.activities.shared.looks.shared_reads import SharedReads
from dovetail.activities.shared.running_workflows import ANSWER_TIMEOUT
from dovetail.messages.states import FRESH_QUIET_SECONDS, SchedulerState
from dovetail.ports.failures import Postponed

# Less than a Scheduler that begins anew waits, because asking it takes a while.
HELD_UP_SECONDS = FRESH_QUIET_SECONDS - 5.0

_UNANSWERED: Final = (RPCStatusCode.CANCELLED, RPCStatusCode.DEADLINE_EXCEEDED)  # the first is the client's own


class SchedulerRuns:
    """Since when Schedulers run and plan, for all who ask at the same time."""

    def __init__(self) -> None:
        self._runs, self._plans = SharedReads(_runs_since), SharedReads(_plans_since)

    async def is_superseded(self, scheduler: str, decided: float) -> bool:
        """Whether the Scheduler that runs may know nothing of what was decided then."""
        if await self._runs.read(scheduler) + FRESH_QUIET_SECONDS <= decided:
            return False
        return await self._plans.read(scheduler) > decided


async def _runs_since(scheduler: str) -> float:
    """Since when its run is under way, as the server knows; without end where none is: the next one knows nothing of
    this. A Scheduler that hands over to itself, with all that it knows, begins a run as well."""
    try:
        handle = activity.client().get_workflow_handle(scheduler)
        found = await handle.describe(rpc_timeout=ANSWER_TIMEOUT)
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            return math.inf
        raise
    return found.start_time.timestamp() if found.status == WorkflowExecutionStatus.RUNNING else math.inf


async def _plans_since(scheduler: str) -> float:
    """Since when it plans with all that was begun, as it says itself; without end where none runs, though one that has
    ended would still answer."""
    if await _runs_since(scheduler) == math.inf:
        return math.inf
    handle = activity.client().get_workflow_handle(scheduler)
    try:
        state: SchedulerState = await handle.query("status", result_type=SchedulerState, rpc_timeout=ANSWER_TIMEOUT)
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            return math.inf
        if error.status in _UNANSWERED:
            raise Postponed(f"Workflow/{scheduler}", "has no time to say since when it plans", 1.0) from error
        raise
    return state.quiet_until
