"""The drill's plays, lived side by side, and its table."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from dovetail.cli.demo.temporal_server import TemporalServer
from tests.system.servers import temporal_server
from tests.upgrade.play import Played, play, table
from tests.upgrade.plays import PLAYS
from tests.upgrade.simulated import SimulatedFlight
from worlds.stage.running import SideBySide, asked_for, shared_stage
from worlds.stage.stage import Stage

__all__ = ["temporal_server"]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def plays(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, temporal_server: TemporalServer
) -> AsyncIterator[SideBySide[Played]]:
    """Each play on a stage of its own."""
    ended: list[Played] = []

    async def one(name: str) -> Played:
        folder = tmp_path_factory.mktemp("drill")
        stage = shared_stage(folder, folder.name, temporal_server)
        try:
            ended.append(await play(SimulatedFlight(stage), PLAYS[name]))
            return ended[-1]
        finally:
            await stage.close()

    running = SideBySide(one, at_once=2)
    yield running
    await running.stop()
    if ended:
        with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            print(f"\n{table(ended)}", flush=True)


@pytest_asyncio.fixture(loop_scope="session")
async def stage(tmp_path_factory: pytest.TempPathFactory, temporal_server: TemporalServer) -> AsyncIterator[Stage]:
    """A stage of the test's own; no worker runs yet."""
    folder = tmp_path_factory.mktemp("stage")
    made = shared_stage(folder, folder.name, temporal_server)
    yield made
    await made.close()


@pytest_asyncio.fixture(loop_scope="session")
async def played(request: pytest.FixtureRequest, plays: SideBySide[Played]) -> Played:
    """What came of the play that the test names."""
    return await plays.outcome(request.param, asked_for(request))
