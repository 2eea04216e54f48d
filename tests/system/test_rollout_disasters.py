"""In each state of a roll-out the worker is killed, Temporal is away, or its database is lost, on real servers.

How far a roll-out is stands on its object alone, so none of it skips a step, repeats one, or takes more nodes than the
step. `-s` shows how long each state lasted after the servers were back.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import pytest

from dovetail.model.values.json import Json
from tests.system.test_pauses import SMALL, shown
from tests.system.test_rollouts import NODES, POLICY
from tests.system.test_temporal_away import started_again
from worlds.stage.running import own_stage
from worlds.stage.stage import Stage, node_class, node_pool

pytestmark = [pytest.mark.temporal, pytest.mark.soak]

Place = tuple[str, str]  # step and state

AWAY_SECONDS: Final = 20.0  # longer than the canary soaks
ENDED: Final = ("rest", "Complete")
STATES: Final = ("Replacing", "Soaking", "Awaiting", "Complete")  # the others last for one look


class Change:
    """A pool of three nodes whose change asks a person after its canary."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.pool = node_pool([SMALL], budgets=[{"nodes": "100%"}])
        self.before: set[str] = set()

    async def begin(self) -> None:
        stage = self.stage
        stage.world.apply(node_class())
        stage.world.apply(self.pool)
        stage.world.apply(POLICY)
        stage.deploy(NODES)
        stage.start_worker()
        await stage.until(lambda: stage.initialised(NODES) and stage.running_pods() == NODES, 240, "all pods run")
        self.before = self.claims()
        self.pool["spec"]["template"]["metadata"] = {"labels": {"colour": "green"}}
        stage.world.apply(self.pool)

    def claims(self) -> set[str]:
        return {claim["metadata"]["uid"] for claim in self.stage.claims()}

    def new(self) -> set[str]:
        return self.claims() - self.before

    def rollouts(self) -> list[Json]:
        return self.stage.world.objects("NodeRollout")

    def place(self) -> Place:
        found = self.rollouts()
        step = ((found[0].get("status") or {}).get("step") or {}) if found else {}
        return str(step.get("name", "")), str(step.get("state", ""))

    def holds(self) -> None:
        """No more nodes at the target than the step."""
        if self.place()[0] != "rest":
            assert len(self.new()) <= 1, self.place()

    async def is_left(self, known: Place) -> Place:
        await self.stage.until(lambda: self.place() != known, 300, f"it goes on from {known}")
        return self.place()


async def kill(change: Change) -> None:
    """kill -9, and another worker."""
    change.stage.kill(change.stage.workers[-1])
    change.stage.start_worker()


async def take_away(change: Change) -> None:
    """The server is killed and comes back with its database. Until then no other step begins."""
    stage, (step, _) = change.stage, change.place()
    stage.own_temporal.process.kill()
    await asyncio.to_thread(stage.own_temporal.process.wait)
    back = time.monotonic() + AWAY_SECONDS
    while time.monotonic() < back:
        change.holds()
        assert change.place()[0] == step
        await asyncio.sleep(0.2)
    await started_again(stage)


async def lose(change: Change) -> None:
    """The server and its database, with every workflow. A worker knows one server alone."""
    change.stage.kill(change.stage.workers[-1])
    await change.stage.lose_database()
    change.stage.start_worker()


DISASTERS: Final[dict[str, Callable[[Change], Awaitable[None]]]] = {
    "the worker is killed": kill,
    "Temporal is away": take_away,
    "the database is lost": lose,
}


@pytest.mark.parametrize("disaster", DISASTERS)
async def test_in_each_state_no_step_is_skipped_or_taken_twice(disaster: str, tmp_path: Path) -> None:
    stage = await own_stage(tmp_path / "stage", "rolling")
    try:
        change = Change(stage)
        await change.begin()
        seen: list[Place] = [("", "")]
        while seen[-1] != ENDED:
            began = time.monotonic()
            seen.append(await change.is_left(seen[-1]))
            print(f"{disaster}: {seen[-1]} after {time.monotonic() - began:.1f} s", flush=True)
            change.holds()
            await DISASTERS[disaster](change)
            if seen[-1] == ("canary", "Awaiting"):
                await shown(stage, "rollout", "approve", change.rollouts()[0]["metadata"]["name"], "--yes")

        await stage.until(lambda: len(stage.claims()) == NODES == stage.running_pods(), 300, "it is at rest")
        states = [each for each in seen if each[1] in STATES]
        assert states[0] == ("canary", "Replacing") and {("canary", "Awaiting"), ("rest", "Replacing")} <= set(states)
        assert [step for step, _ in states] == sorted(step for step, _ in states)  # canary, then rest
        assert not change.before & change.claims()
        story = change.rollouts()[0]["status"]["history"]
        assert [(each["step"], each["result"]) for each in story] == [("canary", "Passed"), ("rest", "Passed")]
    finally:
        await stage.close()
