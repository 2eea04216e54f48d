"""Upkeep compares a node with what was launched, says what it finds, and rests for ten minutes (LIF-75 to LIF-77)."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

from dovetail.activities.upkeep.consistency import ConsistencyUpkeep
from dovetail.model import names
from dovetail.model.nodes import NodeClaim, NodeClassRef
from dovetail.model.snapshot import Snapshot
from dovetail.wiring.simulated import SimulatedAdapter
from testbed.simulated_world import SimulatedWorld
from tests.lifecycle.objects import a_joined_claim, a_joined_node, is_now
from worlds.disruption import EC2_CLASS
from worlds.fakes import FakeClaims, FakeNotices, World

SUPPORTED = frozenset({(EC2_CLASS.group, EC2_CLASS.kind)})


def a_settled_world(memory: int) -> World:
    """A claim whose instance was launched with 1000 of memory, and a node that has this much of it."""
    world = World()
    initialised = is_now(names.INITIALIZED_CONDITION, changed=world.clock - 60.0)
    world.put(
        a_joined_claim(conditions=(initialised,), requests={"memory": 1}, capacity={"memory": 1000}),
        a_joined_node(capacity={"memory": memory}),
    )
    return world


async def look(task: ConsistencyUpkeep, world: World) -> int:
    snapshot = Snapshot(
        now=world.clock, claims=dict(world.claims), nodes=dict(world.nodes), supported_node_classes=SUPPORTED
    )
    writes = (await task.look(snapshot)).due
    for write in writes:
        await write()
    return len(writes)


def verdict(world: World) -> tuple[str, str] | None:
    claim: NodeClaim = world.claims["pool-1"]
    found = claim.condition("ConsistentStateFound")
    return None if found is None else (found.status, found.reason)


async def test_a_node_that_is_too_small_is_reported_on_its_claim_and_by_an_event() -> None:
    """LIF-77, EVT-8, BEH-85."""
    world = a_settled_world(500)
    task = ConsistencyUpkeep(FakeClaims(world), FakeNotices(world), world.now)

    await look(task, world)

    assert verdict(world) == ("False", "ConsistencyCheckFailed")
    assert [(n.kind, n.reason) for n in world.notices] == [("NodeClaim", "FailedConsistencyCheck")]
    assert "50.0%" in world.notices[0].message
    assert world.notices[0].distinct == world.notices[0].message, "each issue is a notice of its own"


async def test_a_node_that_is_what_was_launched_is_consistent_without_an_event() -> None:
    """LIF-77."""
    world = a_settled_world(950)

    await look(ConsistencyUpkeep(FakeClaims(world), FakeNotices(world), world.now), world)

    assert (verdict(world), world.notices) == (("True", "ConsistentStateFound"), [])


async def test_a_claim_is_compared_once_in_ten_minutes() -> None:
    """LIF-75."""
    world = a_settled_world(500)
    task = ConsistencyUpkeep(FakeClaims(world), FakeNotices(world), world.now)
    counts = []

    for after in (0.0, 590.0, 20.0):
        world.clock += after
        counts.append(await look(task, world))

    assert counts == [1, 0, 1]


async def test_after_a_restart_claims_are_compared_again_and_nothing_else_changes(tmp_path: Path) -> None:
    """DUR-24: which claims were compared and which Events were published is forgotten; what is written on the claim
    stays, its moment too, and one more Event tells of it."""
    world, file = a_settled_world(500), tmp_path / "world.sqlite"
    cluster = SimulatedWorld.create(file)
    written, ledgers = [], []
    for _ in range(2):  # lives of a worker
        with closing(SimulatedAdapter.open(file, "dovetail/test")) as adapter:
            task = ConsistencyUpkeep(FakeClaims(world), adapter.notices, world.now)
            for after in (0.0, 601.0):
                world.clock += after
                await look(task, world)
                written.append(world.claims["pool-1"].conditions)
        ledgers.append(len([line for line in world.ledger if line.startswith("patch status")]))
    events = [event["reason"] for event in cluster.objects("Event")]
    cluster.close()

    assert ledgers == [1, 1]
    assert written == written[:1] * 4
    assert events == ["FailedConsistencyCheck"] * 2


async def test_a_claim_that_is_not_initialised_gets_no_verdict() -> None:
    """LIF-77: upstream writes True there, although nothing has been compared."""
    world = a_settled_world(500)
    world.put(a_joined_claim(conditions=(), requests={"memory": 1}, capacity={"memory": 1000}))

    assert await look(ConsistencyUpkeep(FakeClaims(world), FakeNotices(world), world.now), world) == 0


async def test_a_claim_of_another_provider_is_not_compared() -> None:
    """LIF-75."""
    world = a_settled_world(500)
    other = NodeClassRef(group="other.cloud", kind="OtherClass", name="default")
    world.put(replace(world.claims["pool-1"], node_class=other))

    assert await look(ConsistencyUpkeep(FakeClaims(world), FakeNotices(world), world.now), world) == 0
