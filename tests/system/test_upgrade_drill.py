"""The drill: while everything is in flight, the workers of one version take the place of another's, and back again.

Each play is a column of the table that is printed at the end; a row is a phase. What holds afterwards: one instance for
a claim, nothing tainted or left, no workflow task that failed, the pause kept, every history replays on this code.
"""

import asyncio
from collections.abc import Iterator

import pytest

from tests.system.beside import beside
from tests.upgrade.play import Played, play, table
from tests.upgrade.plays import FEW, MANY, PLAYS
from tests.upgrade.simulated import SimulatedFlight
from worlds.stage.stage import Stage

pytestmark = [pytest.mark.temporal, pytest.mark.slow]

ENDED: list[Played] = []
TURNS = asyncio.Semaphore(2)  # each has the workers of two versions, and everything in flight


@pytest.fixture(scope="module", autouse=True)
def shown(request: pytest.FixtureRequest) -> Iterator[None]:
    """The table, in the end."""
    yield
    if ENDED:
        with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            print(f"\n{table(ENDED)}", flush=True)


@pytest.mark.parametrize(
    "name", [*[one.name for one in FEW], *[pytest.param(p.name, marks=pytest.mark.soak) for p in MANY]]
)
@beside
async def test_whoever_works_everything_that_was_in_flight_ends_well(stage: Stage, name: str) -> None:
    async with TURNS:
        played = await play(SimulatedFlight(stage), PLAYS[name])
    ENDED.append(played)
    assert played.wrong == {}
    assert played.looked_at > 20
