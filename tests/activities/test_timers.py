"""The list of all timers (DUR-31), each found out by what happens just before it is over and just after."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import pairwise

import pytest

from dovetail.activities.orders.replicas import ReplicaFinder
from dovetail.activities.orders.vanished_instances import LostInstanceFinder
from dovetail.activities.termination.begin_and_end_departure import BeginAndEndDeparture
from dovetail.activities.termination.terminate_instance import TerminateInstance
from dovetail.activities.upkeep.consistency import ConsistencyUpkeep
from dovetail.disruption.upkeep.timers import is_stamp_due
from dovetail.lifecycle.liveness import launch_overdue, registration_overdue
from dovetail.lifecycle.repair import find_repairs
from dovetail.lifecycle.unfinished import expired
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.objects.pod_rules import awaits_eviction
from tests.activities import test_draining
from tests.activities.test_consistency import a_settled_world, look
from tests.activities.test_departing import an_instance
from tests.activities.test_ordering import FakeClasses
from tests.lifecycle.objects import a_joined_claim, a_joined_node, a_web_pod, is_now
from tests.lifecycle.test_gated import SILENT, a_claim_with_node, a_gated_snapshot, silent, some
from worlds.disruption import a_claim
from worlds.fakes import FakeClaims, FakeCloud, FakeNotices, World, departure_ports

BEGAN = 1000.0
MINUTE = 60.0

Happens = Callable[[float], bool]


def seconds_until(happens: Happens) -> float:
    """After how many seconds it happens: found by halves, to a hundredth of one."""
    before, after = 0.0, 1e6
    assert not happens(BEGAN), "it has happened already"
    while after - before > 0.01:
        middle = (before + after) / 2
        before, after = (before, middle) if happens(BEGAN + middle) else (middle, after)
    return round(after, 1)


LAUNCHING = a_claim(created=BEGAN)
REGISTERING = a_claim(created=BEGAN, conditions=(is_now(names.LAUNCHED, changed=BEGAN + 200.0),))
EXPIRING = a_joined_claim(created=BEGAN, expire_after=7200.0)
STAMPED = a_joined_claim(last_pod_event=BEGAN)
LEAVING = a_web_pod(deleting_since=BEGAN)


def is_expired(claim: NodeClaim, now: float) -> bool:
    return bool(expired(replace(a_gated_snapshot(claim), now=now)))


def is_repaired(now: float) -> bool:
    sick = replace(silent(0), changed=BEGAN)
    return bool(find_repairs(replace(a_gated_snapshot(*a_claim_with_node(1, sick)), now=now), (SILENT,)).orders)


@pytest.mark.parametrize(
    ("seconds", "happens"),
    [
        (60.0, lambda now: not awaits_eviction(LEAVING, now)),  # a pod that does not end holds its node no longer
        (5 * MINUTE, lambda now: launch_overdue(LAUNCHING, now)),
        (15 * MINUTE, lambda now: registration_overdue(REGISTERING, now)),  # from the creation, not from the launch
        (7200.0, lambda now: is_expired(EXPIRING, now)),  # what the claim itself says
        (30 * MINUTE, is_repaired),  # what the policy says
        (10.0, lambda now: is_stamp_due(STAMPED, now)),  # between two stamps of pods that come and go
    ],
)
def test_what_is_waited_for_happens_at_its_moment(seconds: float, happens: Happens) -> None:
    """DUR-31, TRM-13, LIF-41, LIF-43, LIF-60, GCR-12, DIS-163."""
    assert seconds_until(happens) == seconds


async def lists_of_the_cloud() -> list[float]:
    """The pauses between the first lists of a process and the later ones."""
    world = World(clock=BEGAN)
    finder = LostInstanceFinder(FakeCloud(world), FakeNotices(world), world.now, world.now)
    return await pauses(world, lambda: finder.look(a_gated_snapshot()), 22)


async def static_pools() -> list[float]:
    world = World(clock=BEGAN)
    finder = ReplicaFinder(world.now, FakeClasses(), names.WELL_KNOWN_LABELS)
    return await pauses(world, lambda: finder.look(a_gated_snapshot()), 2)


async def consistency() -> list[float]:
    world = a_settled_world(500)
    task, looked = ConsistencyUpkeep(FakeClaims(world), FakeNotices(world), world.now), []
    for _ in range(1300):
        if await look(task, world):
            looked.append(world.clock)
        world.clock += 1.0
    return [later - earlier for earlier, later in pairwise(looked)]


async def repairs_that_are_too_many() -> list[float]:
    found = find_repairs(a_gated_snapshot(*some(10, 3)), (SILENT,))
    assert found.blocked and found.next_due is not None
    return [found.next_due - a_gated_snapshot().now]


async def pauses(world: World, ask: Callable[[], Awaitable[object]], count: int) -> list[float]:
    """The pauses that so many looks ask for, each look at the moment that the one before it has named."""
    found = []
    for _ in range(count):
        answer = await ask()
        again: float = answer.again  # type: ignore[attr-defined]
        found.append(again - world.clock)
        world.clock = again
    return found


async def evictions_of_a_pod_that_a_budget_holds() -> list[float]:
    stage = test_draining.new_stage()
    pod = a_web_pod()
    stage.holds(pod)
    stage.pods.answers[pod.uid] = "blocked"
    stage.world.at(1100.0, stage.pods.answers.clear)
    await stage.run()
    asked = [float(line.split()[2]) for line in stage.world.ledger if line.startswith("evict")]
    return [round(later - earlier, 1) for earlier, later in pairwise(asked)]


async def looks_for_the_end_of_an_instance() -> list[float]:
    world, found = World(clock=BEGAN), list[float]()
    world.put(a_joined_claim(deleting_since=BEGAN), a_joined_node())
    world.instances, cloud = {"aws:///zone/i-1": an_instance()}, FakeCloud(world)
    cloud.lingers = 8

    async def pause(seconds: float) -> None:
        found.append(seconds)

    departing = BeginAndEndDeparture(departure_ports(world, cloud=cloud), world.now)
    step = TerminateInstance(departing.known, cloud, world.now, departing, pause)
    await step.terminate_instance(test_draining.DEPARTURE)
    return found


@pytest.mark.parametrize(
    ("rhythm", "expected"),
    [
        (lists_of_the_cloud, [10.0] * 19 + [30.0] * 3),  # upstream: 2 min, and 10 s at first
        (static_pools, [60.0] * 2),
        (consistency, [600.0] * 2),
        (repairs_that_are_too_many, [300.0]),
        (looks_for_the_end_of_an_instance, [0.5, 0.5, 1.0, 1.0, 2.0, 3.0, 5.0, 5.0]),  # upstream: 5 s from the start
    ],
)
async def test_what_is_repeated_has_its_rhythm(
    rhythm: Callable[[], Awaitable[list[float]]], expected: list[float]
) -> None:
    """DUR-31, GCR-1, GCR-14, NPL-43, LIF-75, TRM-36."""
    assert await rhythm() == expected


async def test_the_pauses_between_evictions_grow_from_a_tenth_of_a_second_to_ten() -> None:
    """DUR-31, TRM-26."""
    asked = await evictions_of_a_pod_that_a_budget_holds()

    assert 0.1 <= asked[0] <= 0.2
    assert all(earlier <= later for earlier, later in pairwise(asked[:6]))
    assert 10.0 <= max(asked) <= 11.0
