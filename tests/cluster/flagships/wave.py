"""Scenes of one file that are played beside each other in one cluster: all begin at once, and each test then waits for
its own. A scene that is chosen alone is played alone.

A module of scenes has `setting`, which prepares the cloud and the worker for all of them.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

import pytest
import pytest_asyncio

from tests.cluster.flagships.corner import Corner, Play, corner_for
from worlds.cluster.ground import Ground

SCENE = "scene"


class Wave:
    """The scenes that are played, by name, and how long each has taken."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.corners: list[Corner] = []
        self.running: dict[str, asyncio.Task[float]] = {}

    async def begin(self, plays: list[Play]) -> None:
        self.corners = [await corner_for(self.ground, play) for play in plays]
        for play, corner in zip(plays, self.corners, strict=True):
            self.running[play.__name__] = asyncio.create_task(_timed(play, corner))

    async def over(self, name: str) -> None:
        """Once that scene has ended, as it ended."""
        seconds = await self.running[name]
        print(f"{name}: {seconds:.0f} s")

    async def leave(self) -> None:
        """What is still played ends, and nothing is left behind."""
        for task in self.running.values():
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task
        for kind in ("disruptionpolicies", "freezes", "noderollouts"):
            await self.ground.api.delete(f"/apis/dovetail.sh/v1alpha1/{kind}")
        for corner in self.corners:
            await corner.leave()
        await self.ground.clear()
        await self.ground.until(self.only_the_usual_class, 60, "the scenes' NodeClasses are gone")
        await self.ground.assert_events_are_named()
        await self.ground.assert_one_instance_per_claim()

    async def only_the_usual_class(self) -> bool:
        return [each["metadata"]["name"] for each in await self.ground.objects("EC2NodeClass")] == ["default"]


async def _timed(play: Play, corner: Corner) -> float:
    began = time.monotonic()
    await play(corner)
    return time.monotonic() - began


def scene(play: Play) -> Callable[[Wave], Awaitable[None]]:
    """The test that waits for this scene."""

    async def test(wave: Wave) -> None:
        await wave.over(play.__name__)

    test.__name__ = test.__qualname__ = play.__name__
    test.__doc__, test.__module__ = play.__doc__, play.__module__
    setattr(test, SCENE, play)
    return test


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def wave(request: pytest.FixtureRequest, servers: Ground) -> AsyncIterator[Wave]:
    """All scenes of the module that are to be played in this session."""
    here = [item for item in request.session.items if item.path == request.path]
    plays = [play for item in here if (play := getattr(getattr(item, "obj", None), SCENE, None))]
    async with request.module.setting(servers):
        found = Wave(servers)
        try:
            await found.begin(plays)
            yield found
        finally:
            await found.leave()
