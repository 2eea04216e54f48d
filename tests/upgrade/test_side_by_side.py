"""Workers of both versions on one cluster for an hour: either may get any task, and one of them is killed now and then.

DOVETAIL_SIDE_BY_SIDE_MINUTES says for how long; the few minutes that a person has are enough for a first look.
"""

import asyncio
import os
import random
import signal
import time
from typing import Final

import pytest
from temporalio.api.enums.v1 import EventType

from tests.system.histories import histories
from tests.system.test_two_workers import BUDGET, DEPLOYMENTS, most_disrupted_at_once, twice_claimed
from tests.upgrade.crews import Crews, Version
from tests.upgrade.play import KEPT, OLD, Played, account, versions
from tests.upgrade.previous import installed, named
from tests.upgrade.simulated import SimulatedFlight
from worlds.stage.stage import Stage

pytestmark = [pytest.mark.temporal, pytest.mark.soak]

MINUTES: Final = float(os.environ.get("DOVETAIL_SIDE_BY_SIDE_MINUTES", "60"))
KILL_EVERY: Final = 6  # rounds
MOST_PODS: Final = 3  # of a Deployment


async def test_both_versions_work_on_one_cluster_for_an_hour(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    flight = SimulatedFlight(stage)
    known = versions(await asyncio.to_thread(installed, named()))
    crews, pair = flight.crews(), (known[OLD], known[KEPT])
    for version in pair:
        await crews.come(version, 1)
    stage.apply_pool(budgets=[{"nodes": str(BUDGET)}])
    for name in DEPLOYMENTS:
        stage.deploy(0, name)

    rounds = await scaled_at_random(stage, crews, pair)
    for name in DEPLOYMENTS:
        stage.world.scale(name, 0)
    await stage.until(stage.nothing_left, 240, "everything is gone in the end")
    played = Played(name="side by side")
    await account(flight, played)
    shares = await steps_by_version(stage, crews)

    with capsys.disabled():
        print(f"\n{MINUTES:g} minutes: {rounds} rounds, {played.looked_at} histories, steps {shares}", flush=True)
    assert played.wrong == {}
    assert twice_claimed(stage) == []
    assert 0 < most_disrupted_at_once(stage) <= BUDGET
    assert min(shares.values()) > 0, "both versions had steps in hand"


async def scaled_at_random(stage: Stage, crews: Crews, pair: tuple[Version, Version]) -> int:
    """Round after round, all pods running before the next one; how many there were."""
    chance, until, number = random.Random(7), time.monotonic() + 60 * MINUTES, 0
    while time.monotonic() < until:
        number += 1
        wanted = {name: chance.randint(0, MOST_PODS) for name in DEPLOYMENTS}
        for name, replicas in wanted.items():
            stage.world.scale(name, replicas)
        if number % KILL_EVERY == 0:
            struck = chance.choice(pair)
            await crews.go(struck, 1, signal.SIGKILL)
            await crews.come(struck, 1)
        total = sum(wanted.values())
        await stage.until(lambda total=total: stage.running_pods() == total, 120, f"{wanted} run in round {number}")  # type: ignore[misc]
    return number


async def steps_by_version(stage: Stage, crews: Crews) -> dict[str, int]:
    """How many steps the previous version's workers began, by the number of their process, and how many others."""
    shares = {OLD: 0, KEPT: 0}
    for history in await histories(await stage.client(), stage.cluster):
        for event in history.events:
            if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED:
                number = event.activity_task_started_event_attributes.identity.partition("@")[0]
                shares[OLD if number in crews.processes_of(OLD) else KEPT] += 1
    return shares
