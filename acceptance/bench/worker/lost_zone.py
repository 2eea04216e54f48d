"""A worker over a large cluster that lives: `python -m acceptance.bench.worker.lost_zone [NODES [PODS_A_NODE]]`.

A real API server, the cloud kwok, Temporal. One node is launched by a worker; the others are copies of it, written to
the API server with their claims and pods, spread over three zones. kwok reports each node's status every five minutes
as kubelets do; leases, which no worker reads, are renewed a tenth as often as in life, so that the API server leaves
something of two cores. Then one worker: its start, rest, a pod a second, the loss of a zone, a kill and a new start.

Of each part: the worker's share of a core, how often its event loop was late and by how much, and what it wrote.
"""

import argparse
import asyncio
import copy
import secrets
import shutil
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from acceptance.bench.worker.load import WorkerLoad, page
from dovetail.adapters.kwok import names as own
from dovetail.cli.demo.temporal_server import free_ports
from dovetail.model import names
from dovetail.model.values.json import Json
from testbed.plane import PlaneSettings
from testbed.up import WORKER_USER, folder_of
from worlds.cluster.costs import start_worker
from worlds.cluster.ground import Ground
from worlds.cluster.kwok import CLOUD, start_kwok_worker
from worlds.cluster.objects import KUBELET, deployment

ROOT: Final = Path(__file__).parents[3]
GRACE_SECONDS: Final = 400  # of leases; in life 40
AT_ONCE: Final = 24
PART_SECONDS: Final = 60.0
SETTLE_SECONDS: Final = 30.0
PATIENCE: Final = 900.0
ZONES: Final = ("test-zone-a", "test-zone-b", "test-zone-c")
OWNER: Final = "stands"
PODS: Final = "/api/v1/namespaces/default/pods"
CLAIMS: Final = "/apis/karpenter.sh/v1/nodeclaims"


@dataclass(slots=True, kw_only=True)
class Large:
    """The cluster, and what was measured of its worker."""

    ground: Ground
    nodes: int
    pods: int  # a node
    port: int = 0

    @property
    def worker(self) -> int:
        return self.ground.workers[-1].pid

    def start_worker(self) -> None:
        """One that serves its metrics, without a line for each node and pod."""
        (self.port,) = free_ports(1)
        settings = {"METRICS_PORT": str(self.port), "DISABLE_CLUSTER_STATE_OBSERVABILITY": "true"}
        start_worker(self.ground, **CLOUD, **settings)

    async def load(self) -> WorkerLoad:
        """The worker's up to now."""
        return await asyncio.to_thread(WorkerLoad.of, self.worker, self.port)

    async def part(
        self, name: str, act: Callable[[], Awaitable[None]], since: tuple[WorkerLoad, int] | None = None
    ) -> None:
        """Do it, and say what it cost the worker. `since`: where the part has begun already, and the log's end then."""
        before, log = since or (await self.load(), self.ground.audit.end())
        ends = time.monotonic() + PART_SECONDS
        await act()
        await asyncio.sleep(max(0.0, ends - time.monotonic()))
        after = await self.load()
        writes = Counter(
            f"{entry.verb} {entry.resource}"
            for entry in self.ground.audit.entries(log)
            if entry.user == WORKER_USER and entry.is_write
        )
        wrote = ", ".join(f"{count} {kind}" for kind, count in writes.most_common(6)) or "nothing"
        print(f"    {name:34} {after.since(before)}; wrote {wrote}", flush=True)


async def each(things: Iterable[int], act: Callable[[int], Awaitable[None]]) -> None:
    """So many at a time."""
    waiting = iter(things)

    async def one_after_the_other() -> None:
        for thing in waiting:
            await act(thing)

    await asyncio.gather(*(one_after_the_other() for _ in range(AT_ONCE)))


def _bare(body: Json) -> Json:
    """A copy of an object without what the API server gave it."""
    made = copy.deepcopy(body)
    for given in ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "generateName"):
        made["metadata"].pop(given, None)
    return made


async def populate(large: Large) -> None:
    """Copies of the only claim, its node and its pod, until there are enough."""
    ground = large.ground
    [claim], [node], [pod] = await ground.claims(), await ground.nodes(), await ground.objects("Pod")
    owner = await ground.api.post(
        "/api/v1/namespaces/default/configmaps",
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": OWNER, "namespace": "default"}},
    )
    assert owner.status == 201, owner.text
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": OWNER, "uid": owner.body["metadata"]["uid"]}

    async def add(number: int) -> None:
        zone, name = ZONES[number % len(ZONES)], f"kwok-{secrets.token_hex(6)}"
        made_claim, made_node = _bare(claim), _bare(node)
        made_claim["metadata"] |= {"name": f"web-{number:05d}"}
        made_claim["metadata"]["labels"][names.ZONE] = zone
        answer = await ground.api.post(CLAIMS, made_claim)
        assert answer.status == 201, answer.text
        made_claim["status"] |= {"nodeName": name, "providerID": own.SCHEME + name}
        status = {"status": made_claim["status"]}
        assert (await ground.api.patch(f"{CLAIMS}/web-{number:05d}/status", status)).status == 200
        made_node["metadata"] |= {"name": name}
        made_node["metadata"]["labels"] |= {"kubernetes.io/hostname": name, names.ZONE: zone}
        made_node["metadata"]["annotations"][own.CLAIM] = f"web-{number:05d}"
        for each_owner in made_node["metadata"].get("ownerReferences") or []:
            each_owner |= {"name": f"web-{number:05d}", "uid": answer.body["metadata"]["uid"]}
        made_node["spec"] |= {"providerID": own.SCHEME + name}
        for given in ("podCIDR", "podCIDRs"):
            made_node["spec"].pop(given, None)
        answer = await ground.api.post("/api/v1/nodes", made_node)
        assert answer.status == 201, answer.text
        for _ in range(large.pods):
            made_pod = _bare(pod)
            made_pod["metadata"] |= {"name": f"stands-{secrets.token_hex(5)}", "labels": {"app": OWNER}}
            made_pod["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
            made_pod["spec"]["nodeName"] = name
            made_pod.pop("status", None)
            answer = await ground.api.post(PODS, made_pod)
            assert answer.status == 201, answer.text

    await each(range(large.nodes - 1), add)


async def first_node(ground: Ground) -> None:
    """A pool of the cloud kwok, and one node that a worker launches."""
    node_class, pool = yaml.safe_load_all((ROOT / "deploy/kind/pool.yaml").read_text())
    pool["spec"]["template"]["metadata"] = {"labels": {KUBELET: "alive"}}
    pool["spec"]["disruption"]["consolidateAfter"] = "Never"
    for path, body in (("/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses", node_class), (NODE_POOLS, pool)):
        answer = await ground.api.post(path, body)
        assert answer.status == 201, answer.text
    await start_kwok_worker(ground)
    await ground.apply(deployment(1, cpu="500m"))

    async def settled() -> bool:
        return bool(await ground.claims()) and await ground.settled(1)

    await ground.until(settled, PATIENCE, "the first node runs its pod")
    ground.kill_workers()


NODE_POOLS: Final = "/apis/karpenter.sh/v1/nodepools"


def small_pod(name: str, cpu: str = "100m") -> Json:
    """For the kube-scheduler to place."""
    container = {"name": "c", "image": "web:1", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "comes-and-goes"}},
        "spec": {"containers": [container]},
    }


async def nothing() -> None:
    """Heartbeats alone."""


async def measured(large: Large) -> None:
    """Part after part."""
    ground = large.ground

    async def a_pod_a_second() -> None:
        for number in range(int(PART_SECONDS)):
            began = time.monotonic()
            assert (await ground.api.post(PODS, small_pod(f"goes-{number}"))).status == 201
            if number >= 10:
                await ground.api.delete(f"{PODS}/goes-{number - 10}", {"gracePeriodSeconds": 0})
            await asyncio.sleep(max(0.0, 1.0 - (time.monotonic() - began)))

    async def a_zone_is_lost() -> None:
        lost = [n["metadata"]["name"] for n in await ground.nodes() if n["metadata"]["labels"][names.ZONE] == ZONES[0]]

        async def silent(number: int) -> None:
            await ground.api.patch(f"/api/v1/nodes/{lost[number]}", {"metadata": {"labels": {KUBELET: "unheard"}}})
            ready = [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": ""}]
            await ground.api.patch(
                f"/api/v1/nodes/{lost[number]}/status", {"status": {"conditions": ready}}, "strategic"
            )

        await each(range(len(lost)), silent)

    async def is_up() -> bool:
        try:
            await asyncio.to_thread(page, large.port)
        except OSError:
            return False
        return True

    async def from_its_start(name: str) -> None:
        log, began = ground.audit.end(), time.monotonic()
        large.start_worker()
        await ground.until(is_up, PATIENCE, "the worker answers")
        await large.part(name, nothing, (WorkerLoad(began, 0.0, {}), log))

    await from_its_start("start, and a minute")
    await large.part("rest, with heartbeats", nothing)
    await large.part("a pod a second", a_pod_a_second)
    ground.kill_workers()
    await from_its_start("kill -9, a new start and a minute")
    await large.part("a zone falls silent", a_zone_is_lost)
    await large.part("the minute after it", nothing)
    await launched_beside(large)


async def launched_beside(large: Large) -> None:
    """A pod that needs a node of its own, while all that goes on."""
    ground, before = large.ground, {c["metadata"]["name"] for c in await large.ground.claims()}
    began = time.monotonic()
    assert (await ground.api.post(PODS, small_pod("needs-a-node", cpu="3500m"))).status == 201

    async def made() -> bool:
        return bool({c["metadata"]["name"] for c in await ground.claims()} - before)

    await ground.until(made, PATIENCE, "a claim for the new pod")
    leaving = sum(1 for c in await ground.claims() if "deletionTimestamp" in c["metadata"])
    print(
        f"    a new pod has its claim after {time.monotonic() - began:.1f} s; claims that leave: {leaving}", flush=True
    )


async def run(folder: Path, nodes: int, pods: int) -> None:
    """On servers of its own."""
    ground = await Ground.start(folder, PlaneSettings(node_grace_seconds=GRACE_SECONDS))
    try:
        await first_node(ground)
        large = Large(ground=ground, nodes=nodes, pods=pods)
        began = time.monotonic()
        await populate(large)
        running = nodes * pods + 1 - pods

        async def all_run() -> bool:
            waiting = await ground.api.get("/api/v1/pods?fieldSelector=status.phase!=Running&limit=1")
            return not waiting.body["items"]

        await ground.until(all_run, PATIENCE, f"{running} pods run")
        print(f"    {nodes} nodes and {running} pods stand after {time.monotonic() - began:.0f} s", flush=True)
        await asyncio.sleep(SETTLE_SECONDS)
        await measured(large)
    finally:
        await ground.stop()


def main() -> int:
    """Print the parts."""
    parser = argparse.ArgumentParser(
        prog="python -m acceptance.bench.worker.lost_zone", description=__doc__.splitlines()[0]
    )
    parser.add_argument("nodes", nargs="?", type=int, default=5000)
    parser.add_argument("pods", nargs="?", type=int, default=5, help="on each node")
    asked = parser.parse_args()
    folder = folder_of("bench-lost-zone")
    asyncio.run(run(folder, asked.nodes, asked.pods))
    shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
