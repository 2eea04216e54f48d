"""Servers of the suite's own: what a storm leaves in the logs is nobody else's."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.grounds import all_servers, ground
from worlds.cluster.ground import Ground

__all__ = ["ground"]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def servers(request: pytest.FixtureRequest) -> AsyncIterator[Ground]:
    """All of them."""
    async for started in all_servers(request, "storm"):
        yield started
