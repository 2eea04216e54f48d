"""Interruptions over a real queue: every warning durable before it is acknowledged, none lost, none answered twice."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from pathlib import Path

import pytest
from temporalio.client import Client

from dovetail.adapters.aws.adapter import AwsAdapter
from dovetail.messages.interruptions import Interruption, Warned
from dovetail.model.nodes import NodeClaim
from dovetail.ports.interruptions import Interruptions as Queue
from dovetail.ports.interruptions import Message
from testbed.cloud.server import CloudServer
from worlds.aws import ClassStore, open_adapter
from worlds.interruption_scene import REBALANCE, SPOT, STATE, Scene, instance_id

pytestmark = pytest.mark.temporal

PATIENCE_SECONDS = 120.0


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CloudServer]:
    server = CloudServer.start(Path(tmp_path_factory.mktemp("aws")))
    yield server
    server.stop()


@pytest.fixture
async def adapter(cloud: CloudServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[AwsAdapter]:
    """An unacknowledged message comes again after two seconds instead of twenty."""
    monkeypatch.setattr("dovetail.adapters.aws.interruptions.queue._VISIBLE_AGAIN_SECONDS", 2)
    monkeypatch.setattr("dovetail.adapters.aws.interruptions.queue.WAIT_SECONDS", 1)
    cloud.control("POST", "reset")
    found = open_adapter(cloud, ClassStore())
    yield found
    await found.close()


def queue_of(adapter: AwsAdapter) -> Queue:
    return adapter.interruptions


async def until(holds: Callable[[], bool], pause: float = 0.1) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not await asyncio.to_thread(holds):
        assert time.monotonic() < deadline
        await asyncio.sleep(pause)


async def test_every_message_is_acknowledged_and_only_warnings_that_end_instances_delete_their_claims_once(
    cloud: CloudServer, adapter: AwsAdapter, full_server: Client
) -> None:
    """AWS-124 to AWS-134: duplicates, unknown kinds, broken and hostile bodies, instances of others."""
    scene = Scene(cloud, full_server, instances=3)
    scene.send(SPOT, instance_id(0))
    scene.send(SPOT, instance_id(0))
    scene.send(REBALANCE, instance_id(1))
    scene.send(STATE, instance_id(2), state="stopping")
    scene.send(SPOT, instance_id(99))
    scene.send("Some Other Event", instance_id(1))
    scene.send_text("no JSON at all")
    scene.send_text('{"version": "0"}')
    scene.send_text("[" * 100_000)
    scene.send(SPOT, "\ud800")
    scene.send(SPOT, "i-" + "0" * 2000)

    async with scene.worker(queue_of(adapter)):
        await until(lambda: scene.acknowledged() >= 11 and len(set(scene.deletes())) >= 2)
        await until(lambda: len(scene.notices.published) >= 3)

    assert sorted(scene.deletes()) == ["claim-i-00000000", "claim-i-00000002"]
    assert {"SpotInterrupted", "SpotRebalanceRecommendation", "InstanceStopping"} <= set(scene.notices.reasons())
    assert all(notice.reason and notice.name for notice in scene.notices.published)


async def test_an_outage_of_thousands_is_answered_in_parts(
    cloud: CloudServer, adapter: AwsAdapter, full_server: Client
) -> None:
    """One message of AWS Health may name as many instances as fit into it; an answer for all would be too large."""
    scene = Scene(cloud, full_server, instances=3)
    named = [{"entityValue": instance_id(number)} for number in range(5000)]
    detail = {"service": "EC2", "eventTypeCategory": "scheduledChange", "affectedEntities": named}
    body = {"version": "0", "id": "h", "source": "aws.health", "detail-type": "AWS Health Event", "detail": detail}
    scene.send_text(json.dumps(body))

    async with scene.worker(queue_of(adapter)):
        await until(lambda: scene.acknowledged() >= 1 and len(scene.deletes()) >= 3)

    assert sorted(scene.deletes()) == [f"claim-{instance_id(number)}" for number in range(3)]


class Dying:
    """A queue at which a worker stands still for ever at one point, until the worker is taken away."""

    def __init__(self, queue: Queue, point: str) -> None:
        self.queue, self.point, self.reached = queue, point, asyncio.Event()

    async def _stop_here(self, point: str) -> None:
        if point == self.point:
            self.reached.set()
            await asyncio.Event().wait()

    async def receive(self) -> tuple[Message, ...]:
        messages = await self.queue.receive()
        if messages:
            await self._stop_here("before the answer is started")
        return messages

    async def try_reading(self) -> None:
        await self.queue.try_reading()

    async def learn_from(self, interruption: Interruption, claim: NodeClaim) -> None:
        await self._stop_here("while the answer is given")
        await self.queue.learn_from(interruption, claim)

    async def acknowledge(self, receipts: Sequence[str]) -> None:
        await self._stop_here("before the message is acknowledged")
        await self.queue.acknowledge(receipts)
        await self._stop_here("after the message is acknowledged")

    async def troubles(self) -> tuple[Interruption, ...]:
        return ()

    async def borne_out(self, warned: Collection[Warned]) -> frozenset[Warned]:
        return await self.queue.borne_out(warned)


@pytest.mark.parametrize(
    "point",
    [
        "before the answer is started",
        "while the answer is given",
        "before the message is acknowledged",
        "after the message is acknowledged",
    ],
)
async def test_a_worker_that_is_gone_at_any_point_loses_no_warning(
    cloud: CloudServer, adapter: AwsAdapter, full_server: Client, point: str
) -> None:
    """AWS-127, AWS-187: durable before it is acknowledged, answered once."""
    scene = Scene(cloud, full_server, instances=1)
    dying = Dying(queue_of(adapter), point)
    scene.send(SPOT, instance_id(0))

    async with scene.worker(dying):
        await asyncio.wait_for(dying.reached.wait(), PATIENCE_SECONDS)
        acknowledged = scene.acknowledged()
    async with scene.worker(queue_of(adapter)):
        await until(lambda: scene.deletes() != [] and scene.acknowledged() >= 1)

    # An answer may run while its message is being acknowledged; at the other points the message is still there, or not.
    assert point == "while the answer is given" or acknowledged == (point == "after the message is acknowledged")
    assert scene.deletes() == ["claim-i-00000000"]


@pytest.mark.soak
async def test_five_hundred_warnings_in_one_burst_are_all_answered_once(
    cloud: CloudServer, full_server: Client
) -> None:
    """How fast is measured by `make bench`."""
    cloud.control("POST", "reset")
    adapter = open_adapter(cloud, ClassStore())
    scene = Scene(cloud, full_server, instances=500)
    await asyncio.to_thread(scene.send_burst, 500)

    async with scene.worker(queue_of(adapter)):
        await until(lambda: len(scene.deletes()) >= 500)
        await until(lambda: scene.acknowledged() >= 500, pause=2.0)
    await adapter.close()

    assert sorted(scene.deletes()) == sorted(f"claim-{instance_id(number)}" for number in range(500))
