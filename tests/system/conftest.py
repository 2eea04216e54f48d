"""Stages for tests of whole simulated systems, and the plays that are played beside each other (beside.py)."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from dovetail.cli.demo.temporal_server import TemporalServer
from tests.system.beside import a_stage, playing
from tests.system.servers import temporal_server
from worlds.stage.running import SideBySide
from worlds.stage.stage import Stage

__all__ = ["temporal_server"]


@pytest_asyncio.fixture(loop_scope="session")
async def stage(tmp_path_factory: pytest.TempPathFactory, temporal_server: TemporalServer) -> AsyncIterator[Stage]:
    """A stage of the test's own, on the session's Temporal server; no worker runs yet."""
    async with a_stage(tmp_path_factory.mktemp, temporal_server) as made:
        yield made


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def plays(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, temporal_server: TemporalServer
) -> AsyncIterator[SideBySide[float]]:
    """Those of this session, by the name of their test."""
    found = playing(request.session, tmp_path_factory.mktemp, temporal_server)
    yield found
    await found.stop()
