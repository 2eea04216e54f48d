"""Machines of the cloud kwok that are real: a kubelet of its own takes over each Node with the label `machine`.

The cloud makes a Node and says by an annotation when its instance ends; what a hypervisor would do in between is done
here: boot, and switch off.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from dovetail.adapters.kwok import names as own
from dovetail.model.values.json import Json
from dovetail.model.values.time import time_or_none
from worlds.cluster.real_nodes import RealGround

POOL: Final = Path(__file__).with_name("machines.yaml")
LABEL: Final = "machine"
IMAGES: Final = ("pause", "web")  # those that its pods need: it boots the sooner
_LOOK_SECONDS: Final = 0.3


@asynccontextmanager
async def machines(ground: RealGround) -> AsyncIterator[None]:
    """Within the block they come and go; afterwards none runs."""
    running: set[str] = set()
    tending = asyncio.create_task(_tend(ground, running))
    try:
        yield
    finally:
        tending.cancel()
        await asyncio.gather(tending, return_exceptions=True)
        for name in running:
            await ground.cluster.nodes.switch_off(name)


async def _tend(ground: RealGround, running: set[str]) -> None:
    while True:
        there = {node["metadata"]["name"]: node for node in await ground.nodes(LABEL)}
        for name in sorted(running - {name for name, node in there.items() if not _is_over(node)}):
            await ground.cluster.nodes.switch_off(name)
            running.discard(name)
        for name, node in sorted(there.items()):
            if name not in running and not _is_over(node):
                await asyncio.to_thread(ground.cluster.nodes.boot, name, IMAGES)
                running.add(name)
        await asyncio.sleep(_LOOK_SECONDS)


def _is_over(node: Json) -> bool:
    ends = time_or_none((node["metadata"].get("annotations") or {}).get(own.ENDS_AT, ""))
    return ends is not None and ends <= time.time()
