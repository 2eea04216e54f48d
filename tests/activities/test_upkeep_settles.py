"""Upkeep that has changed nothing writes nothing, however claims came into sight and wherever moments are cut.

What is compared is what has been read back: whole seconds, of which several claims may share one.
"""

import asyncio
from dataclasses import replace
from random import Random
from typing import TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.activities.upkeep.claims import ClaimUpkeep
from dovetail.activities.upkeep.consistency import ConsistencyUpkeep
from dovetail.activities.upkeep.keep_up import UpkeepTask
from dovetail.activities.upkeep.pools import PoolUpkeep
from dovetail.model import names
from dovetail.model.nodes import Condition, NodeClaim
from dovetail.model.pools import NodePool
from dovetail.model.values.time import format_time, parse_time
from tests.activities.test_upkeep import Pools, ReadyClass, seen
from tests.lifecycle.objects import a_joined_claim, a_joined_node, a_new_pool
from tests.lifecycle.test_pool_health import an_end
from worlds.fakes import FakeClaims, FakeNotices, World

BEGAN = 10_000.25  # an_end's seconds lie just before ten thousand
Kept = TypeVar("Kept", NodeClaim, NodePool)
LOOKS = 6  # by then everything has been written: a write may follow from another


@settings(max_examples=30, deadline=None)
@given(
    drawn=st.lists(st.tuples(st.integers(0, 1), st.booleans()), min_size=1, max_size=9),
    arrival=st.randoms(use_true_random=False),
    together=st.integers(1, 4),
)
def test_after_some_looks_nothing_is_written_any_more(
    drawn: list[tuple[int, bool]], arrival: Random, together: int
) -> None:
    claims = [an_end(f"c{number}", *each) for number, each in enumerate(drawn)]
    arrival.shuffle(claims)

    async def play() -> None:
        world, pools = World(), Pools(a_new_pool(hash="123"))
        world.clock = BEGAN - 100.0
        made = FakeClaims(world)
        world.put(a_joined_claim(), a_joined_node())
        tasks: list[UpkeepTask] = [
            PoolUpkeep(pools, made, ReadyClass(), world.now),
            ClaimUpkeep(
                made, ReadyClass(), world.now, reservation_labels=frozenset(), well_known=names.WELL_KNOWN_LABELS
            ),
            ConsistencyUpkeep(made, FakeNotices(world), world.now),
        ]
        await look(tasks, world, pools)
        world.clock = BEGAN
        while claims:
            world.put(*[claims.pop() for _ in range(min(together, len(claims)))])
            await look(tasks, world, pools)
        for _ in range(LOOKS):
            await look(tasks, world, pools)

        assert [await look(tasks, world, pools) for _ in range(3)] == [0, 0, 0]

    asyncio.run(play())


async def look(tasks: list[UpkeepTask], world: World, pools: Pools) -> int:
    """One look of all, a second after the last; how much was written. What was written is read back as it is kept."""
    world.clock += 1.1
    snapshot = seen(world, *pools.pools.values())
    due = [write for task in tasks for write in (await task.look(snapshot)).due]
    for write in due:
        await write()
    world.claims.update({name: read_back(claim) for name, claim in world.claims.items()})
    pools.pools.update({name: read_back(pool) for name, pool in pools.pools.items()})
    return len(due)


def read_back(item: Kept) -> Kept:
    """With moments in whole seconds."""
    return replace(item, conditions=tuple(cut(condition) for condition in item.conditions))


def cut(condition: Condition) -> Condition:
    return replace(condition, changed=parse_time(format_time(condition.changed)))
