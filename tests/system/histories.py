"""What Temporal's own histories say about a stage, and whether today's code replays them.

Asked at the end of every test of the whole system. Histories are read by id or by the cluster's prefix; they are the
server's record, not our log.
"""

from collections.abc import AsyncIterator, Iterable

from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowExecution, WorkflowHistory
from temporalio.converter import DataConverter
from temporalio.worker import Replayer

from dovetail.worker.sandbox import runner
from dovetail.worker.task_queues import WORKFLOWS
from dovetail.workflows.cluster_identity import ClusterIdentity
from dovetail.workflows.converter import DATA_CONVERTER
from dovetail.workflows.task_size import TaskSizeGuard


def replayer(data_converter: DataConverter = DATA_CONVERTER) -> Replayer:
    """Configured as the workers are, but for the deadlock detection, which the debug mode turns off.

    The detection goes by the clock on the wall: two seconds without an end count as a deadlock. A worker whose task
    fails of it is given the task again. A replay has one try, and beside other tests its thread may wait that long for
    its turn, which says nothing about the commands that it comes to.
    """
    return Replayer(
        workflows=WORKFLOWS,
        workflow_runner=runner(),
        data_converter=data_converter,
        interceptors=[ClusterIdentity(), TaskSizeGuard()],
        debug_mode=True,
    )


async def failures_of(given: Iterable[WorkflowHistory], by: Replayer | None = None) -> list[Exception | None]:
    """Why each of these does not replay, None where it does. Together: a replay alone costs four times as much."""

    async def each() -> AsyncIterator[WorkflowHistory]:
        for history in given:
            yield history

    async with (by or replayer()).workflow_replay_iterator(each()) as results:
        return [result.replay_failure async for result in results]


async def executions(client: Client, cluster: str) -> list[WorkflowExecution]:
    """All runs of a cluster's workflows, by the visibility list; at a test's end it has caught up."""
    query = f'WorkflowId STARTS_WITH "{cluster}/"'
    return [found async for found in client.list_workflows(query)]


async def histories(client: Client, cluster: str) -> list[WorkflowHistory]:
    """Every run's history."""
    found = await executions(client, cluster)
    return [await client.get_workflow_handle(e.id, run_id=e.run_id).fetch_history() for e in found]


async def replay_all(client: Client, cluster: str) -> int:
    """Replay every run; the first that does not replay is an error. How many did."""

    async def each() -> AsyncIterator[WorkflowHistory]:
        for history in await histories(client, cluster):
            yield history

    results = await replayer().replay_workflows(each(), raise_on_replay_failure=True)
    assert not results.replay_failures
    return len(await executions(client, cluster))


def attempts_of(history: WorkflowHistory, step: str) -> list[tuple[int, float]]:
    """The last attempt of each call of a step, and when it was started."""
    names = {
        event.event_id: event.activity_task_scheduled_event_attributes.activity_type.name
        for event in history.events
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
    }
    return [
        (
            event.activity_task_started_event_attributes.attempt,
            event.event_time.ToNanoseconds() / 1e9,
        )
        for event in history.events
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED
        and names[event.activity_task_started_event_attributes.scheduled_event_id] == step
    ]


def next_task_after(history: WorkflowHistory, moment: float) -> float | None:
    """When the workflow's code next got on after a moment; None where it did not."""
    times = [
        event.event_time.ToNanoseconds() / 1e9
        for event in history.events
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
    ]
    return min((t for t in times if t > moment), default=None)


# Which events belong to a workflow task: those that name it as the one that asked for them.
ASKED_BY = "workflow_task_completed_event_id"


def task_sizes(history: WorkflowHistory) -> list[int]:
    """How many bytes each workflow task asked for, by the events that it left."""
    sizes: dict[int, int] = {}
    for event in history.events:
        attributes = getattr(event, event.WhichOneof("attributes") or "", None)
        task = getattr(attributes, ASKED_BY, 0)
        if task:
            sizes[task] = sizes.get(task, 0) + event.ByteSize()
    return list(sizes.values())


def payload_sizes(history: WorkflowHistory) -> list[tuple[int, str]]:
    """The size of what each event carries, and the event's type."""
    sizes = []
    for event in history.events:
        attributes = getattr(event, event.WhichOneof("attributes") or "", None)
        for name in ("input", "result"):
            carried = getattr(attributes, name, None)
            kind = EventType.Name(event.event_type)
            sizes += [(len(payload.data), kind) for payload in getattr(carried, "payloads", ())]
    return sizes
