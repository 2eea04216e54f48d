"""An instance that is ending counts as gone when the cloud is listed (GCR-1, CLD-4)."""

from dataclasses import replace

import pytest

from dovetail.activities.orders.vanished_instances import LostInstanceFinder
from dovetail.messages.orders import DeleteClaim, Order
from dovetail.model import names
from dovetail.model.nodes import Condition
from dovetail.model.snapshot import Snapshot
from dovetail.ports.cloud import Instance
from tests.activities.test_departing import an_instance
from tests.lifecycle.objects import a_joined_claim, a_joined_node
from worlds.disruption import EC2_CLASS
from worlds.fakes import FakeCloud, FakeNotices, World

SILENT = (Condition(type=names.READY, status="Unknown"),)


async def orders_of(world: World, looks: int = 1) -> list[Order]:
    collecting = LostInstanceFinder(FakeCloud(world), FakeNotices(world), world.now, world.now)
    orders: list[Order] = []
    for _ in range(looks):
        world.clock += 60.0
        snapshot = Snapshot(
            now=world.clock,
            claims=dict(world.claims),
            nodes=dict(world.nodes),
            supported_node_classes=frozenset({(EC2_CLASS.group, EC2_CLASS.kind)}),
        )
        look = await collecting.look(snapshot)
        orders = list(look.due)
    return orders


async def test_the_claim_of_an_ending_instance_is_deleted_like_that_of_a_lost_one() -> None:
    world = World()
    world.put(a_joined_claim(), a_joined_node(conditions=SILENT))
    world.instances = {"aws:///zone/i-1": replace(an_instance(), state="running")}
    standing = await orders_of(world)
    world.instances = {"aws:///zone/i-1": replace(an_instance(), state="terminating")}

    ending = await orders_of(world)

    assert standing == []
    assert [(o.claim.name, o.reason) for o in ending if isinstance(o, DeleteClaim)] == [("pool-1", "garbage_collected")]


async def test_an_ending_instance_without_a_claim_is_not_terminated_again() -> None:
    world = World()
    world.instances = {"aws:///zone/i-1": replace(an_instance(), state="terminating")}

    assert await orders_of(world, looks=3) == []


@pytest.mark.parametrize("correction", [-7200.0, 7200.0])
async def test_a_clock_that_is_set_right_holds_up_no_list_and_hurries_none(correction: float) -> None:
    """What the finder remembers is of the time before: its lengths go by a clock that nobody sets."""
    world = World()
    lists, clock = list[float](), [0.0]
    cloud = FakeCloud(world)
    listed = cloud.list_instances

    async def list_instances() -> list[Instance]:
        lists.append(clock[0])
        return list(await listed())

    cloud.list_instances = list_instances  # type: ignore[method-assign, assignment]
    offset = [7200.0]
    collecting = LostInstanceFinder(
        cloud, FakeNotices(world), lambda: 1_000_000.0 + offset[0] + clock[0], lambda: clock[0]
    )
    for second in range(31):
        clock[0] = float(second)
        offset[0] = 7200.0 if second < 15 else 7200.0 + correction
        look = await collecting.look(Snapshot(now=collecting.now()))
        assert look.again is not None and 0 < look.again - collecting.now() <= 10.0

    assert lists == [0.0, 10.0, 20.0, 30.0]
