"""Random days: people, AWS, servers and the workers' machine do what they like, and in the evening everything stands.

Real servers behind proxies, two pools, several workloads. A day is a seed; its events are printed as they happen, so
that a day that went wrong can be played again. What must hold is read from the API server and from the cloud: at no
moment more marks than a budget lets go; in the evening all pods run, nothing is tainted, marked or leaving, every live
instance is one claim's, and no claim ever had two.
"""

import asyncio
from functools import partial
from typing import Final

import pytest

from dovetail.model import names
from testing.cluster.ground import Ground, has_condition
from tests.cluster.days.budget_watch import BudgetWatch, watched
from tests.cluster.days.day import Day
from tests.cluster.days.proxies import proxies_before
from tests.cluster.days.sick_day import SickDay

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

EVENTS: Final = 40
LONGEST_PAUSE: Final = 6.0
EVENING_SECONDS: Final = 300.0
QUIET_SECONDS: Final = 5.0  # for how long everything must have stood still


async def stands(ground: Ground, day: Day) -> bool:
    """All pods run, every claim has its node, nothing goes or is about to."""
    claims = await ground.claims()
    if not await ground.settled(sum(day.wanted.values())):
        return False
    if any("deletionTimestamp" in c["metadata"] or not has_condition(c, names.INITIALIZED_CONDITION) for c in claims):
        return False
    return len(await ground.nodes()) == len(claims) == len(await ground.live())


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


async def evening(ground: Ground, day: Day) -> None:
    """Until everything stands, and stays as it is for a while."""

    async def at_rest() -> bool:
        """For a while, for consolidation goes on in the evening."""
        if not await stands(ground, day):
            return False
        before = {c["metadata"]["uid"] for c in await ground.claims()}
        await asyncio.sleep(QUIET_SECONDS)
        return await stands(ground, day) and {c["metadata"]["uid"] for c in await ground.claims()} == before

    await ground.until(at_rest, EVENING_SECONDS, "the evening is quiet")
    await ground.until(partial(nothing_marked, ground), 60, "no mark is left")
    await ground.assert_nothing_tainted_or_leaked()
    await ground.assert_one_instance_per_claim()


async def nothing_marked(ground: Ground) -> bool:
    """A disruption may begin at any time; one that is going on ends."""
    try:
        await ground.assert_nothing_tainted_or_leaked()
    except AssertionError:
        return False
    return True
