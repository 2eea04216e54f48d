"""The evening of a day: everything stands, and stays as it is."""

import asyncio
from functools import partial
from typing import Final

from dovetail.model import names
from tests.cluster.days.day import Day
from worlds.cluster.ground import Ground
from worlds.cluster.objects import has_condition

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
