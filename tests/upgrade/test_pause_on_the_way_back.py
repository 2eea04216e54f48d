"""What a roll back does not take along: the previous version reads no pause on objects.

This is a difference between two versions and not a wish. Once the previous version is one that reads them, the first
assertion fails here; then this file goes, and so do `prepare_for` in flight.py and the lines of docs/upgrading.md.
"""

import asyncio

import pytest

from testing.stage.stage import Stage
from tests.upgrade.crews import all_at_once
from tests.upgrade.play import KEPT, OLD, versions
from tests.upgrade.previous import installed, named
from tests.upgrade.simulated import SimulatedFlight

pytestmark = [pytest.mark.temporal, pytest.mark.soak]

LAUNCHED_SECONDS = 90.0
LONGER_THAN_A_BATCH = 6.0  # whose window closes after one second


async def test_after_a_roll_back_a_pause_on_objects_holds_nothing_until_it_is_set_in_the_old_way(stage: Stage) -> None:
    known = versions(await asyncio.to_thread(installed, named()))
    flight = SimulatedFlight(stage)
    crews, flight.version = flight.crews(), known[KEPT]
    stage.apply_pool()
    await crews.come(known[KEPT], 1)
    await flight.operator("pause", "all", "--reason", "the way back")
    stage.deploy(1, "held")
    await asyncio.sleep(LONGER_THAN_A_BATCH)
    assert stage.claims() == []

    await crews.go(known[KEPT], 1)
    await crews.come(known[OLD], 1)
    await stage.until(lambda: len(stage.claims()) == 1, LAUNCHED_SECONDS, "the previous version launches all the same")
    flight.version = known[OLD]
    await flight.operator("pause")
    stage.deploy(1, "later")
    await asyncio.sleep(LONGER_THAN_A_BATCH)
    assert len(stage.claims()) == 1

    await all_at_once(crews, known[OLD], known[KEPT])
    flight.version = known[KEPT]
    await asyncio.sleep(LONGER_THAN_A_BATCH)
    assert len(stage.claims()) == 1, "both pauses hold, and one command ends them"
    await flight.operator("resume")
    await stage.until(lambda: stage.running_pods() == 2, LAUNCHED_SECONDS, "both pods run")
