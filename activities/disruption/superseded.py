"""May a Scheduler other than the one that decided have planned without knowing of this decision?

A Scheduler that begins anew plans nothing for 20 s. After that it sees every owner annotation that was written before,
but not one that is written later; so a mark that was delayed for nearly that long asks. Delays come in groups, so all
marks of a process ask together. If the Scheduler's run is older than the decision, the server alone can say so; asking
the Scheduler itself would cost an overloaded worker a task, for which all marks would wait and ask again.
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
    """Since when Schedulers run and plan, for all that ask at the same time."""

    def __init__(self) -> None:
        self._runs, self._plans = SharedReads(_runs_since), SharedReads(_plans_since)

    async def is_superseded(self, scheduler: str, decided: float) -> bool:
        """Whether the running Scheduler may not know of what was decided at that moment."""
        if await self._runs.read(scheduler) + FRESH_QUIET_SECONDS <= decided:
            return False
        return await self._plans.read(scheduler) > decided


async def _runs_since(scheduler: str) -> float:
    """Since when its run is under way, as the server knows; infinity if none is: the next one knows nothing of this. A
    Scheduler that continues as new, with all that it knows, begins a run as well."""
    try:
        handle = activity.client().get_workflow_handle(scheduler)
        found = await handle.describe(rpc_timeout=ANSWER_TIMEOUT)
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            return math.inf
        raise
    return found.start_time.timestamp() if found.status == WorkflowExecutionStatus.RUNNING else math.inf


async def _plans_since(scheduler: str) -> float:
    """Since when it plans with all that was begun, as it reports itself; infinity if none runs, because one that has
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
