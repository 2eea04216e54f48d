"""Looks at all clusters of a namespace, through Temporal alone.

One list of the Caretakers has the clusters' reports in its memos. A cluster is silent if no worker takes its
Caretaker's steps; this is checked only for those that have not reported for a while. Nothing here is billed.
"""

import asyncio
from typing import Final

from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionResponse
from temporalio.client import Client, WorkflowExecution
from temporalio.service import RPCError

from dovetail.answers.failures import CommandFailed
from dovetail.answers.fleet.answer import ClusterRow, FleetAnswer
from dovetail.answers.wording import HOURS_IN_MONTH
from dovetail.connection.owner import described_or_none
from dovetail.messages.reports import REPORT, ClusterReport
from dovetail.messages.workflow_ids import caretaker_id
from dovetail.messages.workflow_types import CARETAKER
from dovetail.workflows.converter import UnreadablePayload

FRESH_SECONDS: Final = 600.0  # of a report: two looks of the worker that writes it
UNTAKEN_SECONDS: Final = 90.0  # of a step that is due
PAGE: Final = 100  # a report has some kilobytes, and Temporal's answers at most four megabytes
AT_ONCE: Final = 20

STARTED: Final = PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
RUNNING: Final = f"WorkflowType = '{CARETAKER}' AND ExecutionStatus = 'Running'"
_ORDER: Final = ("silent", "needs a person", "unknown", "fine")


async def fleet_of(client: Client, now: float) -> FleetAnswer:
    """Every cluster whose Caretaker runs; that of an abandoned cluster is terminated by hand."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(run: WorkflowExecution, name: str) -> ClusterRow:
        async with slots:
            return await _row(client, run, name, now)

    try:
        found = [run async for run in client.list_workflows(RUNNING, page_size=PAGE)]
    except RPCError as error:
        raise CommandFailed(f"the clusters of the namespace {client.namespace} cannot be listed: {error}") from None
    names = {run.id.rpartition("/")[0]: run for run in found}
    rows = await asyncio.gather(*[one(run, name) for name, run in names.items() if run.id == caretaker_id(name)])
    return FleetAnswer(namespace=client.namespace, now=now, clusters=tuple(sorted(rows, key=_trouble)))


def _trouble(row: ClusterRow) -> tuple[int, float, int, int, str]:
    """The worst first: longest silent, most needs, most waiting pods."""
    report = row.report or ClusterReport(at=0.0)
    silent = row.silent_since if row.silent_since is not None else 0.0
    needing = report.needing + len(report.troubles)
    return _ORDER.index(row.state), silent, -needing, -report.pending_pods, row.name


async def _row(client: Client, run: WorkflowExecution, name: str, now: float) -> ClusterRow:
    report, note = None, ""
    try:
        report = await run.memo_value(REPORT, None, type_hint=ClusterReport)
        note = "" if report is not None else "it has not reported yet, or its workers are older than that"
        silent = await _silent_since(client, run, report, now)
    except UnreadablePayload as error:
        silent, note = await _silent_since(client, run, None, now), f"what it says cannot be read: {error}"
    except RPCError as error:
        silent, note = None, f"Temporal did not describe it: {error.message}"
    needs = report is not None and bool(report.needing or report.troubles)
    return ClusterRow(
        name=name,
        state="silent" if silent is not None else "needs a person" if needs else "unknown" if note else "fine",
        silent_since=silent,
        month=round(report.price * HOURS_IN_MONTH, 2) if report is not None else None,
        report=report,
        note=note,
    )


async def _silent_since(
    client: Client, run: WorkflowExecution, report: ClusterReport | None, now: float
) -> float | None:
    if report is not None and now - report.at < FRESH_SECONDS:
        return None
    described = await described_or_none(client, run.id)
    if described is None:
        return None  # it has ended since the list was made
    raw = described.raw_description
    if not _is_untaken(raw, now):
        return None
    heard = [_heard(step) for step in raw.pending_activities]
    return max([run.start_time.timestamp(), report.at if report is not None else 0.0, *heard])


def _is_untaken(raw: DescribeWorkflowExecutionResponse, now: float) -> bool:
    """Whether everything that it waits for is due and no worker takes it. Temporal ends a step itself if its worker is
    silent for longer than its heartbeat timeout: then it is due again."""
    due = [
        max(step.scheduled_time.ToSeconds(), step.next_attempt_schedule_time.ToSeconds())
        for step in raw.pending_activities
        if step.state != STARTED
    ]
    if raw.HasField("pending_workflow_task"):
        due.append(raw.pending_workflow_task.original_scheduled_time.ToSeconds())
    elif len(due) < len(raw.pending_activities):
        return False
    return bool(due) and now - max(due) > UNTAKEN_SECONDS


def _heard(step: PendingActivityInfo) -> float:
    return float(max(step.last_heartbeat_time.ToSeconds(), step.last_started_time.ToSeconds()))
