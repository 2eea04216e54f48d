"""What all tests share: a limit for those that wait, a watch over event loops, and the programs of the control plane.

No test waits for ever: one that hangs fails, and its traceback says where it waited. Where the programs can be neither
found nor built, each test that needs them is skipped with the reason in words, or fails where CI requires it.

Made-up cases are the same ones in each run, so that a change is judged by what it changes; `make soak` looks for new
ones (`--hypothesis-profile exploring` does so for any test).
"""

import asyncio
import functools
import gc
import inspect
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from hypothesis import settings

from testbed.plane import Binaries, TestbedUnavailable, find_binaries
from tests.cli.browser import end_shared
from tests.held_loop import HELD
from tests.taking import WAITING
from tests.unavailable import no_control_plane
from worlds.loaded.processes import stop_server

AWS_SERVER = "aws_server"  # the fixture: each of its five hundred tests takes a third of a second
SLOW_FOLDERS = ("tests/properties/", "tests/testbed/")  # many made-up worlds; the servers that other tests rely on
# Without a deadline: a machine that does other work beside makes no test red.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("exploring", derandomize=False, deadline=None)
settings.load_profile("repeatable")
gc.disable()
GARBAGE = (50_000, 20, 100)  # objects before a look at the young ones, and looks: tests make and drop whole worlds
LONGEST_SECONDS = 900.0  # more than any wait of a test of `make test`, which says what it saw; the soak has no limit


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give every asynchronous test its limit, and leave what takes long as a whole out of `make check`."""
    for item in items:
        if AWS_SERVER in getattr(item, "fixturenames", ()) or item.nodeid.startswith(SLOW_FOLDERS):
            item.add_marker(pytest.mark.slow)
        is_fast = not any(item.get_closest_marker(name) for name in ("temporal", "slow"))
        if item.nodeid.startswith(WAITING) and not is_fast:
            item.add_marker(pytest.mark.waits)
        may_hang = isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj)
        if may_hang and item.get_closest_marker("soak") is None:
            item.obj = limited(item.obj)  # type: ignore[attr-defined]


def pytest_collection_finish() -> None:
    """What tests are made of lives to the end, so no collection of garbage goes through it again: on a crowded machine
    that takes seconds of whatever thread it comes in, and a workflow task has two. Nor is it looked through while it is
    made: that was two thirds of the time in which tests are found."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GARBAGE)
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """What tests share ends with the session: the browser, and the process that copies itself, before which an
    interrupted session ends its fixtures."""
    end_shared()
    stop_server()


def limited(test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """The test, ended by a TimeoutError where it does not end by itself."""

    @functools.wraps(test)
    async def within(*arguments: Any, **named: Any) -> None:
        async with asyncio.timeout(LONGEST_SECONDS):
            await test(*arguments, **named)

    return within


@pytest.fixture(scope="session", autouse=True)
def watched_loops() -> Iterator[None]:
    """All event loops of this process are watched over."""
    with HELD.watched():
        yield


@pytest.fixture(autouse=True)
def no_loop_is_held(watched_loops: None) -> Iterator[None]:
    """The product never keeps an event loop, with the heartbeats of all steps, for half a second of work."""
    HELD.taken()
    yield
    if holds := HELD.taken():
        pytest.fail("\n".join(map(str, holds)), pytrace=False)


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
