"""What goes on beside a storm: people scale, drift and delete, AWS ends and warns. All else is the storm's."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from tests.cluster.days.day import POOLS, Day, Event
from tests.cluster.days.evening import evening
from tests.storm.records import Records, Verdict
from worlds.cluster.ground import Ground

BUDGET: Final = 2  # nodes of each pool at once
LONGEST_PAUSE: Final = 8.0


class Life(Day):
    """The events of a day that are not about workers or servers, under a budget of two nodes in each pool."""

    def __init__(self, ground: Ground, seed: int) -> None:
        super().__init__(ground, seed)
        self.budgets = dict.fromkeys(POOLS, str(BUDGET))

    @property
    def events(self) -> list[tuple[int, Event]]:
        """What may happen, and how often."""
        return [
            (8, self.scale),
            (4, self.drift),
            (3, self.delete_a_claim),
            (2, self.delete_a_node),
            (2, self.delete_a_pod),
            (2, self.kill_an_instance),
            (2, self.warn_of_spot),
        ]

    @asynccontextmanager
    async def going_on(self) -> AsyncIterator[None]:
        """One event after the other within the block."""
        over = asyncio.Event()
        task = asyncio.create_task(self._events_until(over))
        try:
            yield
        finally:
            over.set()
            await task  # what ended it early is raised

    async def _events_until(self, over: asyncio.Event) -> None:
        weights = [weight for weight, _ in self.events]
        while not over.is_set():
            [(_, event)] = self.random.choices(self.events, weights)
            print(f"  {await event()}", flush=True)
            try:
                await asyncio.wait_for(over.wait(), self.random.uniform(0.0, LONGEST_PAUSE))
            except TimeoutError:
                continue


@asynccontextmanager
async def storm(ground: Ground, seed: int, patience: float) -> AsyncIterator[Life]:
    """Life goes on within the block, beside whatever it does; then everybody recovers and the records are judged.

    `patience`: seconds, on a machine with nothing else to do, that a pod may have waited for its node at most.
    """
    await ground.until(ground.class_is_ready, 60, "the class is ready")
    life, records = Life(ground, seed), Records(ground)
    async with records.looking():
        await life.begin()
        async with life.going_on():
            yield life
        writes = records.writes()
        await life.end()
        await evening(ground, life)
    verdict = await records.judge(writes)
    print(f"  {verdict.line()}", flush=True)
    _hold_to(verdict, patience)


def _hold_to(verdict: Verdict, patience: float) -> None:
    assert verdict.doubled == {}, "an instance for each claim, and one"
    assert verdict.left_behind == set(), "every live instance has its claim"
    assert verdict.lost == set(), "every claim that stands has its instance"
    assert verdict.unexplained == set(), "every instance was made by exactly one call of the ledger"
    over = {pool: most for pool, most in verdict.most_marked.items() if most > BUDGET}
    assert over == {}, f"no more than {BUDGET} nodes of a pool are marked at once"
    assert verdict.longest_wait <= patience, f"nobody waits longer than {patience:.0f} s for a node"
