"""No workflow task asks for more than the server takes, whatever a plan holds."""

import asyncio
import uuid
from datetime import timedelta
from typing import Any

import pytest
from temporalio import activity, workflow
from temporalio.client import Client, WorkflowHistory
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Interceptor, Replayer, UnsandboxedWorkflowRunner, Worker

from dovetail.messages.inputs import DisruptInput
from dovetail.messages.outcomes import Go
from dovetail.messages.sizes import PAYLOAD_BYTES, TASK_BYTES
from dovetail.workflows.converter import DATA_CONVERTER
from dovetail.workflows.scheduler import Scheduler
from dovetail.workflows.task_size import TaskSizeGuard
from tests.system.histories import payload_sizes, replayer, task_sizes
from tests.workflows.conftest import serving_on
from tests.workflows.test_scheduler import STEPS, Script, start, state_of
from tests.workflows.unlike_nodes import a_list, unlike_plan

pytestmark = pytest.mark.temporal

PIECE = "x" * 100_000
PIECES = 13


@workflow.defn(name="AbandonedOfTest")
class Abandoned:
    @workflow.run
    async def run(self, piece: str) -> int:
        return len(piece)


@activity.defn(name="measure_of_test")
async def measure(piece: str) -> int:
    return len(piece)


@workflow.defn(name="GreedyOfTest")
class Greedy:
    """Asks for more than a megabyte of steps, and as much of children, at once."""

    @workflow.run
    async def run(self) -> int:
        steps = [
            workflow.execute_activity(measure, PIECE, start_to_close_timeout=timedelta(seconds=30))
            for _ in range(PIECES)
        ]
        children = [workflow.execute_child_workflow(Abandoned.run, PIECE) for _ in range(PIECES)]
        return sum(await asyncio.gather(*steps, *children))


async def run_greedy(client: Client, guards: list[Interceptor]) -> tuple[int, WorkflowHistory]:
    queue = f"greedy-{uuid.uuid4().hex[:8]}"
    async with Worker(
        client,
        task_queue=queue,
        workflows=[Greedy, Abandoned],
        activities=[measure],
        workflow_runner=UnsandboxedWorkflowRunner(),
        interceptors=guards,
    ):
        handle = await client.start_workflow(Greedy.run, id=queue, task_queue=queue)
        return await handle.result(), await handle.fetch_history()


async def test_a_task_ends_before_it_asks_for_a_megabyte_and_the_rest_follows(full_server: Client) -> None:
    done, history = await run_greedy(full_server, [TaskSizeGuard()])

    assert done == 2 * PIECES * len(PIECE)
    assert max(task_sizes(history)) < TASK_BYTES + 64 * 1024  # summaries, queues and markers come on top
    await guarded_replayer().replay_workflow(history)


async def test_what_was_recorded_without_the_guard_replays_with_it(skipping: WorkflowEnvironment) -> None:
    """The task was too large and passed all the same, where a server takes it."""
    done, history = await run_greedy(skipping.client, [])

    assert done and max(task_sizes(history)) > TASK_BYTES
    await guarded_replayer().replay_workflow(history)


def guarded_replayer() -> Replayer:
    return Replayer(
        workflows=[Greedy, Abandoned],
        workflow_runner=UnsandboxedWorkflowRunner(),
        data_converter=DATA_CONVERTER,
        interceptors=[TaskSizeGuard()],
        debug_mode=True,  # without the deadlock detection, as in tests/system/histories.py
    )


async def test_a_wave_of_unlike_nodes_starts_in_parts_and_every_disruption_has_its_own_lists(
    full_server: Client,
) -> None:
    """Sixty nodes with lists of 700 types: with the lists of all of them in each child it was 60 MB in one task, and
    the server terminated the Scheduler."""
    script = Script()
    plan = unlike_plan(60, types=700)
    script.disruption.append(Go(plan=plan))
    async with serving_on(full_server)([Scheduler], script.steps().of(*STEPS)) as cluster:
        handle = await start(full_server, cluster)
        for _ in range(600):
            if len((await state_of(handle)).awaiting) == 60:
                break
            await asyncio.sleep(0.1)
        history = await handle.fetch_history()
        await handle.terminate()

    given = [input_of(event) for event in history.events if is_start(event)]
    assert sorted(each.type_lists for each in given) == sorted((a_list(n, 700),) for n in range(60))
    assert {each.command.replacements[0].type_list for each in given} == {0}
    assert max(task_sizes(history)) < TASK_BYTES
    assert max(size for size, kind in payload_sizes(history) if "CHILD" in kind) < PAYLOAD_BYTES
    await replayer().replay_workflow(history)


def is_start(event: Any) -> bool:
    return bool(event.HasField("start_child_workflow_execution_initiated_event_attributes"))


def input_of(event: Any) -> DisruptInput:
    payloads = event.start_child_workflow_execution_initiated_event_attributes.input.payloads
    given: DisruptInput = DATA_CONVERTER.payload_converter.from_payloads(payloads, [DisruptInput])[0]
    return given
