"""What an idle cluster costs: history events of Scheduler and Caretaker, measured over a shortened run.

An idle loop asks once an hour, six events each time. The run is shortened by letting the four waits return after two
seconds instead of 3,600: the events of each return are counted and the day has 24 returns of each. What happens in
real idleness besides is counted too: the untouched wait must write nothing.
"""

import asyncio
import signal
import sys
import time
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType

from dovetail.activities.disruption import await_disruption_plan
from dovetail.activities.orders import await_orders
from dovetail.activities.provisioning import await_provisioning_plan
from dovetail.activities.upkeep import keep_up
from dovetail.messages.workflow_ids import caretaker_id, scheduler_id
from tests.system.beside import beside
from worlds.stage.idle_workers import LOADED_SECONDS, until
from worlds.stage.stage import Stage

pytestmark = pytest.mark.temporal

EVENTS_A_DAY = 1200
SHORTENED = 2.0
RETURNS_A_DAY = 24

# A worker whose idle waits return early; nothing else is changed.
HASTY = f"""
from dovetail.activities.disruption import await_disruption_plan
from dovetail.activities.orders import await_orders
from dovetail.activities.provisioning import await_provisioning_plan
from dovetail.activities.upkeep import keep_up
for module in (await_disruption_plan, await_orders, await_provisioning_plan, keep_up):
    module.RETURN_SECONDS = {SHORTENED}
from dovetail.cli.main import run
run()
"""


async def events_of(stage: Stage, identity: str) -> list[Any]:
    history = await (await stage.workflow(identity)).fetch_history()
    return list(history.events)


def returns_in(events: list[Any]) -> int:
    return sum(1 for e in events if e.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED)


@beside
async def test_an_idle_wait_writes_nothing(stage: Stage) -> None:
    stage.start_worker()
    await started(stage)
    before = {i: len(await events_of(stage, i)) for i in singletons(stage)}

    await asyncio.sleep(20)

    assert {i: len(await events_of(stage, i)) for i in singletons(stage)} == before


@beside
async def test_idle_scheduler_and_caretaker_stay_under_1200_events_a_day(stage: Stage) -> None:
    worker = stage.start_installed([sys.executable, "-c", HASTY], "worker.log")
    await until(lambda found: "await_orders" in found, stage, "the Caretaker, which is started last, waits")
    deadline = time.monotonic() + LOADED_SECONDS
    while not await have_returned(stage):
        assert time.monotonic() < deadline, "the shortened waits do not return"
        await asyncio.sleep(0.2)
    worker.send_signal(signal.SIGKILL)

    a_day = 0.0
    for identity in singletons(stage):
        events = await events_of(stage, identity)
        # Two loops each, and the first events of a run belong to no return.
        a_day += (len(events) - 3) / returns_in(events) * 2 * RETURNS_A_DAY
    assert a_day < EVENTS_A_DAY
    waits = (await_disruption_plan, await_orders, await_provisioning_plan, keep_up)
    assert {m.RETURN_SECONDS for m in waits} == {86_400 / RETURNS_A_DAY}


def singletons(stage: Stage) -> tuple[str, str]:
    return scheduler_id(stage.cluster), caretaker_id(stage.cluster)


async def started(stage: Stage) -> None:
    """Until both loops of both singletons wait."""
    await until(lambda found: len(found) == 4, stage, "the singletons wait")


async def have_returned(stage: Stage) -> bool:
    """Whether the waits of each singleton have come back so often that the events of one return can be told."""
    return all([returns_in(await events_of(stage, identity)) >= 10 for identity in singletons(stage)])
