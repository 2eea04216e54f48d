"""Which pools get a status, and how often their NodeClass is looked at (NPL-15)."""

from dataclasses import replace

from dovetail.activities.upkeep.pool_status import PoolStatuses
from dovetail.model.nodes import NodeClassRef
from dovetail.ports.cloud import NodeClassState
from testing.fakes import World
from tests.activities.test_upkeep import ReadyClass, seen
from tests.lifecycle.objects import a_pool

OTHER = NodeClassRef(group="other.cloud", kind="OtherClass", name="default")


class Counted(ReadyClass):
    """A class that is ready or not, and how often it was asked for."""

    def __init__(self, *, ready: bool = True) -> None:
        self.state = NodeClassState(found=True, ready="True" if ready else "False", reason="Why", generation=1)
        self.asked = 0

    async def node_class(self, reference: NodeClassRef) -> NodeClassState:
        self.asked += 1
        return self.state


async def test_a_pool_of_another_provider_gets_no_status() -> None:
    """NPL-15, PLM-1."""
    world, classes = World(), Counted()

    wanted, _ = await PoolStatuses(classes, world.now).wanted(seen(world, a_pool(template={"node_class": OTHER})))

    assert (wanted, classes.asked) == ({}, 0)


async def test_a_class_that_is_not_ready_is_looked_at_more_often() -> None:
    """Pods wait for it."""
    world = World()
    again = [
        (await PoolStatuses(Counted(ready=ready), world.now).wanted(seen(world, a_pool())))[1]
        for ready in (True, False)
    ]

    assert again == [world.clock + 10.0, world.clock + 2.0]


async def test_a_class_that_has_changed_is_seen_with_the_look_that_its_change_brings_about() -> None:
    """NPL-15: a class that is deleted is not believed to be ready for some seconds more."""
    world, classes = World(), Counted()
    statuses = PoolStatuses(classes, world.now)
    await statuses.wanted(seen(world, a_pool("a"), a_pool("b")))
    once = classes.asked
    classes.state = replace(classes.state, deleting=True)

    wanted, _ = await statuses.wanted(seen(world, a_pool("a"), a_pool("b")))

    assert once == 1, "however many pools refer to it"
    for pool in ("a", "b"):
        assert "NodeClassTerminating" in {condition.reason for condition in wanted[pool].conditions or ()}
