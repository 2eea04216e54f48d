"""Caretaker: orders are carried out, and none holds up the others."""

import asyncio

import pytest
from temporalio.testing import WorkflowEnvironment

from activities.caretaking import Caretaking
from activities.ordering import Ordering
from activities.upkeep import Upkeep
from core.model.inputs import CaretakerInput
from core.model.orders import Orders, StartOwner, TakeOffMark
from core.model.steps import ClaimRef, StepOutcome
from core.model.workflow_ids import caretaker_id, task_queue
from tests.workflows.conftest import Serving
from tests.workflows.fake_steps import FakeSteps, not_yet
from workflows.caretaker import Caretaker

pytestmark = pytest.mark.temporal

CLAIM = ClaimRef(name="pool-1", uid="uid-1", pool="pool")


async def test_an_order_that_always_fails_does_not_hold_up_the_next_look(
    skipping: WorkflowEnvironment, serving: Serving
) -> None:
    """A stale mark that cannot be taken off kept a deleted claim from ever getting its workflow."""
    started = asyncio.Event()
    looks = 0

    def next_orders(given: object) -> Orders:
        nonlocal looks
        looks += 1
        if looks == 1:
            return Orders(orders=(TakeOffMark(claim=CLAIM, owner=""),))
        if looks == 2:
            return Orders(orders=(StartOwner(claim=CLAIM, workflow_type="TerminateNode"),))
        raise not_yet(3600.0)

    def start_owner(given: object) -> StepOutcome:
        started.set()
        return StepOutcome()

    def fail(given: object) -> StepOutcome:
        raise RuntimeError("this order cannot be carried out")

    def never(given: object) -> None:
        raise not_yet(3600.0)

    steps = FakeSteps(await_orders=next_orders, keep_up=never, take_off_mark=fail, start_owner=start_owner)
    async with serving([Caretaker], steps.of(Caretaking, Ordering, Upkeep)) as cluster:
        handle = await skipping.client.start_workflow(
            Caretaker.run,
            CaretakerInput(cluster=cluster),
            id=caretaker_id(cluster),
            task_queue=task_queue(cluster, "control"),
        )
        await skipping.sleep(60)
        await asyncio.wait_for(started.wait(), 20)
        await handle.terminate()

    assert len(steps.arguments("take_off_mark")) > 1  # it was retried, then left to the next look
