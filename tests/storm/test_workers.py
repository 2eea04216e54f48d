"""What befalls workers: fifty kills, five minutes of standing still, clocks that jump by ten minutes and back."""

import asyncio
import random
from typing import Final

import pytest

from testbed.faults import jumping, paused, set_clock
from tests.storm.life import storm
from worlds.cluster.ground import Ground

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

KILLS: Final = 50
SHORTEST_LIFE: Final = 3.0  # a worker that has just started has done something by then, on most machines
LONGEST_LIFE: Final = 15.0
FROZEN_SECONDS: Final = 300.0
JUMP: Final = 600.0
JUMP_SECONDS: Final = 45.0


async def test_fifty_kills_with_two_workers_at_random_moments(ground: Ground) -> None:
    chance = random.Random(277)
    async with storm(ground, seed=277, patience=240):
        for _ in range(KILLS):
            ground.ensure_workers(2)
            await asyncio.sleep(chance.uniform(SHORTEST_LIFE, LONGEST_LIFE))
            struck = chance.choice([worker for worker in ground.workers if worker.poll() is None])
            struck.kill()
            struck.wait()
        ground.ensure_workers(2)
    assert sum(1 for worker in ground.workers if worker.poll() is not None) >= KILLS


async def test_one_of_two_workers_stands_still_for_five_minutes(ground: Ground) -> None:
    """It goes on afterwards, with all that it believed then, and the other one is killed."""
    ground.ensure_workers(2)
    async with storm(ground, seed=278, patience=240):
        frozen, other = [worker for worker in ground.workers if worker.poll() is None]
        with paused(frozen):
            await asyncio.sleep(FROZEN_SECONDS)
        other.kill()
        other.wait()
        await asyncio.sleep(JUMP_SECONDS)
        assert frozen.poll() is None, "the worker that stood still went on"


async def test_the_clocks_of_two_workers_jump_by_ten_minutes(ground: Ground) -> None:
    """First one's, then the other's, ahead, behind and back: never both, or nobody could do anything."""
    everything = ground.everything
    clocks = [everything.folder / f"clock-{number}" for number in range(2)]
    for clock in clocks:
        set_clock(clock, 0.0)
    ground.kill_workers()
    ground.workers += [everything.start_worker(command=jumping(everything.worker_command(), each)) for each in clocks]
    async with storm(ground, seed=279, patience=300):
        for clock in clocks:
            for ahead in (JUMP, -JUMP, JUMP, 0.0):
                set_clock(clock, ahead)
                await asyncio.sleep(JUMP_SECONDS)
        assert [worker.poll() for worker in ground.workers[-2:]] == [None, None], "both live"
        ground.kill_workers()
