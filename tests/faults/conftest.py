"""The lives that the tests of faults look at, lived side by side."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from dovetail.cli.demo.temporal_server import TemporalServer
from tests.faults.catalogue import LIVES
from tests.faults.lives import Lived, live
from tests.system.servers import temporal_server
from worlds.stage.running import SideBySide, asked_for, own_stage, shared_stage

__all__ = ["temporal_server"]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def lives(
    tmp_path_factory: pytest.TempPathFactory, temporal_server: TemporalServer
) -> AsyncIterator[SideBySide[Lived]]:
    """Each life on a stage of its own; one that loses its database has a server of its own."""

    async def play(name: str) -> Lived:
        life = LIVES[name]
        folder = tmp_path_factory.mktemp(name)
        loses = any(kill.lose_database for kill in life.kills)
        stage = await own_stage(folder, name) if loses else shared_stage(folder, name, temporal_server)
        try:
            return await live(stage, life)
        finally:
            await stage.close()

    running = SideBySide(play)
    yield running
    await running.stop()


@pytest_asyncio.fixture(loop_scope="session")
async def lived(request: pytest.FixtureRequest, lives: SideBySide[Lived]) -> Lived:
    """What came of the life that the test names."""
    return await lives.outcome(request.param, asked_for(request))
