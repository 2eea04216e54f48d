"""500 drains at once, a tenth of them blocked by PDBs: the others finish as fast as alone.

Real time, pods that end half a second after their eviction; the API server answers at once.
"""

import asyncio
import time
from dataclasses import replace

import pytest

from dovetail.activities.termination.drain_node import DrainNode
from dovetail.activities.termination.eviction_pace import EvictionPace
from dovetail.messages.subjects import ClaimRef, Departure
from dovetail.model.pods import Pod
from dovetail.ports.objects import Eviction
from tests.lifecycle.objects import a_joined_claim, a_joined_node, a_web_pod
from worlds.fakes import (
    FakeLookups,
    FakeNotices,
    FakePods,
    World,
    drain_ports,
    unlimited,
)

NODES, BLOCKED, PODS = 500, 50, 4


class RealPods(FakePods):
    """Pods that end a moment after their eviction, in real time."""

    async def evict(self, pod: Pod) -> Eviction:
        if self.answers.get(pod.uid):
            return Eviction(outcome="blocked", code=429)
        self.world.pods[pod.uid] = replace(pod, deleting_since=time.time() + 1)
        asyncio.get_running_loop().call_later(0.5, self.world.kill, pod)
        return Eviction(outcome="evicted", code=201)


class ByNode(FakeLookups):
    """The cache has an index, or every look would read every pod."""

    def pods_on(self, node: str) -> tuple[Pod, ...]:
        number = node.removeprefix("node-")
        found = (self.world.pods.get(f"uid-pod-{number}-{index}") for index in range(PODS))
        return tuple(pod for pod in found if pod is not None)


def a_departure(number: int) -> Departure:
    pool = "stuck" if number < BLOCKED else "free"
    return Departure(
        claim=ClaimRef(name=f"claim-{number}", uid=f"uid-claim-{number}", pool=pool),
        provider_id=f"i-{number}",
        nodes=(f"node-{number}",),
        node_uids=(f"uid-node-{number}",),
    )


async def drained(numbers: range, blocked: int) -> list[float]:
    """How long each of these drains took that ended within the time."""
    world = World()
    pods, notices = RealPods(world), FakeNotices(world)
    for number in numbers:
        world.put(a_joined_claim(f"claim-{number}", deleting_since=0.0), a_joined_node(f"node-{number}"))
        mine = [a_web_pod(f"pod-{number}-{index}", node_name=f"node-{number}") for index in range(PODS)]
        world.put(*mine)
        if number < blocked:
            pods.answers.update({pod.uid: "blocked" for pod in mine})
    ports = drain_ports(
        world,
        lookups=ByNode(world),
        pods=pods,
        notices=notices,
    )
    step = DrainNode(ports, unlimited(EvictionPace(time.time)), time.time)
    started = time.time()

    async def one(number: int) -> float:
        await step.drain_node(a_departure(number))
        return time.time() - started

    tasks = [asyncio.create_task(one(number)) for number in numbers]
    done, waiting = await asyncio.wait(tasks, timeout=60)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    return sorted(task.result() for task in done)


@pytest.mark.soak
async def test_blocked_drains_do_not_hold_up_the_others() -> None:
    alone = await drained(range(BLOCKED, NODES), 0)
    beside = await drained(range(NODES), BLOCKED)

    print(f"450 drains alone: median {alone[225]:.1f} s, last {alone[-1]:.1f} s", end="; ")
    print(f"beside 50 blocked: median {beside[225]:.1f} s, last {beside[-1]:.1f} s")
    assert (len(alone), len(beside)) == (NODES - BLOCKED, NODES - BLOCKED)
    assert beside[-1] < alone[-1] * 1.3 + 1
