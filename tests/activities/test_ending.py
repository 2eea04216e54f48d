"""A worker that stops ends its waits at once, and only those that act on nothing."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.testing import ActivityEnvironment
from temporalio.worker import ExecuteActivityInput

from dovetail.activities.disruption.await_disruption_plan import AwaitDisruptionPlan
from dovetail.activities.disruption.await_progress import AwaitProgress
from dovetail.activities.interruptions.watch_interruptions import WatchInterruptions
from dovetail.activities.orders.await_orders import AwaitOrders
from dovetail.activities.provisioning.await_provisioning_plan import AwaitProvisioningPlan
from dovetail.activities.shared.every_step.ending import PURE_WAITS, EndingWaits
from dovetail.messages.interruptions import Interruption
from dovetail.ports.interruptions import Message
from tests.activities.test_heartbeats import Step
from worlds.fakes import heartbeating

PATIENCE = 90.0
DEFINITION = "__temporal_activity_definition"


class Stopped:
    """A step of a name in a worker that is asked to stop once it runs."""

    def __init__(self, name: str, step: Any) -> None:
        self.environment = ActivityEnvironment()
        self.environment.info = replace(self.environment.info, activity_type=name)
        around = heartbeating().intercept_activity(EndingWaits().intercept_activity(Step()))
        given = ExecuteActivityInput(fn=step, args=(), executor=None, headers={})

        async def run() -> Any:
            return await around.execute_activity(given)

        self.running = asyncio.create_task(self.environment.run(run))

    async def outcome(self, begun: asyncio.Event) -> Any:
        await asyncio.wait_for(begun.wait(), PATIENCE)
        self.environment.worker_shutdown()
        return await asyncio.wait_for(self.running, PATIENCE)


def is_a_retry(error: ApplicationError) -> bool:
    delay = error.next_retry_delay
    return not error.non_retryable and delay is not None and delay.total_seconds() < 1


@pytest.mark.parametrize("name", sorted(PURE_WAITS))
async def test_a_wait_fails_at_once_to_be_tried_again_and_is_no_trouble(name: str) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def waits() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with pytest.raises(ApplicationError, match="its worker stops") as raised:
        await Stopped(name, waits).outcome(begun)

    assert is_a_retry(raised.value) and raised.value.category == ApplicationErrorCategory.BENIGN
    assert ended.is_set()


async def test_a_step_that_acts_comes_to_its_end() -> None:
    begun = asyncio.Event()

    async def acts() -> str:
        begun.set()
        await asyncio.sleep(0.2)
        return "done"

    assert await Stopped("delete_claim", acts).outcome(begun) == "done"


async def test_an_answer_that_is_there_is_given() -> None:
    begun = asyncio.Event()

    async def answers() -> str:
        begun.set()
        return "a plan"

    assert await Stopped("await_orders", answers).outcome(begun) == "a plan"


async def test_a_reader_of_warnings_answers_what_it_has_and_waits_for_no_more() -> None:
    """Its question to the queue takes up to twenty seconds, and was waited for."""
    warning = Interruption(id="1", reason="spot_interrupted", instances=("i-1",), at=1.0)
    begun, given, done = asyncio.Event(), [(Message(receipt="1", interruption=warning),)], list[str]()

    class Queue:
        async def receive(self) -> tuple[Message, ...]:
            if given:
                return given.pop()
            await asyncio.Event().wait()
            raise AssertionError

        async def acknowledge(self, receipts: list[str]) -> None:
            done.extend(receipts)

        async def troubles(self) -> tuple[Interruption, ...]:
            return ()

    async def slow(found: Any) -> None:
        begun.set()
        await asyncio.sleep(0.3)

    answers = SimpleNamespace(is_away=lambda: True, answer=slow, answering=SimpleNamespace(ours=list))
    watching = WatchInterruptions("c", cast(Any, Queue()), lambda: 0.0, cast(Any, answers), client=activity.client)

    with pytest.raises(ApplicationError) as raised:
        await Stopped("watch_interruptions", watching.watch_interruptions).outcome(begun)

    assert is_a_retry(raised.value)
    assert done == ["1"]


def test_the_waits_are_steps_of_the_worker() -> None:
    owners = (AwaitDisruptionPlan, AwaitProgress, AwaitOrders, AwaitProvisioningPlan)
    served = {name for owner in owners for name, found in vars(owner).items() if hasattr(found, DEFINITION)}
    assert served == PURE_WAITS
