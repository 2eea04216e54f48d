"""Which pools get a status, and how often their NodeClass is looked at (NPL-15)."""

from dataclasses import replace

from dovetail.activities.upkeep.pool_status import PoolStatuses
from dovetail.lifecycle.pool_health import RESULTS
from dovetail.model import names
from dovetail.model.nodes import NodeClassRef
from dovetail.model.values.hashing import NODE_POOL_HASH_ALGORITHM
from dovetail.ports.cloud import NodeClassState
from tests.activities.test_upkeep import ReadyClass, seen
from tests.lifecycle.objects import a_new_pool
from worlds.disruption import a_claim
from worlds.fakes import World

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

    wanted, _ = await PoolStatuses(classes, world.now).wanted(seen(world, a_new_pool(template={"node_class": OTHER})))

    assert (wanted, classes.asked) == ({}, 0)


async def test_a_class_that_is_not_ready_is_looked_at_more_often() -> None:
    """Pods wait for it."""
    world = World()
    again = [
        (await PoolStatuses(Counted(ready=ready), world.now).wanted(seen(world, a_new_pool())))[1]
        for ready in (True, False)
    ]

    assert again == [world.clock + 10.0, world.clock + 2.0]


async def test_a_class_that_has_changed_is_seen_with_the_look_that_its_change_brings_about() -> None:
    """NPL-15: a class that is deleted is not believed to be ready for some seconds more."""
    world, classes = World(), Counted()
    statuses = PoolStatuses(classes, world.now)
    await statuses.wanted(seen(world, a_new_pool("a"), a_new_pool("b")))
    once = classes.asked
    classes.state = replace(classes.state, deleting=True)

    wanted, _ = await statuses.wanted(seen(world, a_new_pool("a"), a_new_pool("b")))

    assert once == 1, "however many pools refer to it"
    for pool in ("a", "b"):
        assert "NodeClassTerminating" in {condition.reason for condition in wanted[pool].conditions or ()}


async def test_a_roll_out_is_said_at_once_and_its_progress_once_a_second() -> None:
    """At rest nothing is written; twenty nodes that are replaced in a second are one write."""
    world = World()
    statuses, pool = PoolStatuses(Counted(), world.now), a_new_pool(hash="new")

    async def look(*hashes: str) -> tuple[str, str] | None:
        nonlocal pool
        stamps = [{names.NODE_POOL_HASH: h, names.NODE_POOL_HASH_VERSION: NODE_POOL_HASH_ALGORITHM} for h in hashes]
        world.claims = {f"c{n}": a_claim(f"c{n}", annotations=stamp) for n, stamp in enumerate(stamps)}
        wanted, _ = await statuses.wanted(seen(world, pool))
        found = wanted.get(pool.name)
        if found is None or found.conditions is None:
            return None
        pool = replace(pool, conditions=found.conditions, usage=found.usage or pool.usage)
        record = {} if found.record is None else {RESULTS: found.record}
        pool = replace(pool, annotations={**pool.annotations, **record})
        return next((c.status, c.message) for c in found.conditions if c.type == "NodesUpToDate")

    assert await look("new", "new", "new") == ("True", "")
    while await look("new", "new", "new") is not None:
        world.clock += 1
    assert await look("old", "old", "old") == ("False", "0/3 nodes are up to date")
    assert await look("new", "old", "old") is None
    world.clock += 1
    assert await look("new", "new", "old") == ("False", "2/3 nodes are up to date")
    assert await look("new", "new", "new") == ("True", "")
    world.clock += 60
    assert await look("new", "new", "new") is None
