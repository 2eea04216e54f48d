"""Terminations at once on one worker, each held by a pod that may not leave: none is starved, and they beat seldom.

Temporal's own server, the product's own workers with their slots, the real drain; the other steps answer at once.
"""

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest
from temporalio import activity
from temporalio.client import Client, WorkflowExecutionStatus

from dovetail.activities.termination.drain_node import DrainNode
from dovetail.activities.termination.eviction_pace import EvictionPace
from dovetail.messages.inputs import ClaimInput
from dovetail.messages.outcomes import DrainOutcome
from dovetail.messages.subjects import ClaimRef, Departure
from dovetail.messages.workflow_ids import claim_owner_id, task_queue
from dovetail.messages.workflow_types import TERMINATE_NODE
from dovetail.model.pods import Pod
from dovetail.ports.objects import Eviction
from dovetail.settings.settings import Settings
from dovetail.worker.steps import steps_of
from dovetail.worker.task_queues import queue_worker
from dovetail.workflows.options import waiting
from tests.lifecycle.objects import a_joined_claim, a_joined_node, a_web_pod
from tests.waiting import until_answered
from tests.workflows.test_claim_owner import STEPS, willing
from worlds.fakes import (
    FakeLookups,
    FakeNotices,
    FakePods,
    World,
    drain_ports,
    heartbeating,
    unlimited,
)

pytestmark = pytest.mark.temporal


class OnePodEach(FakeLookups):
    """The cache has an index, or every look would read every pod."""

    def pods_on(self, node: str) -> tuple[Pod, ...]:
        found = self.world.pods.get(f"uid-pod-{node}")
        return () if found is None else (found,)


class HeldPods(FakePods):
    """No pod may leave."""

    async def evict(self, pod: Pod) -> Eviction:
        return Eviction(outcome="blocked", code=429)

    async def list_on(self, node: str) -> tuple[Pod, ...]:
        found = self.world.pods.get(f"uid-pod-{node}")
        return () if found is None else (found,)


class Counted(DrainNode):
    """The drain, and how often one was begun for each claim."""

    begun: dict[str, int]

    @activity.defn
    async def drain_node(self, departure: Departure) -> DrainOutcome:
        self.begun[departure.claim.name] = self.begun.get(departure.claim.name, 0) + 1
        return await super().drain_node(departure)


@pytest.fixture
def beats(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """When each heartbeat of this process was sent."""
    sent: list[float] = []
    real = activity.heartbeat

    def heartbeat(*details: Any) -> None:
        sent.append(time.monotonic())
        real(*details)

    monkeypatch.setattr(activity, "heartbeat", heartbeat)
    yield sent


def a_world(count: int) -> World:
    world = World(clock=time.time())
    for number in range(count):
        node = f"node-{number}"
        world.put(a_joined_claim(f"claim-{number}", uid=f"uid-{number}", deleting_since=world.clock))
        world.put(a_joined_node(node, uid=f"n-{number}"), a_web_pod(f"pod-{node}", node_name=node))
    return world


def departure_of(claim: ClaimRef) -> Departure:
    number = claim.name.removeprefix("claim-")
    return Departure(claim=claim, provider_id=f"i-{number}", nodes=(f"node-{number}",), node_uids=(f"n-{number}",))


async def begin(client: Client, cluster: str, count: int) -> None:
    """A TerminateNode for each claim, fifty starts at a time."""
    for first in range(0, count, 50):
        await asyncio.gather(
            *[
                client.start_workflow(
                    TERMINATE_NODE,
                    ClaimInput(cluster=cluster, claim=ClaimRef(name=f"claim-{n}", uid=f"uid-{n}", pool="p")),
                    id=claim_owner_id(cluster, f"claim-{n}"),
                    task_queue=task_queue(cluster, "control"),
                )
                for n in range(first, min(first + 50, count))
            ]
        )


@pytest.mark.parametrize(
    ("count", "seconds"), [(40, 10.0), pytest.param(1000, 60.0, marks=pytest.mark.soak)], ids=["forty", "thousand"]
)
async def test_terminations_at_once_all_get_their_turn_and_beat_seldom(
    full_server: Client, beats: list[float], count: int, seconds: float
) -> None:
    world, cluster = a_world(count), f"many-{count}"
    notices = FakeNotices(world)
    ports = drain_ports(
        world,
        lookups=OnePodEach(world),
        pods=HeldPods(world),
        notices=notices,
    )
    draining = Counted(ports, unlimited(EvictionPace(time.time)), time.time)
    draining.begun = {}
    others = willing(begin_departure=departure_of).of(*[step for step in STEPS if step is not DrainNode])
    steps = {"control": others, "cloud": others, "waits": [*others, *steps_of(draining)]}
    workers = [
        queue_worker(
            full_server,
            Settings(cluster=cluster),
            queue,
            of,
            [heartbeating()],
        )
        for queue, of in steps.items()
    ]
    serving = [asyncio.create_task(worker.run()) for worker in workers]
    try:
        await begin(full_server, cluster, count)

        async def all_drain() -> bool:
            return len(draining.begun) == count

        await until_answered(all_drain, 30 + count / 3)
        await asyncio.sleep(2 * waiting(cluster)["heartbeat_timeout"].total_seconds() if count > 100 else 1.0)
        since, before = time.monotonic(), len(beats)
        await asyncio.sleep(seconds)
        rate = (len(beats) - before) / (time.monotonic() - since)
        tried_again = {name for name, times in draining.begun.items() if times > 1}
        world.pods.clear()

        async def all_gone() -> bool:
            left = await full_server.count_workflows(
                f'WorkflowId STARTS_WITH "{cluster}/" AND ExecutionStatus = "Running"'
            )
            return left.count == 0

        await until_answered(all_gone, 30 + count / 3)
    finally:
        await asyncio.gather(*[worker.shutdown() for worker in workers])
        await asyncio.gather(*serving)

    ended = await full_server.get_workflow_handle(claim_owner_id(cluster, "claim-0")).describe()
    print(f"{count} terminations: {rate:.1f} heartbeats a second, {len(tried_again)} drains tried again")
    assert ended.status == WorkflowExecutionStatus.COMPLETED
    assert not tried_again
    assert 0 < rate <= 100
