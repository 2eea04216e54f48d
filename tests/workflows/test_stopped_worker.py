"""A worker that is asked to stop finishes the evictions that it has in flight.

Cut off in the middle, an eviction that the API server has booked and not carried out closes its PodDisruptionBudget for
two minutes. The worker is the product's own, with its own grace; only the pods are slow.
"""

import asyncio
import time

import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from dovetail.activities.termination.drain_node import DrainNode
from dovetail.activities.termination.eviction_pace import EvictionPace
from dovetail.messages.inputs import ClaimInput
from dovetail.messages.workflow_ids import claim_owner_id, task_queue
from dovetail.model.pods import Pod
from dovetail.ports.objects import Eviction
from dovetail.settings.settings import Settings
from dovetail.worker.sandbox import runner
from dovetail.worker.task_queues import queue_worker
from dovetail.workflows.terminate_node import TerminateNode
from tests.lifecycle.objects import a_joined_claim, a_joined_node, a_web_pod
from tests.workflows.test_claim_owner import CLAIM, STEPS, willing
from worlds.fakes import (
    FakeNotices,
    FakePods,
    World,
    drain_ports,
    heartbeating,
    unlimited,
)

pytestmark = pytest.mark.temporal

SLOW = 1.0  # seconds for the API server to answer; less than the worker's grace


class SlowPods(FakePods):
    """An API server that takes its time over an eviction."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.asked, self.answered = asyncio.Event(), 0.0

    async def evict(self, pod: Pod) -> Eviction:
        self.asked.set()
        await asyncio.sleep(SLOW)
        self.answered = time.monotonic()
        return Eviction(outcome="evicted", code=201)


async def test_a_worker_that_is_stopped_finishes_its_evictions_in_flight(full_server: Client) -> None:
    world, cluster = World(clock=time.time()), "stopped"
    pods, notices = SlowPods(world), FakeNotices(world)
    world.put(a_joined_claim(CLAIM.name, uid=CLAIM.uid, deleting_since=world.clock), a_joined_node(uid="n-1"))
    world.put(a_web_pod(node_name="node-1"))
    ports = drain_ports(
        world,
        pods=pods,
        notices=notices,
    )
    draining = DrainNode(ports, unlimited(EvictionPace(time.time)), time.time)
    steps = willing().of(*[step for step in STEPS if step is not DrainNode])
    control = Worker(
        full_server,
        task_queue=task_queue(cluster, "control"),
        workflows=[TerminateNode],
        activities=steps,
        workflow_runner=runner(),
    )
    waits = queue_worker(
        full_server,
        Settings(cluster=cluster),
        "waits",
        [draining.drain_node],
        [heartbeating()],
    )

    async with control:
        serving = asyncio.create_task(waits.run())
        handle = await full_server.start_workflow(
            TerminateNode.run,
            ClaimInput(cluster=cluster, claim=CLAIM),
            id=claim_owner_id(cluster, CLAIM.name),
            task_queue=task_queue(cluster, "control"),
        )
        await asyncio.wait_for(pods.asked.wait(), 30)
        unanswered = pods.answered
        await waits.shutdown()
        await serving
        await handle.terminate()

    assert (unanswered, pods.answered > 0.0) == (0.0, True)
    assert "Evicted" in world.said()
