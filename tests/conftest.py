"""What all tests share: a limit for those that wait, and the programs of the control plane.

No test waits for ever: one that hangs fails, and its traceback says where it waited. Where the programs can be neither
found nor built, each test that needs them is skipped with the reason in words, or fails where CI requires it.
"""

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from testbed.plane import Binaries, TestbedUnavailable, find_binaries
from tests.unavailable import no_control_plane

LONGEST_SECONDS = 420.0  # more than any test of `make test` takes on a loaded machine; soak tests may take their time


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give every asynchronous test its limit."""
    for item in items:
        may_hang = isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj)
        if may_hang and item.get_closest_marker("soak") is None:
            item.obj = limited(item.obj)  # type: ignore[attr-defined]


def limited(test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """The test, ended by a TimeoutError where it does not end by itself."""

    @functools.wraps(test)
    async def within(*arguments: Any, **named: Any) -> None:
        async with asyncio.timeout(LONGEST_SECONDS):
            await test(*arguments, **named)

    return within


@pytest.fixture(scope="session")
def testbed_binaries(request: pytest.FixtureRequest) -> Binaries:
    """The programs of the control plane. A cold build takes minutes, so its progress is shown despite capturing."""
    capture = request.config.pluginmanager.getplugin("capturemanager")

    def say(line: str) -> None:
        with capture.global_and_fixture_disabled():
            print(f"\n{line}", end="", flush=True)

    try:
        return find_binaries(say)
    except TestbedUnavailable as reason:
        no_control_plane(reason)
