"""A worker whose cloud is kwok, on real servers: with the rights that the chart grants, and how all of it ends."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import yaml

from dovetail.cli.demo.temporal_server import stop_process
from testbed.plane import find_binaries
from testbed.plane.parts import KUBELET_STAGES, PlaneSettings
from testbed.plane.processes import spawn
from testbed.up import WORKER_USER, give_rights
from testing.cluster.costs import start_worker
from testing.cluster.ground import Ground

RIGHTS: Final = Path(__file__).parents[2] / "deploy" / "kubernetes" / "kwok.yaml"
CLOUD: Final = {"DOVETAIL_CLOUD": "kwok"}


async def start_kwok_worker(ground: Ground, **settings: str) -> None:
    """Replaces the running workers."""
    await give_rights(ground.api, WORKER_USER, list(yaml.safe_load_all(RIGHTS.read_text())))
    start_worker(ground, **CLOUD, **settings)


@asynccontextmanager
async def upstreams_kwok(ground: Ground) -> AsyncIterator[None]:
    """kwok's controller beside the test bed's, as people install it: it plays Nodes by their annotation and keeps their
    leases itself. Those hold for less long, because this control plane's patience is shorter."""
    plane = ground.everything.plane
    command = [
        str(find_binaries(lambda _line: None).path("kwok")),
        f"--kubeconfig={plane.folder / 'kubeconfigs' / 'kwok.kubeconfig'}",
        f"--config={KUBELET_STAGES}",
        "--manage-all-nodes=false",
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
        "--manage-nodes-with-label-selector=",
        "--cidr=10.132.0.0/16",
        "--node-ip=127.0.0.1",
        f"--node-lease-duration-seconds={PlaneSettings().node_grace_seconds}",
    ]
    playing = spawn(command, plane.folder / "logs" / "upstreams-kwok.log")
    try:
        yield
    finally:
        await asyncio.to_thread(stop_process, playing)


async def end_kwok_nodes(ground: Ground) -> None:
    """Delete the NodePool `web`, with every claim and node."""
    await ground.delete("NodePool", "web")

    async def away() -> bool:
        for claim in await ground.claims():
            if "deletionTimestamp" not in claim["metadata"]:
                await ground.delete("NodeClaim", claim["metadata"]["name"])
        return not await ground.claims() and not await ground.nodes()

    await ground.until(away, 180, "the nodes of kwok are gone")
