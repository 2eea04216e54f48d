"""Which pods stamp the claim of their node, and which do not (LIF-80 to LIF-82, BEH-86)."""

from dataclasses import replace

import pytest

from dovetail.activities.upkeep.claims import ClaimUpkeep
from dovetail.model.nodes import NodeClaim
from dovetail.model.pods import Pod
from testing.fakes import FakeClaims, World
from tests.activities.test_upkeep import ReadyClass, seen
from tests.lifecycle.objects import DAEMON, a_joined_claim, a_joined_node, a_pod, a_pool

LONG_AGO = 60.0


async def stamp_after(world: World, *coming: Pod) -> float | None:
    """The claim's stamp after a look without these pods and one with them."""
    task = ClaimUpkeep(FakeClaims(world), ReadyClass(), world.now)
    for pods in ((), coming):
        world.clock += 20.0
        world.put(*pods)
        for write in (await task.look(replace(seen(world, a_pool()), pods=dict(world.pods)))).due:
            await write()
    claim: NodeClaim = world.claims["pool-1"]
    return claim.last_pod_event


def a_world() -> World:
    world = World()
    world.put(a_joined_claim(last_pod_event=world.clock - LONG_AGO), a_joined_node())
    return world


async def test_a_pod_that_comes_stamps_its_claim_with_the_moment_of_the_look() -> None:
    world = a_world()

    assert await stamp_after(world, a_pod("one")) == world.clock


@pytest.mark.parametrize(
    "pod",
    [
        a_pod("agent", owners=(DAEMON,)),
        a_pod("waiting", node_name=""),
        a_pod("elsewhere", node_name="another-node"),
        a_pod("ended", phase="Succeeded"),
    ],
    ids=lambda pod: pod.name,
)
async def test_other_pods_stamp_nothing(pod: Pod) -> None:
    """LIF-81: of a DaemonSet, not bound, on a node that is no claim's, over before it was ever seen."""
    world = a_world()
    before = world.clock - LONG_AGO

    assert await stamp_after(world, pod) == before
