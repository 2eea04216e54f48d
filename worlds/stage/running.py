"""Scenarios of the whole system, run side by side; tests ask for what came of them.

A scenario spends most of its time waiting (for a heartbeat to time out, for the fifteen seconds before a second look),
so several share the machine. The first test that needs one starts exactly those that the collected tests name.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

import pytest

from dovetail.cli.demo.temporal_server import start_temporal
from testbed.temporal.chosen import AnyTemporal
from worlds.stage.stage import Stage

T = TypeVar("T")

AT_ONCE = 3


class SideBySide(Generic[T]):
    """Scenarios by name, each run once."""

    def __init__(self, play: Callable[[str], Awaitable[T]], at_once: int = AT_ONCE) -> None:
        self.play = play
        self.slots = asyncio.Semaphore(at_once)
        self.tasks: dict[str, asyncio.Task[T]] = {}

    async def outcome(self, name: str, all_names: list[str]) -> T:
        """The outcome of one; all requested ones are started with the first."""
        for each in all_names:
            if each not in self.tasks:
                self.tasks[each] = asyncio.create_task(self._one(each))
        return await asyncio.shield(self.tasks[name])

    async def _one(self, name: str) -> T:
        async with self.slots:
            return await self.play(name)

    async def stop(self) -> None:
        """Cancel what still runs; its own clean-up is awaited."""
        for task in self.tasks.values():
            task.cancel()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)


def asked_for(request: pytest.FixtureRequest) -> list[str]:
    """The values that the collected tests give to the fixture of this request."""
    name = request.fixturename
    assert name is not None
    found: dict[str, None] = {}
    for item in request.session.items:
        params: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
        if name in params:
            found[str(params[name])] = None
    return list(found)


async def own_stage(folder: Path, cluster: str) -> Stage:
    """A stage with a Temporal server of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    return Stage(folder=folder, cluster=cluster, temporal=await start_temporal(folder), owns_temporal=True)


def shared_stage(folder: Path, cluster: str, temporal: AnyTemporal) -> Stage:
    """A stage on the session's Temporal server."""
    return Stage(folder=folder, cluster=cluster, temporal=temporal)
