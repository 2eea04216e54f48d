"""A worker whose cloud is kwok, on real servers: with the rights that the chart grants, and how all of it ends."""

from pathlib import Path
from typing import Final

import yaml

from testbed.up import WORKER_USER, give_rights
from worlds.cluster.costs import start_worker
from worlds.cluster.ground import Ground

RIGHTS: Final = Path(__file__).parents[2] / "deploy" / "kubernetes" / "kwok.yaml"
CLOUD: Final = {"DOVETAIL_CLOUD": "kwok"}


async def start_kwok_worker(ground: Ground, **settings: str) -> None:
    """Replaces the running workers."""
    await give_rights(ground.api, WORKER_USER, list(yaml.safe_load_all(RIGHTS.read_text())))
    start_worker(ground, **CLOUD, **settings)


async def end_kwok_nodes(ground: Ground) -> None:
    """Delete the NodePool `web`, with every claim and node."""
    await ground.delete("NodePool", "web")

    async def away() -> bool:
        for claim in await ground.claims():
            if "deletionTimestamp" not in claim["metadata"]:
                await ground.delete("NodeClaim", claim["metadata"]["name"])
        return not await ground.claims() and not await ground.nodes()

    await ground.until(away, 180, "the nodes of kwok are gone")
