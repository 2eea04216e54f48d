"""Random days: people, AWS, servers and the workers' machine do what they like, and in the evening everything stands.

Real servers behind proxies, two pools, several workloads. A day is a seed; its events are printed as they happen, so
that a day that went wrong can be played again. What must hold is read from the API server and from the cloud: at no
moment more marks than a budget lets go; in the evening all pods run, nothing is tainted, marked or leaving, every live
instance is one claim's, and no claim ever had two.
"""

import asyncio
from typing import Final

import pytest

from tests.cluster.days.budget_watch import BudgetWatch, watched
from tests.cluster.days.evening import evening
from tests.cluster.days.proxies import proxies_before
from tests.cluster.days.sick_day import SickDay
from worlds.cluster.ground import Ground

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

EVENTS: Final = 40
LONGEST_PAUSE: Final = 6.0


@pytest.mark.parametrize("seed", range(6))
async def test_in_the_evening_of_a_random_day_everything_stands(ground: Ground, seed: int) -> None:
    await ground.until(ground.class_is_ready, 60, "the class is ready")
    async with proxies_before(ground) as proxies:
        watch = BudgetWatch()
        day = SickDay(ground, seed, proxies, watch)
        async with watched(ground, watch):
            with ground.where_workers_may_end():
                await day.begin()
                await play(day)
                await day.end()
            await evening(ground, day)
        assert watch.exceeded == []
        print(f"  {watch.looks} looks, {watch.marks} marks")


async def play(day: SickDay) -> None:
    """One event after the other."""
    events = day.events
    weights = [weight for weight, _ in events]
    for number in range(EVENTS):
        [(_, event)] = day.random.choices(events, weights)
        print(f"  {number:2} {await event()}", flush=True)
        await asyncio.sleep(day.random.uniform(0.0, LONGEST_PAUSE))
        await day.let_workers_restart()
