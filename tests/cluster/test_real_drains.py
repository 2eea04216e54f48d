"""Pods that really run are moved to another node that really boots, and no request to their Service is lost.

Four servers with a preStop hook, a SIGTERM and a readiness that take their time, a budget, and a client that opens
twenty connections a second through kube-proxy. What happens to Dovetail meanwhile is what a person or a machine does to
it: upgrades that go wrong and right, a rollback, deleted and killed workers, and an uninstallation.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from testbed.node import cgroups
from testbed.node.cluster import ROOT
from testbed.node.network import namespace_of
from testbed.pod_network import inside
from tests.real_nodes import real_ground
from worlds.cluster.machines import LABEL, POOL, machines
from worlds.cluster.objects import is_tainted
from worlds.cluster.real_nodes import INSTALLED, RealGround, ready, restarts

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

REPLICAS = 4
CHART = "deploy/charts/dovetail"
REPLACED_SECONDS = 300
RESULTS = ROOT / ".dovetail" / "real-drains.json"  # a table: scene -> requests sent, lost


class Shop:
    """The servers, their nodes, and the client."""

    def __init__(self, ground: RealGround) -> None:
        self.ground = ground
        self.host = ""

    async def nodes(self) -> set[str]:
        return {node["metadata"]["name"] for node in await self.ground.nodes(LABEL)}

    async def serves(self) -> bool:
        """All four are ready, on nodes that are, and nothing is on its way."""
        nodes, pods = await self.ground.nodes(LABEL), await self.ground.pods("app%3Dshop")
        calm = bool(nodes) and all(ready(node) and not is_tainted(node) for node in nodes)
        return calm and len(pods) == REPLICAS and all(map(ready, pods))

    async def open(self) -> None:
        """The pool, the servers and their Service."""
        await self.ground.typed(f"kubectl apply -f {POOL}")
        await self.ground.until(self.serves, REPLACED_SECONDS, "four servers run on a machine of their own")
        service = await self.ground.api.get("/api/v1/namespaces/default/services/shop")
        self.host = str(service.body["spec"]["clusterIP"])

    async def order(self) -> set[str]:
        """Every node of the pool shall be replaced; those that stand now."""
        before = await self.nodes()
        await self.ground.typed("kubectl annotate --overwrite nodeclaims --all dovetail.sh/replace=trying")
        return before

    async def drains(self) -> None:
        """A pod of the old node has been told to go."""

        async def one_goes() -> bool:
            return any("deletionTimestamp" in pod["metadata"] for pod in await self.ground.pods("app%3Dshop"))

        await self.ground.until(one_goes, 180, "a drain is under way")

    async def moved(self, before: set[str]) -> None:
        """Others stand in their place."""

        async def done() -> bool:
            return not before & await self.nodes() and await self.serves()

        await self.ground.until(done, REPLACED_SECONDS, "the servers run on other machines")


class Asking:
    """The client, for as long as the block lasts; what it lost is written down under the scene's name."""

    def __init__(self, shop: Shop, scene: str) -> None:
        self._shop, self._scene = shop, scene
        self.result: dict[str, Any] = {}

    async def __aenter__(self) -> "Asking":
        nodes = self._shop.ground.cluster.nodes
        command = [sys.executable, "-m", "worlds.cluster.asking", self._shop.host]
        self._process = await asyncio.create_subprocess_exec(
            *inside(namespace_of(nodes.tag, nodes.numbers["node-1"])), *command, cwd=ROOT, stdout=subprocess.PIPE
        )
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        self._process.terminate()
        said, _ = await self._process.communicate()
        self.result = json.loads(said)
        if kind is None:
            known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
            known[self._scene] = {"sent": self.result["sent"], "lost": len(self.result["lost"])}
            RESULTS.write_text(json.dumps(known, indent=1) + "\n")

    def nothing_lost(self) -> None:
        assert self.result["lost"] == [] and self.result["sent"] > 100 and len(self.result["by"]) > REPLICAS


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shop(request: pytest.FixtureRequest) -> AsyncIterator[Shop]:
    async for ground in real_ground(request, "drains"):
        for manifest in ("kwok.yaml", "stage-fast.yaml"):
            await ground.typed(f"kubectl apply -f {ground.cluster.kwok / manifest}")
        await ground.typed("helm install dovetail-crd deploy/charts/dovetail-crd")
        await _installed(ground, "install")
        async with machines(ground):
            opened = Shop(ground)
            await opened.open()
            yield opened


async def _installed(ground: RealGround, verb: str, more: str = "") -> None:
    await ground.typed(f"helm {verb} dovetail {CHART} {INSTALLED} {more}")
    await ground.typed("kubectl --namespace dovetail rollout status deployment/dovetail --timeout=300s")


def _worker_processes(ground: RealGround) -> list[int]:
    """The workers' own, in their containers."""
    found = []
    for pid in cgroups.processes(ground.cluster.nodes.tag):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if "worker" in command and any("dovetail" in word for word in command):
            found.append(pid)
    return found


async def test_a_node_is_replaced_at_rest(shop: Shop) -> None:
    async with Asking(shop, "replaced, at rest") as client:
        await shop.moved(await shop.order())

    client.nothing_lost()


async def test_a_worker_s_pod_is_deleted_as_the_drain_begins(shop: Shop) -> None:
    first = (await shop.ground.workers())[0]["metadata"]["name"]
    async with Asking(shop, "kubectl delete pod of a worker, in mid-drain") as client:
        before = await shop.order()
        await shop.drains()
        await shop.ground.typed(f"kubectl --namespace dovetail delete pod {first}")
        await shop.moved(before)

    client.nothing_lost()


async def test_both_workers_are_killed_in_mid_drain_and_started_again_by_the_kubelet(shop: Shop) -> None:
    async def two_ready() -> bool:
        workers = await shop.ground.workers()
        return len(workers) == 2 and all(map(ready, workers))

    await shop.ground.until(two_ready, 120, "both workers are ready")
    earlier = sum(restarts(pod) for pod in await shop.ground.workers())
    async with Asking(shop, "kill -9 of both workers, in mid-drain") as client:
        before = await shop.order()
        await shop.drains()
        killed = _worker_processes(shop.ground)
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        await shop.moved(before)

    assert len(killed) >= 2, killed
    assert sum(restarts(pod) for pod in await shop.ground.workers()) == earlier + 2
    client.nothing_lost()


async def test_an_upgrade_to_an_image_that_is_not_there_is_rolled_back(shop: Shop) -> None:
    ground = shop.ground
    await ground.until(shop.serves, 120, "nothing is on its way")
    async with Asking(shop, "helm upgrade to an image that is not there, then rollback") as client:
        await ground.typed(f"helm upgrade dovetail {CHART} {INSTALLED} --set image.tag=nowhere")

        async def stuck() -> bool:
            return len(await ground.workers()) > 2

        await ground.until(stuck, 120, "a pod waits for an image that is not there")
        assert sum(map(ready, await ground.workers())) == 2, "the workers that there are stay"
        await shop.moved(await shop.order())
        before = await shop.order()
        await shop.drains()
        await ground.typed("helm rollback dovetail --namespace dovetail")
        await ground.typed("kubectl --namespace dovetail rollout status deployment/dovetail --timeout=300s")
        await shop.moved(before)

    client.nothing_lost()


async def test_an_upgrade_that_rolls_both_workers_in_mid_drain(shop: Shop) -> None:
    async with Asking(shop, "helm upgrade that rolls both workers, in mid-drain") as client:
        before = await shop.order()
        await shop.drains()
        await _installed(shop.ground, "upgrade", "--set podAnnotations.release=next")
        await shop.moved(before)

    client.nothing_lost()


async def test_uninstalled_in_mid_drain_and_installed_again_over_the_nodes_that_stand(shop: Shop) -> None:
    """The workers get SIGTERM in the second in which their rights and, of a trial, their Temporal go."""
    ground = shop.ground
    async with Asking(shop, "helm uninstall in mid-drain, then install again") as client:
        before = await shop.order()
        await shop.drains()
        await ground.typed("helm uninstall dovetail --namespace dovetail --wait --timeout=180s")

        async def no_worker() -> bool:
            return not await ground.workers()

        await ground.until(no_worker, 120, "no worker is left")
        assert await shop.nodes(), "what was there stays where nobody works"
        await _installed(ground, "install")
        await shop.moved(before)

    client.nothing_lost()
