"""What upkeep writes on claims about drift and quiet: when the cloud is asked, and whose claims are left alone."""

from dataclasses import replace

from dovetail.activities.upkeep.claims import ClaimUpkeep
from dovetail.model import names
from dovetail.model.nodes import Condition, NodeClaim, NodeClassRef
from dovetail.model.pools import NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.ports.failures import Unreachable
from tests.activities.test_upkeep import ReadyClass, seen
from tests.lifecycle.objects import a_joined_claim, a_joined_node, a_new_pool, a_quiet_pool, a_web_pod, is_now
from worlds.fakes import FakeClaims, World


class JudgingClass(ReadyClass):
    """A cloud that says of every instance that its image is old, or does not answer."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answers = True

    async def drift(self, claim: NodeClaim) -> str:
        self.asked.append(claim.name)
        if not self.answers:
            raise Unreachable("ec2", "the call never arrived")
        return "AMIDrift"


def drifted(world: World) -> Condition | None:
    return world.claims["pool-1"].condition(names.DRIFTED)


def pictured(world: World, *pools: NodePool) -> Snapshot:
    return replace(seen(world, *(pools or (a_new_pool(),))), pods=dict(world.pods))


async def look(task: ClaimUpkeep, world: World, *pools: NodePool) -> int:
    """The number of writes that a look finds; they are made."""
    writes = (await task.look(pictured(world, *pools))).due
    for write in writes:
        await write()
    return len(writes)


async def test_the_cloud_is_asked_about_drift_every_five_minutes() -> None:
    """DIS-170."""
    world, cloud = World(), JudgingClass()
    world.put(a_joined_claim(), a_joined_node())
    task = ClaimUpkeep(
        FakeClaims(world), cloud, world.now, reservation_labels=frozenset(), well_known=names.WELL_KNOWN_LABELS
    )

    for seconds, asked in ((0.0, 1), (299.0, 1), (1.0, 2)):
        world.clock += seconds
        await look(task, world)
        assert len(cloud.asked) == asked

    found = drifted(world)
    assert found is not None and (found.status, found.reason) == ("True", "AMIDrift")


async def test_a_cloud_that_does_not_answer_leaves_drift_as_it_is() -> None:
    """DIS-170: also after a restart, which has forgotten every earlier answer; a drift that came off would lose its
    place in the order."""
    world, cloud = World(), JudgingClass()
    cloud.answers = False
    before = is_now(names.DRIFTED, reason="AMIDrift", message="AMIDrift")
    world.put(a_joined_claim(conditions=(*a_joined_claim().conditions, before)), a_joined_node())
    world.clock += 600.0

    await look(
        ClaimUpkeep(
            FakeClaims(world), cloud, world.now, reservation_labels=frozenset(), well_known=names.WELL_KNOWN_LABELS
        ),
        world,
    )

    assert (cloud.asked, drifted(world)) == (["pool-1"], before)


async def test_claims_that_leave_belong_elsewhere_or_have_no_pool_are_not_judged() -> None:
    """DIS-166."""
    world, cloud = World(), JudgingClass()
    world.put(
        a_joined_claim("leaving", deleting_since=world.clock),
        a_joined_claim("foreign", node_class=NodeClassRef(group="other.cloud", kind="OtherClass", name="default")),
        a_joined_claim("lost", labels={names.NODE_POOL: "deleted"}),
    )

    written = await look(
        ClaimUpkeep(
            FakeClaims(world), cloud, world.now, reservation_labels=frozenset(), well_known=names.WELL_KNOWN_LABELS
        ),
        world,
    )

    assert (written, cloud.asked) == (0, [])


async def test_a_claim_is_stamped_at_most_every_ten_seconds() -> None:
    """DIS-142, DIS-164."""
    world = World()
    world.put(a_joined_claim(), a_joined_node())
    task = ClaimUpkeep(
        FakeClaims(world), ReadyClass(), world.now, reservation_labels=frozenset(), well_known=names.WELL_KNOWN_LABELS
    )
    await look(task, world, a_quiet_pool())
    stamps: list[float | None] = []

    for number, seconds in enumerate((20.0, 9.0, 1.0)):
        world.clock += seconds
        world.put(a_web_pod(f"web-{number}"))
        await look(task, world, a_quiet_pool())
        stamps.append(world.claims["pool-1"].last_pod_event)

    assert stamps == [1020.0, 1020.0, 1030.0]
