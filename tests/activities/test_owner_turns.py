"""No more than a share of one owner's pods is taken from it at once, over all drains."""

import asyncio
import time
from dataclasses import replace

import pytest

from dovetail.activities.termination.drain_node import DrainNode, EvictionLimits
from dovetail.activities.termination.eviction_pace import EvictionPace
from dovetail.activities.termination.owner_turns import OwnerTurns
from dovetail.messages.subjects import ClaimRef, Departure
from dovetail.model import names
from dovetail.model.nodes import Condition
from dovetail.model.pods import Pod
from dovetail.model.values.time import format_time
from tests.lifecycle.objects import REPLICAS, a_joined_claim, a_joined_node, a_web_pod, is_now
from worlds.fakes import FakeLookups, FakeNotices, FakePods, World, drain_ports

NODES, PODS = 20, 3
SLOW = 5.0  # seconds from a pod's creation until it is Ready


class Replaced(FakePods):
    """Pods of a ReplicaSet: one that is evicted is replaced at once, and the new one is Ready after a while."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.fewest = NODES * PODS
        self.gets_ready = True
        self.comes_to = "rest"

    def _end(self, pod: Pod, after: float) -> None:
        super()._end(pod, after)
        name = f"new-{pod.name}"
        new = replace(pod, name=name, uid=f"uid-{name}", node_name=self.comes_to, ready=False, created=self.world.clock)
        self.world.put(new)
        if self.gets_ready:
            self.world.at(self.world.clock + SLOW, lambda: self.world.put(replace(new, ready=True)))
        self.fewest = min(self.fewest, self.ready())

    def ready(self) -> int:
        return sum(1 for pod in self.world.pods.values() if pod.ready and pod.deleting_since is None)


class Drains:
    """Twenty nodes with three pods of one ReplicaSet each, that leave side by side."""

    def __init__(self, share: float = 0.25) -> None:
        self.world = World()
        for number in range(NODES):
            self.world.put(
                a_joined_claim(
                    f"claim-{number}",
                    deleting_since=1000.0,
                    provider_id=f"i-{number}",
                    conditions=(is_now(names.DISRUPTION_REASON, reason="Drifted"),),
                ),
                a_joined_node(f"node-{number}", provider_id=f"i-{number}"),
            )
            for index in range(PODS):
                name = f"pod-{number:02}-{index}"
                self.world.put(a_web_pod(name, node_name=f"node-{number}", ready=True, created=0.0))
        self.pods, self.notices = Replaced(self.world), FakeNotices(self.world)
        self.lookups = FakeLookups(self.world)
        self.share = share

    def step(self) -> DrainNode:
        """Of a worker of its own."""
        world, now = self.world, self.world.now
        ports = drain_ports(
            world,
            lookups=self.lookups,
            pods=self.pods,
            notices=self.notices,
        )
        limits = EvictionLimits(
            pace=EvictionPace(now, world.pause), turns=OwnerTurns(self.share, self.lookups.all_pods, now)
        )
        return DrainNode(ports, limits, now, self.pause)

    async def pause(self, seconds: float) -> None:
        """Time passes for all drains together."""
        await asyncio.sleep(0)
        await self.world.pause(seconds / NODES)

    async def run(self, numbers: range = range(NODES), deadline: float | None = None) -> float:
        step, began = self.step(), self.world.clock
        if deadline is not None:
            due = {names.TERMINATION_DEADLINE: format_time(deadline)}
            self.world.put(*[replace(claim, annotations=due) for claim in self.world.claims.values()])
        await asyncio.gather(*[step.drain_node(a_departure(number)) for number in numbers])
        return self.world.clock - began


def a_departure(number: int) -> Departure:
    return Departure(
        claim=ClaimRef(name=f"claim-{number}", uid=f"uid-claim-{number}", pool="pool"),
        provider_id=f"i-{number}",
        nodes=(f"node-{number}",),
        node_uids=(f"uid-node-{number}",),
        reason="Drifted",
        tainted=0.0,
    )


async def test_three_quarters_of_an_owners_pods_are_ready_all_the_time() -> None:
    drains = Drains()

    took = await drains.run()

    assert drains.pods.fewest >= 45
    assert SLOW * 3 < took < SLOW * 8  # in four waves and a little more


async def test_pods_that_move_twice_hold_no_drain_for_a_minute() -> None:
    drains = Drains(share=0.05)
    step = drains.step()

    async def drained(number: int, comes_to: str) -> float:
        drains.pods.comes_to = comes_to
        began = drains.world.clock
        await step.drain_node(a_departure(number))
        await drains.world.pause(SLOW)
        return drains.world.clock - began

    await drained(0, comes_to="node-1")

    assert await drained(1, comes_to="rest") < SLOW * 4  # six pods, three at a time
    assert drains.pods.fewest >= 57


async def test_without_a_share_they_leave_at_once() -> None:
    drains = Drains(share=0.0)

    took = await drains.run()

    assert (drains.pods.fewest, took < SLOW) == (0, True)


async def test_two_workers_see_one_anothers_evictions_by_the_pods_that_are_not_ready() -> None:
    """The first of them is gone: what it evicted is known by the pods alone."""
    drains = Drains()
    first = asyncio.create_task(drains.run(range(5)))
    for _ in range(1000):
        await asyncio.sleep(0)
        if drains.pods.ready() == 45:
            break
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)

    await drains.run()

    assert drains.pods.fewest >= 45


async def test_a_deployment_that_never_gets_ready_holds_no_drain_for_ever() -> None:
    drains = Drains()
    drains.pods.gets_ready = False

    took = await drains.run()

    assert 60 <= took < 75
    held = [n.message for n in drains.world.notices if n.reason == "FailedDraining"]
    assert any("pods of ReplicaSet web are on their way" in message for message in held)


async def test_a_deadline_that_would_force_does_not_wait_for_turns() -> None:
    drains = Drains()

    await drains.run(deadline=1000.0 + 80)

    assert not [line for line in drains.world.ledger if line.startswith("force")]
    assert drains.world.clock < 1010.0


async def test_an_interrupted_instance_does_not_wait_for_turns() -> None:
    drains = Drains()
    for name, claim in drains.world.claims.items():
        drains.world.claims[name] = replace(claim, annotations={names.INTERRUPTED: "1970-01-01T00:16:40Z"})

    assert await drains.run() < SLOW


async def test_a_node_that_somebody_deletes_does_not_wait_for_turns() -> None:
    """No room was prepared for its pods."""
    drains = Drains()
    drains.world.put(*[replace(claim, conditions=()) for claim in drains.world.claims.values()])

    await drains.run()

    assert drains.world.clock - 1000.0 < SLOW


async def test_a_node_that_is_not_ready_does_not_wait_for_turns() -> None:
    drains = Drains()
    silent = (Condition(type=names.READY, status="Unknown"),)
    for name, node in drains.world.nodes.items():
        drains.world.nodes[name] = replace(node, conditions=silent)
        drains.world.instances = {}
    drains.lookups.nodes_of = lambda provider_id: ()  # type: ignore[method-assign]

    departures = [replace(a_departure(number), provider_id="") for number in range(NODES)]
    step = drains.step()
    await asyncio.gather(*[step.drain_node(departure) for departure in departures])

    assert drains.world.clock - 1000.0 < SLOW


async def test_a_refused_eviction_takes_no_turn() -> None:
    """Pods that a PDB holds do not hold up those that it lets go."""
    drains = Drains()
    blocked = [pod.uid for pod in drains.world.pods.values() if pod.node_name in {"node-0", "node-1", "node-2"}]
    drains.pods.answers = dict.fromkeys(blocked, "blocked")

    await drains.run(range(3, NODES))
    others = asyncio.create_task(drains.run(range(3)))
    for _ in range(200):
        await asyncio.sleep(0)
    drains.pods.answers.clear()
    await others

    assert drains.pods.fewest >= 45


@pytest.mark.soak
def test_a_hundred_thousand_pods_cost_less_than_a_fiftieth_of_a_core() -> None:
    clock = World()
    pods = [
        a_web_pod(f"pod-{n}", owners=(replace(REPLICAS, uid=f"owner-{n % 500}"),), ready=True) for n in range(100_000)
    ]
    turns = OwnerTurns(0.25, lambda: pods, clock.now)
    turns.take(pods[0])
    began = time.process_time()

    for tick in range(1000):  # ten seconds in which a hundred drains ask ten times a second
        clock.clock += 0.01
        turns.take(pods[tick % 100])

    assert (time.process_time() - began) / 10 < 0.02


@pytest.mark.parametrize("share", [0.25, 1.0])
def test_an_owner_that_is_first_asked_about_is_counted_soon(share: float) -> None:
    clock = World()
    pods = [
        a_web_pod("a", ready=True),
        a_web_pod("b", owners=(replace(REPLICAS, uid="other", name="api"),), ready=True),
    ]
    turns = OwnerTurns(share, lambda: pods, clock.now)

    assert turns.take(pods[0]) == ""
    assert turns.take(pods[1]) == "the pods of ReplicaSet api are being counted"
    clock.clock += 0.001
    assert turns.take(pods[1]) == ""


def test_the_evictions_of_a_pod_of_another_namespace_that_names_the_owner_take_no_turn() -> None:
    clock = World()
    own = a_web_pod("a", ready=True, created=0.0)
    theirs = replace(own, name="theirs", uid="uid-theirs", shape=replace(own.shape, namespace="mallory"))
    turns = OwnerTurns(0.1, lambda: [own, theirs], clock.now)

    assert turns.take(theirs) == ""
    clock.clock += 1.0
    assert turns.take(own) == ""
