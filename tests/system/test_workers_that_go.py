"""A worker that stops or is killed while it has nothing to do leaves its waits to another one at once."""

import asyncio
import signal

import pytest

from dovetail.messages.workflow_ids import caretaker_id, scheduler_id
from tests.system.beside import beside
from worlds.stage.idle_workers import LOADED_SECONDS, held_by, idle_pair, start, until
from worlds.stage.stage import Stage, deployment

pytestmark = pytest.mark.temporal


@beside
async def test_a_worker_without_anything_to_do_stops_at_once_and_the_next_one_goes_on_at_once(stage: Stage) -> None:
    """It used up the grace of those that act, because the reading of warnings is on their queue: an hour, here."""
    first = start(stage)
    await until(held_by(first), stage, "the first holds all waits")

    first.send_signal(signal.SIGTERM)
    await asyncio.to_thread(first.wait, LOADED_SECONDS)
    second = start(stage)
    found = await until(held_by(second), stage, "the second holds all waits")

    assert first.returncode == 0
    assert {attempt for _, attempt, _ in found.values()} == {2}, "the same waits, tried again"
    assert not [failure for _, _, failure in found.values() if "timeout" in failure.lower()], found


async def missed(stage: Stage, identity: str) -> list[str]:
    """The steps of the run that Temporal gave to a second worker because the first was silent."""
    handle = (await stage.client()).get_workflow_handle(identity)
    started = [e.activity_task_started_event_attributes async for e in handle.fetch_history_events()]
    return [each.last_failure.message for each in started if each.attempt > 1]


@beside
async def test_a_pod_gets_its_claim_although_the_worker_that_waited_for_pods_was_killed(stage: Stage) -> None:
    """With another worker there; it took until the wait's heartbeat was missed, 46 to 49 s."""
    first, second = await idle_pair(stage)
    stage.kill(first)
    stage.world.apply(deployment(1, "more"))

    await stage.until(lambda: len(stage.claims()) == 2, LOADED_SECONDS, "the second pod has a claim")
    found = await until(held_by(second), stage, "the second holds all waits, also the reading of warnings")

    assert {attempt for _, attempt, _ in found.values()} == {1}, "asked for anew: nothing was missed"
    for identity in (scheduler_id(stage.cluster), caretaker_id(stage.cluster)):
        assert await missed(stage, identity) == []
    assert "holds await_provisioning_plan and does not answer" in (stage.folder / "worker.log").read_text()


@beside
async def test_a_deleted_claim_leaves_although_the_worker_that_looked_for_orders_was_killed(stage: Stage) -> None:
    """It is empty, so that no pod that must move shows the worker that lives what has happened."""
    first, second = await idle_pair(stage, consolidateAfter="Never")
    stage.world.scale("web", 0)
    await stage.until(lambda: stage.running_pods() == 0, LOADED_SECONDS, "the node is empty")
    [claim] = stage.claims()
    stage.kill(first)
    stage.world.delete("NodeClaim", claim["metadata"]["name"])

    await stage.until(stage.nothing_left, LOADED_SECONDS, "it has left")
    await until(held_by(second), stage, "the second holds all waits")

    assert await missed(stage, caretaker_id(stage.cluster)) == []
    assert "holds await_orders and does not answer" in (stage.folder / "worker.log").read_text()


@beside
async def test_a_pod_without_a_place_is_no_reason_for_a_poke(stage: Stage) -> None:
    """The worker beside asks who holds the wait, and learns that the pod was answered."""
    await idle_pair(stage)
    stage.world.apply(deployment(1, "huge", cpu="4000"))

    await asyncio.sleep(25)  # two rounds more for the pod

    assert await pokes(stage) == 0
    assert len(stage.claims()) == 1


async def pokes(stage: Stage) -> int:
    handle = (await stage.client()).get_workflow_handle(scheduler_id(stage.cluster))
    signals = [e.workflow_execution_signaled_event_attributes async for e in handle.fetch_history_events()]
    return len([each for each in signals if each.signal_name == "poke"])
