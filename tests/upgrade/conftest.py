"""A stage for the tests of the drill itself; the drill is played with the other whole systems, in tests/system."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from dovetail.cli.demo.temporal_server import TemporalServer
from tests.system.servers import temporal_server
from worlds.stage.running import shared_stage
from worlds.stage.stage import Stage

__all__ = ["temporal_server"]


@pytest_asyncio.fixture(loop_scope="session")
async def stage(tmp_path_factory: pytest.TempPathFactory, temporal_server: TemporalServer) -> AsyncIterator[Stage]:
    """A stage of the test's own; no worker runs yet."""
    folder = tmp_path_factory.mktemp("stage")
    made = shared_stage(folder, folder.name, temporal_server)
    yield made
    await made.close()
