"""A claim's life with a worker that dies at every single call: one instance per claim, then nothing.

Judged by the simulated world's ledger and its objects, never by what the steps say of themselves.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from dovetail.adapters.simulator.settings import WorldSettings
from dovetail.wiring.simulated import SimulatedAdapter
from testbed.simulated_world import SimulatedWorld
from tests.activities.lives import Fate, Fault, Life
from tests.adapters.simulator.manifests import a_node_class

AT_ONCE = 16

pytestmark = pytest.mark.slow


class Stage:
    """A world that moves fast, and what its ledger says."""

    def __init__(self, world: SimulatedWorld, adapter: SimulatedAdapter) -> None:
        self.world, self.adapter = world, adapter

    def launched(self, uid: str) -> set[str]:
        """The instances that were ever launched for a claim."""
        return {instance.id for instance in self.world.instances() if instance.claim_uid == uid}

    def alive(self) -> list[str]:
        return [instance.id for instance in self.world.live_instances()]

    def left(self) -> list[str]:
        return [
            f"{kind}/{body['metadata']['name']}" for kind in ("NodeClaim", "Node") for body in self.world.objects(kind)
        ]


@pytest_asyncio.fixture
async def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    monkeypatch.setattr("dovetail.termination.timing.MINIMUM_DRAIN", 0.0)
    world = SimulatedWorld.create(tmp_path / "world.sqlite", WorldSettings(speed=20.0))
    world.apply(a_node_class())
    adapter = SimulatedAdapter.open(tmp_path / "world.sqlite", "dovetail/test")
    try:
        with world.playing():
            yield Stage(world, adapter)
    finally:
        adapter.close()
        world.close()


async def whole_life(stage: Stage, name: str, fate: Fate) -> Life:
    """From the claim to nothing."""
    life = Life(stage.adapter, name, fate)
    await life.create()
    assert await life.launch() == "initialised"
    stage.world.delete("NodeClaim", name)
    await life.terminate()
    await life.release_hanging()
    return life


async def number_of_calls(stage: Stage) -> int:
    """How many calls an undisturbed life makes; the last few depend on how long the cloud takes."""
    life = await whole_life(stage, "undisturbed", Fate())
    return len(life.fate.calls)


async def test_an_undisturbed_life_takes_few_calls(stage: Stage) -> None:
    """At most 15 requests a node from the claim to initialised; its creation is one of them."""
    life = Life(stage.adapter, "claim-1", Fate())
    await life.create()
    since = len(stage.world.ledger())

    assert await life.launch() == "initialised"

    requests = [entry for entry in stage.world.ledger()[since:] if entry.operation.startswith("cluster:")]
    mine = [entry for entry in requests if entry.actor == "dovetail/test"]
    assert len(mine) + 1 <= 15, [entry.operation for entry in mine]


@pytest.mark.parametrize("fault", ["before", "after", "hang"])
async def test_a_worker_that_dies_at_any_call_leaves_one_instance_and_then_nothing(stage: Stage, fault: Fault) -> None:
    """Every call of every step, DUR-1 to DUR-6, DUR-10, DUR-16, DUR-17; a hanging attempt is one that timed out and
    lives on."""
    points = range(await number_of_calls(stage))
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(point: int) -> tuple[int, Life]:
        async with slots:
            return point, await whole_life(stage, f"claim-{point}", Fate(fault=fault, at=point))

    lives = await asyncio.gather(*[one(point) for point in points])

    assert {point: len(stage.launched(life.ref.uid)) for point, life in lives} == dict.fromkeys(points, 1)
    assert (stage.alive(), stage.left()) == ([], [])


@pytest.mark.parametrize("fault", ["before", "after", "hang"])
async def test_a_claim_that_is_deleted_while_it_launches_leaves_nothing(stage: Stage, fault: Fault) -> None:
    """DUR-3: deleted at the moment at which its launch is cut, at each call of the launch."""

    async def one(point: int) -> Life:
        life = Life(stage.adapter, f"claim-{point}", Fate(fault=fault, at=point))
        await life.create()
        launch = asyncio.create_task(life.launch())
        reached = asyncio.create_task(life.fate.reached.wait())
        await asyncio.wait({launch, reached}, return_when=asyncio.FIRST_COMPLETED)
        stage.world.delete("NodeClaim", life.name)
        assert await launch in ("deleting", "gone", "initialised")
        await life.terminate()
        await life.release_hanging()
        return life

    lives = await asyncio.gather(*[one(point) for point in range(10)])
    await settle(stage)

    assert all(len(stage.launched(life.ref.uid)) <= 1 for life in lives)
    assert (stage.alive(), stage.left()) == ([], [])


async def settle(stage: Stage) -> None:
    """Instances that were asked to end take a moment (1 s of the world's time)."""
    for _ in range(100):
        if not stage.alive() and not stage.left():
            return
        await asyncio.sleep(0.05)


@pytest.mark.soak
async def test_a_thousand_kills_between_the_clouds_answer_and_its_record_launch_nothing_twice(stage: Stage) -> None:
    """One instance per claim UID, ever (DUR-1)."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> Life:
        async with slots:
            life = Life(stage.adapter, f"claim-{number}", Fate(fault="after", at="launch"))
            await life.create()
            assert await life.launch() == "initialised"
            stage.world.delete("NodeClaim", life.name)
            await life.terminate()
            return life

    lives = await asyncio.gather(*[one(number) for number in range(1000)])

    assert all(life.fate.reached.is_set() for life in lives)
    assert [len(stage.launched(life.ref.uid)) for life in lives] == [1] * 1000
    assert (stage.alive(), stage.left()) == ([], [])
