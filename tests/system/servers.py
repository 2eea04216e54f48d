"""The session's Temporal server, shared by all stages that do not take their server away.

Imported by the conftest files of tests/system and tests/faults.
"""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from testbed.temporal.chosen import AnyTemporal, start_chosen


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def temporal_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[AnyTemporal]:
    """One for the session."""
    server = await start_chosen(tmp_path_factory.mktemp("temporal"), print)
    yield server
    await asyncio.to_thread(server.stop)
