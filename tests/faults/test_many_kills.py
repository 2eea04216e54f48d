"""A thousand claims struck between the cloud's answer and its record: never a second instance (DUR-1).

Many claims per kill: all launches of a round stand at that point when the worker is killed; more than some thirty do
not stand there at once on two cores. The small round is in `make test`, the thousand in `make soak`.
"""

import asyncio

import pytest

from dovetail.cli.demo.temporal_server import TemporalServer
from tests.faults.lives import Restarter
from worlds.fault_orders import Kill
from worlds.stage.running import shared_stage
from worlds.stage.stage import Stage

pytestmark = pytest.mark.temporal


async def strike(stage: Stage, rounds: int, claims: int) -> tuple[int, int]:
    """Round after round until that many were struck whole; how many claims that is, and how many there were.

    Under load a few of a round may pass the point before the rest have come to it; a quarter more rounds make up for
    them.
    """
    stage.apply_pool()
    restarter = asyncio.create_task(Restarter(stage, "").run())
    struck = made = 0
    try:
        for number in range(rounds + max(1, rounds // 4)):
            if struck >= rounds * claims:
                break
            kill = Kill(name=f"kill-{number}", point="answered:launch", count=claims)
            stage.orders.give(kill)
            stage.deploy(claims, f"round-{number}")
            await stage.until(lambda: stage.running_pods() == claims, 240, f"the pods of round {number} run")
            found = stage.orders.struck(kill)
            struck += len(set(found.subjects)) if found is not None else 0
            made += claims
            stage.world.scale(f"round-{number}", 0)
            for claim in stage.claims():
                stage.world.delete("NodeClaim", claim["metadata"]["name"])
            await stage.until(stage.nothing_left, 240, f"round {number} is gone")
    finally:
        restarter.cancel()
    return struck, made


@pytest.mark.parametrize(
    ("rounds", "claims"), [(1, 5), pytest.param(40, 25, marks=pytest.mark.soak)], ids=["five", "thousand"]
)
async def test_a_claim_struck_between_answer_and_record_has_one_instance(
    tmp_path_factory: pytest.TempPathFactory, temporal_server: TemporalServer, rounds: int, claims: int
) -> None:
    folder = tmp_path_factory.mktemp("many")
    stage = shared_stage(folder, folder.name, temporal_server)
    try:
        struck, made = await strike(stage, rounds, claims)
        launched = stage.instances_by_claim()
    finally:
        await stage.close()

    assert len(launched) == made and set(launched.values()) == {1}
    assert struck >= rounds * claims
