"""Servers for one case after another: a control plane and an AWS server that stay, a Temporal server for each case.

Several lanes run side by side. What one case leaves would be taken over by the next one's worker, so objects are
removed with their finalizers, the cloud is reset, and Temporal begins with nothing.
"""

import asyncio
import shutil
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from acceptance.traffic.paths import CLEARED, FORGOTTEN, item_path
from dovetail.cli.demo.temporal_server import TemporalServer, start_temporal
from dovetail.model.values.json import Json
from testbed.cloud.server import CloudServer
from testbed.plane import ApiClient, ControlPlane, find_binaries, stop_plane
from testbed.up import WORKER_USER, install

EMPTY_SECONDS: Final = 30.0
# Where EC2 refuses a question for a reservation or a placement group that is nowhere, the recorded cloud found nothing;
# and where a fleet's strategy counts priorities, it went by the price. It took any instance profile.
AS_RECORDED: Final[Json] = {"unknownIds": "nothing", "fleetOrder": "price", "checkInstanceProfiles": False}
# The address that the recorded cluster's DNS had; user data passes it to the nodes.
KUBE_DNS: Final[Json] = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "kube-dns", "namespace": "kube-system"},
    "spec": {
        "clusterIP": "10.0.0.10",
        "selector": {"k8s-app": "kube-dns"},
        "ports": [{"name": "dns", "port": 53, "protocol": "UDP"}],
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One set of servers."""

    folder: Path
    kubeconfig: Path
    api: ApiClient
    cloud: CloudServer

    async def emptied(self) -> None:
        """As if nothing had ever run here."""
        self.cloud.control("POST", "reset")
        await self.api.delete(f"{FORGOTTEN}/dovetail-shortages")
        for collection in CLEARED:
            await self._clear(collection)
        await self._until_empty()

    async def _clear(self, collection: str) -> list[str]:
        """Ask for the end of everything in a collection; what there was."""
        found = (await self.api.get(collection)).body.get("items") or []
        for each in found:
            path = item_path(collection, each)
            if each["metadata"].get("finalizers"):
                await self.api.patch(path, {"metadata": {"finalizers": None}})
            await self.api.delete(path, {"gracePeriodSeconds": 0})
        return [f"{collection}/{each['metadata']['name']}" for each in found]

    async def _until_empty(self) -> None:
        until = time.monotonic() + EMPTY_SECONDS
        left = await self._left()
        while left and time.monotonic() < until:
            await asyncio.sleep(0.1)
            left = await self._left()
        if left:
            raise RuntimeError(f"the cluster does not become empty: {', '.join(left[:5])}")

    async def _left(self) -> list[str]:
        """What is still there, asked once more to go; Events stay behind, they only announce."""
        return [name for each in CLEARED[:-1] for name in await self._clear(each)]

    async def temporal(self, folder: Path) -> TemporalServer:
        """A new Temporal server without any history."""
        return await start_temporal(folder)


@asynccontextmanager
async def open_lane(folder: Path) -> AsyncIterator[Lane]:
    """Start the servers of one lane; they are gone afterwards, however it ends."""
    await _stop(folder)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        control_plane = ControlPlane(folder / "plane", find_binaries(_say))
        plane = await control_plane.start()
        kubeconfig = control_plane.kubeconfig_for(WORKER_USER)
        await install(plane)
        cloud = CloudServer.start(
            folder / "cloud", kubeconfig=plane.kubeconfig, world=AS_RECORDED, kubelet_options=("--advertise-claims",)
        )
        async with ApiClient(plane.kubeconfig, user_agent="dovetail-testbed") as api:
            await api.post("/api/v1/namespaces/kube-system/services", KUBE_DNS)
            yield Lane(folder=folder, kubeconfig=kubeconfig, api=api, cloud=cloud)
    finally:
        await _stop(folder)


async def _stop(folder: Path) -> None:
    if (folder / "cloud" / "pids.json").exists():
        await asyncio.to_thread(CloudServer.at(folder / "cloud").stop)
    await stop_plane(folder / "plane")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
