"""Very many at once: twenty thousand pods that fit nowhere beside some that fit; a thousand terminations."""

import asyncio
import time
from typing import Final

import pytest

from dovetail.model import names
from dovetail.model.values.json import Json
from worlds.cluster.ground import Ground
from worlds.cluster.objects import deployment, node_pool
from worlds.cluster.timeline import has_true
from worlds.cluster.trouble import PODS, unplaceable
from worlds.stage.running import own_stage

pytestmark = pytest.mark.soak

HOPELESS: Final = 20_000
AT_ONCE: Final = 40
GOOD: Final = 20
BOUND: Final = 600  # the kube-scheduler tries all that it has given up again for new nodes, before it binds to them
TERMINATIONS: Final = 1_000


async def create_hopeless(ground: Ground) -> None:
    """As twenty owners of a thousand pods each would have them."""
    numbers = iter(range(HOPELESS))

    async def create() -> None:
        for number in numbers:
            body = unplaceable(f"hopeless-{number}")
            body["metadata"]["labels"] = {"app": f"hopeless-{number % 20}"}
            answer = await ground.api.post(PODS, body)
            assert answer.status == 201, answer.text

    await asyncio.gather(*(create() for _ in range(AT_ONCE)))


async def delete_hopeless(ground: Ground) -> None:
    """One by one: a deletion of all of them in one request outlasts the time that the API server has for a request."""
    left = iter([pod["metadata"]["name"] for pod in (await ground.api.get(PODS)).body["items"]])

    async def delete() -> None:
        for name in left:
            answer = await ground.api.delete(f"{PODS}/{name}", {"gracePeriodSeconds": 0})
            assert answer.status in (200, 202, 404), answer.text

    await asyncio.gather(*(delete() for _ in range(AT_ONCE)))


async def all_given_up(ground: Ground) -> bool:
    """By the kube-scheduler, which takes pods in their order: before that it has not looked at those that fit."""
    pods = (await ground.api.get(PODS)).body["items"]
    given_up = [p for p in pods if any(c.get("reason") == "Unschedulable" for c in p["status"].get("conditions") or ())]
    return len(given_up) == HOPELESS


async def running(ground: Ground) -> int:
    """Of those that fit."""
    answer = await ground.api.get(f"{PODS}?labelSelector=app%3Dweb")
    return sum(1 for pod in answer.body["items"] if pod["status"].get("phase") == "Running")


def seconds(of_each: list[float]) -> str:
    return ", ".join(f"{each:.0f}" for each in of_each)


def is_initialised(claim: Json) -> bool:
    return has_true(claim, names.INITIALIZED_CONDITION)


@pytest.mark.cluster
async def test_pods_get_nodes_beside_twenty_thousand_that_fit_nowhere(ground: Ground) -> None:
    await ground.apply(node_pool(consolidate_after="Never"))
    await create_hopeless(ground)
    try:
        await ground.until(lambda: all_given_up(ground), 900, "the kube-scheduler has given them up")
        stood, ran = [], []
        for pods in range(GOOD // 4, GOOD + 1, GOOD // 4):
            began = time.monotonic()
            await ground.apply(deployment(pods, "3"))

            async def stand(pods: int = pods) -> bool:
                return len([claim for claim in await ground.claims() if is_initialised(claim)]) == pods

            async def run(pods: int = pods) -> bool:
                return await running(ground) == pods

            await ground.until(stand, 60, f"{pods} nodes stand")
            stood.append(time.monotonic() - began)
            await ground.until(run, BOUND, f"{pods} pods run")
            ran.append(time.monotonic() - began)
        assert len(await ground.claims()) == GOOD, "a node for each pod that fits, and none for the others"
        print(f"  five nodes more stood after {seconds(stood)} s, their pods ran after {seconds(ran)} s")
        await ground.assert_one_instance_per_claim()
        await ground.assert_nothing_tainted_or_leaked()
    finally:
        await delete_hopeless(ground)


@pytest.mark.temporal
async def test_a_thousand_nodes_are_launched_and_then_all_deleted_at_once(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """On the simulated world, whose player is quick enough; the workflows of a thousand claims run side by side."""
    stage = await own_stage(tmp_path_factory.mktemp("thousand"), "thousand")
    try:
        stage.apply_pool(consolidateAfter="Never")
        stage.start_worker()
        began = time.monotonic()
        stage.deploy(TERMINATIONS)
        await stage.until(lambda: stage.running_pods() == TERMINATIONS, 1200, "all pods run")
        launched, claims = time.monotonic() - began, stage.claims()
        stage.world.scale("web", 0)
        began = time.monotonic()
        for claim in claims:
            stage.world.delete("NodeClaim", claim["metadata"]["name"])
        await stage.until(stage.nothing_left, 1200, "no claim, node or instance is left")
        ended = time.monotonic() - began
        print(f"  {len(claims)} nodes launched in {launched:.0f} s, ended in {ended:.0f} s")
        assert set(stage.instances_by_claim().values()) == {1}
        assert len(stage.instances_by_claim()) == len(claims) == TERMINATIONS
        assert _uids(stage.departed("NodeClaim")) >= _uids(claims)
    finally:
        await stage.close()


def _uids(bodies: list[Json]) -> set[str]:
    return {str(body["metadata"]["uid"]) for body in bodies}
