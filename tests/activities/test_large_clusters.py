"""What a look of upkeep costs in a large cluster: no more than what has changed, and never the whole event loop."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from dovetail.activities.shared.turns import PART
from dovetail.activities.shared.waits.cluster_changes import LONGEST_REST_SECONDS, quiet_after
from dovetail.activities.upkeep import claims as claims_module
from dovetail.activities.upkeep.claims import ClaimUpkeep
from dovetail.disruption.upkeep.conditions import RECHECK_DRIFT, DriftFacts, Judgement, judge_drifted
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.pods import Pod
from dovetail.model.pools import Catalogue, DisruptionPolicy, NodePool
from dovetail.model.snapshot import Snapshot
from tests.activities.test_claim_conditions import JudgingClass
from tests.activities.test_upkeep import ReadyClass, seen
from tests.lifecycle.objects import a_joined_claim, a_joined_node, a_new_pool, a_web_pod
from worlds.fakes import FakeClaims, World

NUMBER = 3 * PART


class CountedPods(dict[str, Pod]):
    """Counts how often all of it is gone through."""

    passes = 0

    def values(self) -> Any:
        self.passes += 1
        return super().values()

    def items(self) -> Any:
        self.passes += 1
        return super().items()

    def __iter__(self) -> Iterator[str]:
        self.passes += 1
        return super().__iter__()


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The claims whose drift was judged, in order."""
    found: list[str] = []

    def noted(claim: NodeClaim, pool: NodePool, facts: DriftFacts, now: float) -> Judgement:
        found.append(claim.name)
        return judge_drifted(claim, pool, facts, now)

    monkeypatch.setattr(claims_module, "judge_drifted", noted)
    return found


def a_fleet(number: int, stamp: float | None = None) -> World:
    """So many nodes with a pod each."""
    world = World()
    for each in range(number):
        claim = a_joined_claim(f"pool-{each}", node_name=f"node-{each}", last_pod_event=stamp)
        world.put(
            claim, a_joined_node(name=f"node-{each}"), replace(a_web_pod(f"pod-{each}"), node_name=f"node-{each}")
        )
    return world


def pictured(world: World, **pool: Any) -> Snapshot:
    found = a_new_pool(**pool)
    catalogues = {found.name: Catalogue()}
    return replace(seen(world, found), pods=CountedPods(world.pods), catalogues=catalogues)


async def settled(task: ClaimUpkeep, world: World) -> None:
    """Look until nothing is to be written, and everything was judged once more after that."""
    for _ in range(3):
        for write in (await task.look(pictured(world))).due:
            await write()


async def test_the_first_look_goes_through_the_pods_a_few_times_and_not_once_for_each_node() -> None:
    """Of claims without a stamp the pods are asked; all pods for each of them were 46 s at 5,000 nodes."""
    world = a_fleet(NUMBER)
    snapshot = pictured(world)

    await ClaimUpkeep(
        FakeClaims(world), ReadyClass(), world.now, reservation_labels=frozenset(), well_known=names.WELL_KNOWN_LABELS
    ).look(snapshot)

    assert isinstance(snapshot.pods, CountedPods) and snapshot.pods.passes < 10


async def test_a_look_judges_what_has_changed(judged: list[str]) -> None:
    world = a_fleet(20, stamp=World().clock)
    task = ClaimUpkeep(
        FakeClaims(world), ReadyClass(), world.now, reservation_labels=frozenset(), well_known=names.WELL_KNOWN_LABELS
    )
    await settled(task, world)
    judged.clear()

    await task.look(pictured(world))
    assert judged == []
    world.put(replace(world.claims["pool-7"], annotations={"a": "b"}))
    await task.look(pictured(world))
    assert judged == ["pool-7"]
    world.clock += 60.0
    world.put(replace(a_web_pod("another"), node_name="node-3"))
    await task.look(pictured(world))
    assert judged == ["pool-7", "pool-3"], "a pod that has come restarts the quiet time"


@pytest.mark.parametrize(
    "change",
    [
        {"annotations": {"karpenter.sh/nodepool-hash": "2", "karpenter.sh/nodepool-hash-version": "v3"}},
        {"disruption": DisruptionPolicy(consolidate_after=5.0)},
        {"replicas": 3},
    ],
)
async def test_a_pool_that_asks_for_something_else_has_all_its_claims_judged(
    judged: list[str], change: dict[str, Any]
) -> None:
    world = a_fleet(5, stamp=World().clock)
    task = ClaimUpkeep(
        FakeClaims(world), ReadyClass(), world.now, reservation_labels=frozenset(), well_known=names.WELL_KNOWN_LABELS
    )
    await settled(task, world)
    judged.clear()

    await task.look(pictured(world, usage={"nodes": 7}))
    assert judged == [], "its status matters to no claim"
    await task.look(pictured(world, **change))
    assert len(judged) == 5


async def test_time_has_a_claim_judged_again_and_so_has_a_class_or_a_catalogue_that_changed(judged: list[str]) -> None:
    world, cloud = a_fleet(2, stamp=World().clock), JudgingClass()
    task = ClaimUpkeep(
        FakeClaims(world), cloud, world.now, reservation_labels=frozenset(), well_known=names.WELL_KNOWN_LABELS
    )
    await settled(task, world)
    judged.clear()

    again = (await task.look(pictured(world))).again
    assert again is not None and again <= world.clock + RECHECK_DRIFT and judged == []
    world.clock = again
    await task.look(pictured(world))
    assert len(judged) == 2
    await task.look(replace(pictured(world), catalogues={"pool": Catalogue(error="it is away")}))
    assert len(judged) == 4


async def test_what_could_not_be_judged_or_written_is_judged_at_the_next_look(judged: list[str]) -> None:
    world, cloud = a_fleet(1, stamp=World().clock), JudgingClass()
    cloud.answers = False
    task = ClaimUpkeep(
        FakeClaims(world), cloud, world.now, reservation_labels=frozenset(), well_known=names.WELL_KNOWN_LABELS
    )
    await settled(task, world)
    judged.clear()

    await task.look(pictured(world))
    assert judged == ["pool-0"], "the cloud did not answer"
    cloud.answers = True
    for _ in range(2):  # as after a Conflict: nobody has written it
        assert len((await task.look(pictured(world))).due) == 1
    assert judged == ["pool-0"] * 3


async def test_others_have_their_turn_while_many_claims_are_judged() -> None:
    world, turns = a_fleet(NUMBER), 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    await ClaimUpkeep(
        FakeClaims(world), ReadyClass(), world.now, reservation_labels=frozenset(), well_known=names.WELL_KNOWN_LABELS
    ).look(pictured(world))
    beside.cancel()

    assert turns >= NUMBER // PART


def test_a_look_that_took_long_is_followed_by_a_longer_rest() -> None:
    assert [quiet_after(busy, 0.2) for busy in (0.001, 0.1, 10.0)] == [0.2, 0.5, LONGEST_REST_SECONDS]
