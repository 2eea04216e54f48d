"""The checks of `dovetail doctor` on the workflows that never end: does each run, and do its work?

"Runs" means little: the workflow task may fail again and again, a step may fail at each attempt, a step's worker may
have died, or the workflow may begin anew every minute, and the workflow still runs.
"""

import asyncio
import time
from dataclasses import dataclass
from typing import Final

from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import Client, WorkflowExecutionDescription, WorkflowExecutionStatus
from temporalio.service import RPCError

from dovetail.activities.shared.every_step.step_health import LOOPS, MANY_ATTEMPTS
from dovetail.answers.doctor.findings import Check, failed, fine, warned
from dovetail.answers.record.decoding import decode
from dovetail.answers.record.history import story_of
from dovetail.answers.wording import duration_text, plural
from dovetail.connection.owner import described_or_none
from dovetail.connection.temporal import ANSWER_SECONDS
from dovetail.workflows.converter import UnreadablePayload

SILENT_SECONDS: Final = 90.0  # an idle step sends a heartbeat every 48 s; after a silent minute Temporal reassigns it
SILENT_TIMEOUTS: Final = 1.5  # of its heartbeat, where that makes more: ten minutes for Temporal Cloud
ENDED_WITHIN_SECONDS: Final = 3600.0
PLANNERS: Final = frozenset(LOOPS) - {"watch_interruptions"}
LIFE_SECONDS: Final = 8.0  # for a workflow's answer; a live worker may be busy
ENDED: Final = ("Failed", "Terminated", "TimedOut")

STARTED: Final = PendingActivityState.PENDING_ACTIVITY_STATE_STARTED


async def singleton_check(client: Client, name: str, identity: str, *, wanted: bool = True) -> Check:
    """Whether it runs, makes progress, and does not begin anew again and again. `wanted`: a worker should have started
    it."""
    described = await decoded_or_none(client, identity)
    if described is None:
        if not wanted:
            return fine(name, "no queue of warnings is named, so none is read")
        return failed(name, f"there is no workflow {identity}", "start a worker: it starts it")
    if described.status != WorkflowExecutionStatus.RUNNING:
        state = described.status.name.lower() if described.status is not None else "unknown"
        return failed(name, f"{identity} is {state}", "a worker starts it again within a minute; is one running?")
    if described.raw_description.pending_workflow_task.attempt > 1:
        story = await story_of(client, identity)
        why = story.stuck if story else ""
        return failed(name, f"{identity} cannot go on: {why}", "its workers run code that does not fit its history")
    troubles = [*_failing_steps(described), *await _failing_loops(client, identity)]
    if troubles:
        return failed(name, "; ".join(troubles[:3]), "nothing of the kind is done until this succeeds")
    return await _often_ended(client, name, identity) or _running(name, described)


async def decoded_or_none(client: Client, identity: str) -> WorkflowExecutionDescription | None:
    """The workflow's latest run with readable payloads; None if there was none."""
    described = await described_or_none(client, identity)
    if described is not None:
        await decode(client, described.raw_description)
    return described


def _running(name: str, described: WorkflowExecutionDescription) -> Check:
    age = time.time() - described.start_time.timestamp()
    return fine(name, f"runs, this run for {duration_text(round(age))}")


def _failing_steps(described: WorkflowExecutionDescription) -> list[str]:
    """The steps that have failed more than three times in a row."""
    return [
        f"{one.activity_type.name} has failed {one.attempt - 1} times: {one.last_failure.message[:300]}"
        for one in described.raw_description.pending_activities
        if one.attempt > MANY_ATTEMPTS and one.last_failure.message and not _looks_again(one)
    ]


def _looks_again(pending: PendingActivityInfo) -> bool:
    """Whether the step only looks again later, which is not a failure."""
    return pending.last_failure.application_failure_info.type == "NotYet"


async def _failing_loops(client: Client, identity: str) -> list[str]:
    """The loops that have failed and wait, by the workflow's own details."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            found = await client.get_workflow_handle(identity).query("__temporal_workflow_metadata")
    except (TimeoutError, RPCError, UnreadablePayload):
        return []  # the checks of workers and payloads report missing or unreadable answers
    details = str(getattr(found, "current_details", ""))
    marked = [line for line in details.splitlines() if line.startswith("- **") and " fails** (" in line]
    return [line.removeprefix("- ").replace("**", "") for line in marked]


async def _often_ended(client: Client, name: str, identity: str) -> Check | None:
    """Runs that ended without continuing as new; None if there are none in the last hour."""
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - ENDED_WITHIN_SECONDS))
    states = ", ".join(f"'{state}'" for state in ENDED)
    query = f"WorkflowId = '{identity}' AND ExecutionStatus IN ({states}) AND CloseTime > '{since}'"
    ended = [run async for run in client.list_workflows(query, limit=100)]
    if not ended:
        return None
    last = max(ended, key=lambda run: run.close_time or run.start_time)
    how = last.status.name.lower() if last.status is not None else "unknown"
    found = f"it has begun anew {plural(len(ended), 'time')} in the last hour; the last run {how}"
    advice = f"temporal workflow show --workflow-id {identity} --run-id {last.run_id}"
    return (failed if len(ended) > 1 else warned)(name, found, advice)


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeSigns:
    """Proof that workers live. A recent poll is not enough: it may have been a dead worker's last."""

    answers: bool | None  # a workflow worker has answered a question; None: there is no workflow to ask
    silent: str  # the planner's step that no worker executes, and for how long; empty if there is none


async def life_signs(client: Client, identities: tuple[str, ...]) -> LifeSigns:
    """Ask the first running singleton, and look at the heartbeats of the steps of all."""
    running = [d for d in [await decoded_or_none(client, one) for one in identities] if d is not None]
    running = [one for one in running if one.status == WorkflowExecutionStatus.RUNNING]
    pending = [step for one in running for step in one.raw_description.pending_activities]
    silent = [text for text in (_silence(step) for step in pending if step.activity_type.name in PLANNERS) if text]
    answers = await _answers(client, running[0].id) if running else None
    return LifeSigns(answers=answers, silent=silent[0] if silent else "")


async def _answers(client: Client, identity: str) -> bool:
    try:
        async with asyncio.timeout(LIFE_SECONDS):
            await client.get_workflow_handle(identity).query("__temporal_workflow_metadata")
    except UnreadablePayload:
        return True  # it has answered
    except (TimeoutError, RPCError):
        return False
    return True


def _silence(step: PendingActivityInfo) -> str:
    """How long no worker has executed the step; empty if one does, or if it waits for its next attempt."""
    longest = SILENT_SECONDS
    if step.state == STARTED:
        heard = max(step.last_heartbeat_time.ToSeconds(), step.last_started_time.ToSeconds())
        longest = max(longest, SILENT_TIMEOUTS * step.activity_options.heartbeat_timeout.ToSeconds())
    else:
        heard = max(step.scheduled_time.ToSeconds(), step.next_attempt_schedule_time.ToSeconds())
    seconds = time.time() - heard
    return f"{step.activity_type.name} for {duration_text(round(seconds))}" if seconds > longest else ""
