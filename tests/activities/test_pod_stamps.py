"""Which pods stamp the claim of their node, and which do not (LIF-80 to LIF-82, BEH-86)."""

from dataclasses import replace

import pytest

from dovetail.activities.upkeep.claims import ClaimUpkeep
from dovetail.disruption.upkeep.timers import UNASKED_AFTER
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.pods import Pod
from dovetail.model.pools import NodePool
from dovetail.ports.failures import Unreachable
from dovetail.ports.objects import ClaimStatus
from tests.activities.test_upkeep import ReadyClass, seen
from tests.lifecycle.objects import DAEMON, a_joined_claim, a_joined_node, a_new_pool, a_quiet_pool, a_web_pod
from worlds.fakes import FakeClaims, World

LONG_AGO, FREE = 60.0, a_new_pool()  # a pool that asks for no quiet


async def stamp_after(world: World, *coming: Pod) -> float | None:
    """The claim's stamp after a look without these pods and one with them."""
    task = ClaimUpkeep(
        FakeClaims(world), ReadyClass(), world.now, reservation_labels=frozenset(), well_known=names.WELL_KNOWN_LABELS
    )
    for pods in ((), coming):
        world.clock += 20.0
        world.put(*pods)
        for write in (await task.look(replace(seen(world, a_quiet_pool()), pods=dict(world.pods)))).due:
            await write()
    claim: NodeClaim = world.claims["pool-1"]
    return claim.last_pod_event


def a_world() -> World:
    world = World()
    world.put(a_joined_claim(last_pod_event=world.clock - LONG_AGO), a_joined_node())
    return world


async def test_a_pod_that_comes_stamps_its_claim_with_the_moment_of_the_look() -> None:
    world = a_world()

    assert await stamp_after(world, a_web_pod("one")) == world.clock


@pytest.mark.parametrize(
    "pod",
    [
        a_web_pod("agent", owners=(DAEMON,)),
        a_web_pod("waiting", node_name=""),
        a_web_pod("elsewhere", node_name="another-node"),
        a_web_pod("ended", phase="Succeeded"),
    ],
    ids=lambda pod: pod.name,
)
async def test_other_pods_stamp_nothing(pod: Pod) -> None:
    """LIF-81: of a DaemonSet, not bound, on a node that is no claim's, over before it was ever seen."""
    world = a_world()
    before = world.clock - LONG_AGO

    assert await stamp_after(world, pod) == before


class Away(FakeClaims):
    """An API server that does not answer."""

    async def patch_status(self, claim: NodeClaim, status: ClaimStatus) -> NodeClaim | None:
        raise Unreachable("NodeClaim", "503")


class Looking:
    """Upkeep over one claim; `writes` counts the requests."""

    def __init__(self) -> None:
        self.world = a_world()
        self.writes = 0
        self.again: float | None = None
        self.task = ClaimUpkeep(
            FakeClaims(self.world),
            ReadyClass(),
            self.world.now,
            reservation_labels=frozenset(),
            well_known=names.WELL_KNOWN_LABELS,
        )

    async def look(self, seconds: float, pool: NodePool, *pods: str) -> None:
        """After so many seconds, with these pods on the node."""
        self.world.clock += seconds
        self.world.pods.clear()
        self.world.put(*[a_web_pod(name) for name in pods])
        found = await self.task.look(replace(seen(self.world, pool), pods=dict(self.world.pods)))
        self.again = found.again
        self.writes += len(found.due)
        for write in found.due:
            await write()

    @property
    def stamp(self) -> float | None:
        claim: NodeClaim = self.world.claims["pool-1"]
        return claim.last_pod_event


@pytest.fixture
async def settled() -> Looking:
    """All that a claim says beside its stamp is written."""
    looking = Looking()
    for _ in range(2):
        await looking.look(0.0, FREE)
    looking.writes = 0
    return looking


async def test_where_no_quiet_is_asked_for_all_that_moves_in_five_minutes_is_one_write(settled: Looking) -> None:
    """LIF-80, DIS-164."""
    began, old = settled.world.clock, settled.stamp

    for number in range(14):
        await settled.look(20.0, FREE, f"pod-{number}")
    early = (settled.writes, settled.stamp)
    await settled.look(40.0, FREE, "pod-13")
    await settled.look(20.0, FREE, "pod-13")

    assert early == (0, old)
    assert (settled.writes, settled.stamp) == (1, began + 14 * 20.0)


async def test_upkeep_looks_again_when_what_nobody_asks_about_is_due(settled: Looking) -> None:
    began = settled.world.clock
    await settled.look(20.0, FREE, "one")

    await settled.look(UNASKED_AFTER - 15.0, FREE, "one")  # the cloud has been asked about drift again

    assert settled.again == began + 20.0 + UNASKED_AFTER


async def test_a_node_that_is_gone_by_then_is_never_stamped(settled: Looking) -> None:
    await settled.look(20.0, FREE, "one")
    claim = settled.world.claims["pool-1"]
    settled.world.put(replace(claim, deleting_since=settled.world.clock))

    await settled.look(UNASKED_AFTER, FREE)

    assert settled.writes == 0


async def test_a_pool_that_comes_to_ask_for_quiet_has_it_from_the_moment_of_the_movement(settled: Looking) -> None:
    await settled.look(20.0, FREE, "one")
    moved = settled.world.clock

    await settled.look(20.0, a_quiet_pool(3600.0), "one")
    await settled.look(20.0, a_quiet_pool(3600.0), "one")

    assert settled.stamp == moved
    assert not settled.world.claims["pool-1"].is_true(names.CONSOLIDATABLE)


async def test_a_stamp_whose_write_failed_is_written_at_the_next_look() -> None:
    """LIF-80: else a node would be consolidated soon after a pod came, because its claim never says so."""
    looking = Looking()
    await looking.look(0.0, a_quiet_pool())
    await looking.look(20.0, a_quiet_pool())
    looking.task.claims = Away(looking.world)
    with pytest.raises(Unreachable):
        await looking.look(20.0, a_quiet_pool(), "one")
    came = looking.world.clock
    looking.task.claims = FakeClaims(looking.world)

    await looking.look(5.0, a_quiet_pool(), "one")

    assert looking.stamp == came
