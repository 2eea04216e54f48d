"""Interruptions and AnswerInterruption, step by step; test_interruptions.py plays them over a real queue."""

from typing import Any

import pytest
from temporalio.client import Client, WorkflowHandle
from temporalio.testing import WorkflowEnvironment

from dovetail.activities.interruptions.answer_interruptions import AnswerInterruptions
from dovetail.activities.interruptions.tell_interruptions import InterruptionNotices
from dovetail.activities.interruptions.watch_interruptions import WatchInterruptions
from dovetail.activities.termination.begin_and_end_departure import BeginAndEndDeparture
from dovetail.messages.interruptions import Answered, AnswerInput, Interruption, InterruptionsInput
from dovetail.messages.subjects import ClaimRef, Departure
from dovetail.messages.workflow_ids import interruptions_id, task_queue
from dovetail.workflows.interruptions import BURST, AnswerInterruption, Interruptions
from dovetail.workflows.terminate_node import TerminateNode
from tests.waiting import until
from tests.workflows.conftest import Serving, serving_on
from tests.workflows.fake_steps import FakeSteps, not_yet

pytestmark = pytest.mark.temporal

STEPS = (AnswerInterruptions, BeginAndEndDeparture, InterruptionNotices)


def a_warning(number: int) -> Interruption:
    return Interruption(id=f"w-{number}", reason="spot_interrupted", instances=(f"i-{number}",), at=1.0)


def answered(warning: Interruption, *, deleted: bool = True) -> Answered:
    claim = ClaimRef(name=f"claim-of-{warning.id}", uid=f"uid-of-{warning.id}", pool="pool")
    return Answered(interruption=warning, claims=(claim,), nodes=("node",), deleted=(claim.name,) if deleted else ())


async def answer(
    env: WorkflowEnvironment, serving: Serving, warnings: int, *, deleted: bool = True
) -> tuple[str, FakeSteps]:
    steps = FakeSteps(
        answer_interruptions=lambda given: tuple(answered(each, deleted=deleted) for each in given),
        tell_interruptions=None,
        begin_departure=lambda ref: Departure(claim=ref, claim_gone=True),
    )
    async with serving([AnswerInterruption, TerminateNode], steps.of(*STEPS)) as cluster:
        given = AnswerInput(cluster=cluster, interruptions=tuple(a_warning(n) for n in range(warnings)))
        handle: WorkflowHandle[Any, Any] = await env.client.start_workflow(
            AnswerInterruption.run, given, id=f"{cluster}/answer", task_queue=task_queue(cluster, "control")
        )
        said = str(await handle.result())
        expected = warnings if deleted and warnings < BURST else 0
        await until(lambda: len(steps.arguments("begin_departure")) == expected)
    return said, steps


async def test_a_warning_is_answered_by_a_delete_and_its_termination(
    skipping: WorkflowEnvironment, serving: Serving
) -> None:
    """AWS-134: not left to the Caretaker's next look."""
    said, steps = await answer(skipping, serving, 1)

    assert said == "deleted claim-of-w-0"
    assert [ref.name for ref in steps.arguments("begin_departure")] == ["claim-of-w-0"]
    assert len(steps.arguments("tell_interruptions")) == 1


async def test_the_terminations_of_a_burst_are_left_to_the_caretaker(
    skipping: WorkflowEnvironment, serving: Serving
) -> None:
    said, steps = await answer(skipping, serving, BURST)

    assert said.count("claim-of-") == BURST
    assert steps.names() == ["answer_interruptions", "tell_interruptions"]


async def test_a_warning_of_a_claim_that_is_deleted_already_starts_nothing(
    skipping: WorkflowEnvironment, serving: Serving
) -> None:
    said, steps = await answer(skipping, serving, 1, deleted=False)

    assert said == "nothing to delete"
    assert steps.names() == ["answer_interruptions", "tell_interruptions"]


async def test_reading_goes_on_hour_after_hour_and_begins_as_new(full_server: Client) -> None:
    steps = FakeSteps(watch_interruptions=None)

    async with serving_on(full_server)([Interruptions], steps.of(WatchInterruptions)) as cluster:
        handle = await read(full_server, cluster, max_history=20)
        await until(lambda: len(steps.arguments("watch_interruptions")) >= 8)
        latest = full_server.get_workflow_handle(handle.id)
        renewed = (await latest.describe()).run_id
        await latest.terminate()

    assert renewed != handle.first_execution_run_id


async def test_a_poke_starts_the_reading_anew(full_server: Client) -> None:
    steps = FakeSteps(watch_interruptions=lambda given: (_ for _ in ()).throw(not_yet(3600)))

    async with serving_on(full_server)([Interruptions], steps.of(WatchInterruptions)) as cluster:
        handle = await read(full_server, cluster)
        await until(lambda: len(steps.arguments("watch_interruptions")) == 1)
        await handle.signal("poke")
        await until(lambda: len(steps.arguments("watch_interruptions")) == 2)
        await handle.terminate()


async def read(client: Client, cluster: str, max_history: int = 0) -> WorkflowHandle[Any, Any]:
    return await client.start_workflow(
        Interruptions.run,
        InterruptionsInput(cluster=cluster, max_history=max_history),
        id=interruptions_id(cluster),
        task_queue=task_queue(cluster, "control"),
    )
