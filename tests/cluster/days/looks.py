"""Looks at all objects of a kind twice a second, beside everything else that happens."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import aiohttp

from dovetail.model.values.json import Json
from testbed.demo import PATHS
from worlds.cluster.ground import Ground

LOOK_SECONDS: Final = 0.5


@asynccontextmanager
async def looked_at(ground: Ground, kind: str, look: Callable[[list[Json]], None]) -> AsyncIterator[None]:
    """Within the block. A look while the API server is away sees nothing and is none."""

    async def looking() -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                answer = await ground.api.get(PATHS[kind])
            except (aiohttp.ClientError, TimeoutError):
                continue
            if answer.status == 200:
                look(answer.body["items"])

    task = asyncio.create_task(looking())
    try:
        yield
        if task.done():
            task.result()  # it never ends by itself: what ended it is raised
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
