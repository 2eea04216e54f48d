"""Fixtures of all servers, for the conftest files of the folders whose tests are whole systems on them."""

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from testbed.plane import TestbedUnavailable, find_binaries
from tests.unavailable import no_control_plane
from worlds.cluster.ground import Ground

_STATE = Path(__file__).parents[1] / ".dovetail"


async def all_servers(request: pytest.FixtureRequest, name: str) -> AsyncIterator[Ground]:
    """Started once, and kept where a test has failed. Their folder is fixed for each lane, so that a session that was
    killed leaves nothing running for long: the next one stops what it finds there."""
    try:
        find_binaries(lambda _line: None)
    except TestbedUnavailable as reason:
        no_control_plane(reason)
    folder = _STATE / f"tests-{name}-{os.environ.get('DOVETAIL_LANE', '0')}"
    ground = await Ground.start(folder)
    yield ground
    await ground.stop()
    if not request.session.testsfailed:
        shutil.rmtree(folder, ignore_errors=True)


@pytest_asyncio.fixture(loop_scope="session")
async def ground(servers: Ground) -> AsyncIterator[Ground]:
    """One worker and no objects; afterwards nothing may be left."""
    servers.ensure_workers()
    yield servers
    await servers.clear()
    await servers.assert_events_are_named()
