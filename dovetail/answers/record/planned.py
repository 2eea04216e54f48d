"""For which pods new nodes were made, by the Scheduler's own histories: its plans name them, and a launch does not.

Only who asks for a pod pays for it: each run of the Scheduler within the time is read whole.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from dovetail.answers.record.decoding import decode
from dovetail.answers.record.entries import Entries, Period, moment_text
from dovetail.messages.plans import name_of
from dovetail.messages.requests import CreateRequest
from dovetail.messages.workflow_ids import scheduler_id

MOST_RUNS: Final = 300  # of the Scheduler; where pods wait all day a run lasts for minutes
CREATE: Final = "create_node_claims"


async def with_pods(client: Client, cluster: str, period: Period, found: Entries) -> Entries:
    """The same entries; launches name the pods that they were made for. Runs that Temporal has forgotten count as such,
    and their launches stay without."""
    plans = await planned_pods(client, cluster, period)
    entries = tuple(
        replace(entry, pod_names=plans.pods[entry.claims[0]])
        if entry.kind == "launch" and entry.claims and entry.claims[0] in plans.pods
        else entry
        for entry in found.entries
    )
    return replace(found, entries=entries, cut=found.cut or plans.cut, forgotten=found.forgotten + plans.forgotten)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The pods of each NodeClaim that the Scheduler has asked for. `cut`: there are more of its runs than were read;
    `forgotten`: runs that the retention has taken meanwhile."""

    pods: Mapping[str, tuple[str, ...]]
    cut: bool = False
    forgotten: int = 0


async def planned_pods(client: Client, cluster: str, period: Period) -> Planned:
    """In that time."""
    within = f"(ExecutionStatus = 'Running' OR CloseTime >= '{moment_text(period.since)}')"
    if period.until is not None:
        within += f" AND StartTime <= '{moment_text(period.until)}'"
    query = f"WorkflowId = '{scheduler_id(cluster)}' AND {within}"
    runs = [each async for each in client.list_workflows(query, limit=MOST_RUNS + 1)]
    pods: dict[str, tuple[str, ...]] = {}
    forgotten = 0
    for run in runs[:MOST_RUNS]:
        try:
            history = await client.get_workflow_handle(run.id, run_id=run.run_id).fetch_history()
        except RPCError as error:
            if error.status != RPCStatusCode.NOT_FOUND:
                raise
            forgotten += 1
            continue
        pods.update(await pods_of_claims(client, history.events))
    return Planned(pods=pods, cut=len(runs) > MOST_RUNS, forgotten=forgotten)


async def pods_of_claims(client: Client, events: Sequence[HistoryEvent]) -> dict[str, tuple[str, ...]]:
    """The pods of each NodeClaim that these events asked for."""
    asked = [
        event
        for event in events
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
        and event.activity_task_scheduled_event_attributes.activity_type.name == CREATE
    ]
    await decode(client, *asked)
    return dict(pair for event in asked for pair in _pairs(client, event))


def _pairs(client: Client, event: HistoryEvent) -> Iterator[tuple[str, tuple[str, ...]]]:
    payloads = event.activity_task_scheduled_event_attributes.input.payloads
    converter = client.data_converter.payload_converter
    [request, *_] = cast(list[CreateRequest], converter.from_payloads(payloads, [cast(Any, CreateRequest)]))
    for position, made in enumerate(request.proposed):
        name = name_of(made, request.plan_id, request.index(position))
        yield name, tuple(sorted(f"{pod.namespace}/{pod.name}" for pod in made.pods))
