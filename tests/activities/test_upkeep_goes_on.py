"""Upkeep goes on whatever one of its tasks or writes does, and looks again less and less often while that fails."""

import asyncio
from typing import Any

from dovetail.activities.shared.look import Look, Write
from dovetail.activities.upkeep.keep_up import LONGEST_AGAIN_SECONDS, Upkeep, again_after
from dovetail.activities.upkeep.pool_status import PoolStatuses
from dovetail.model.snapshot import Snapshot
from dovetail.ports.failures import Forbidden
from tests.activities.fakes import World
from tests.activities.test_upkeep import ReadyClass, seen
from tests.lifecycle.objects import a_pool


class Whole:
    """Snapshots of an empty cluster."""

    view = None

    async def whole(self, reads: object = None) -> Snapshot:
        return Snapshot(now=0.0)


class Task:
    def __init__(self, *due: Write, error: Exception | None = None) -> None:
        self.due, self.error = due, error

    async def look(self, snapshot: Snapshot) -> Look[Write]:
        if self.error is not None:
            raise self.error
        return Look(due=self.due)


async def test_one_task_or_write_that_fails_does_not_stop_the_others() -> None:
    written: list[str] = []

    async def write() -> None:
        written.append("well")

    async def forbidden() -> None:
        raise Forbidden("NodeClaim/a", "may not patch")

    async def bug() -> None:
        raise TypeError("a bug of ours")

    tasks: list[Any] = [Task(error=ValueError("4301 digits")), Task(forbidden, write, bug), Task(write)]
    upkeep = Upkeep(Whole(), lambda: tasks, None, lambda: 0.0)  # type: ignore[arg-type]

    wrote, all_well, _ = await asyncio.wait_for(upkeep._once(tasks, Snapshot(now=0.0)), 5)

    assert (written, wrote, all_well) == (["well", "well"], 2, False)


def test_what_fails_is_looked_at_again_less_and_less_often() -> None:
    assert [again_after(failed) for failed in range(1, 8)] == [2, 4, 8, 16, 32, 60, 60]
    assert again_after(10_000) == LONGEST_AGAIN_SECONDS


async def test_a_class_that_no_pool_names_any_more_asks_for_no_further_look() -> None:
    """Its moment lay in the past for ever: upkeep took all of a core once the only pool was deleted."""
    world = World()
    statuses = PoolStatuses(ReadyClass(), world.now)

    _, with_pool = await statuses.wanted(seen(world, a_pool()))
    world.clock += 3600
    _, without = await statuses.wanted(seen(world))

    assert with_pool is not None
    assert without is None
