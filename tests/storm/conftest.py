"""Servers of the suite's own: what a storm leaves in the logs is nobody else's."""

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from testbed.plane import TestbedUnavailable, find_binaries
from testing.cluster.ground import Ground
from tests.unavailable import no_control_plane

FOLDER: Final = Path(__file__).parents[2] / ".dovetail" / f"tests-storm-{os.environ.get('DOVETAIL_LANE', '0')}"


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def servers(request: pytest.FixtureRequest) -> AsyncIterator[Ground]:
    """All servers, started once."""
    try:
        find_binaries(lambda _line: None)
    except TestbedUnavailable as reason:
        no_control_plane(reason)
    ground = await Ground.start(FOLDER)
    yield ground
    await ground.stop()
    if not request.session.testsfailed:
        shutil.rmtree(FOLDER, ignore_errors=True)


@pytest_asyncio.fixture(loop_scope="session")
async def ground(servers: Ground) -> AsyncIterator[Ground]:
    """One worker and no objects; afterwards nothing may be left."""
    servers.ensure_workers()
    yield servers
    await servers.clear()
    await servers.assert_events_are_named()
