"""Upkeep goes on whatever one of its tasks or writes does, and looks again less and less often while that fails."""

import asyncio
import time
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from dovetail.activities.shared.looks.look import Look, Write
from dovetail.activities.shared.looks.snapshots import Snapshots
from dovetail.activities.upkeep.keep_up import AGAIN, KeepUp, looked
from dovetail.activities.upkeep.pool_status import PoolStatuses
from dovetail.activities.upkeep.pools import PoolUpkeep
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.snapshot import Snapshot
from dovetail.ports.failures import Forbidden, NotSeenYet
from tests.activities.test_provisioning import Stage
from tests.activities.test_provisioning import stage as stage
from tests.activities.test_upkeep import ReadyClass, seen
from tests.adapters.simulator.manifests import a_new_claim
from tests.lifecycle.objects import a_new_pool
from tests.waiting import until
from worlds.fakes import World, unasked


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
    upkeep = KeepUp(Whole(), lambda: tasks, None, lambda: 0.0, questions=unasked())  # type: ignore[arg-type]

    looks = await looked(tasks, Snapshot(now=0.0))
    wrote, all_well, _ = await upkeep.carried_out(looks)

    assert (written, wrote, all_well) == (["well", "well"], 2, False)


def test_what_fails_is_looked_at_again_less_and_less_often() -> None:
    assert [AGAIN.pause(failed) for failed in range(1, 8)] == [2, 4, 8, 16, 32, 60, 60]
    assert AGAIN.pause(10_000) == AGAIN.longest


async def test_a_class_that_no_pool_names_any_more_asks_for_no_further_look() -> None:
    """Its moment lay in the past for ever: upkeep took all of a core once the only pool was deleted."""
    world = World()
    statuses = PoolStatuses(ReadyClass(), world.now)

    _, with_pool = await statuses.wanted(seen(world, a_new_pool()))
    world.clock += 3600
    _, without = await statuses.wanted(seen(world))

    assert with_pool is not None
    assert without is None


async def test_no_pool_gets_a_status_before_everything_has_been_listed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DUR-30: what a pool uses would be too little, and its limits would let too much be launched."""
    world, adapter = stage.world, stage.adapter
    joined = a_new_claim("first", annotations={names.PLAN: "p/0"})
    await stage.launch(await adapter.claims.create(joined))
    await until(lambda: _is_launched(adapter.view.claim("first")), words="the cache knows of the instance")
    pools = PoolUpkeep(adapter.pools, adapter.claims, adapter.catalogues, time.time)
    upkeep = KeepUp(Snapshots(adapter.view, adapter.catalogues), lambda: [pools], None, time.time, questions=unasked())

    def used() -> str:
        [pool] = world.objects("NodePool")
        return str((pool["status"].get("resources") or {}).get("cpu", ""))

    with monkeypatch.context() as starting:
        starting.setattr(adapter.view, "_problem", lambda kind: "not listed yet" if kind == "NodeClaim" else "")
        with pytest.raises(NotSeenYet):
            await ActivityEnvironment().run(upkeep.keep_up)
        before = used()
    keeping = asyncio.create_task(ActivityEnvironment().run(upkeep.keep_up))
    await until(lambda: used() or None, words="the pool has a status")
    keeping.cancel()

    assert (before, used()) == ("", "4")


def _is_launched(claim: NodeClaim | None) -> bool:
    return claim is not None and bool(claim.provider_id)
