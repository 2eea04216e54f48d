"""A stage for the whole system: a simulated world in a file, its player, workers and CLI as processes.

The Temporal server is shared by the session, because every stage is a cluster of its own and ids and queues carry its
name; a stage that loses its database has its own server. Everything is stopped by its process id.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from temporalio.client import Client, WorkflowHandle

from dovetail.adapters.simulator.api_server.feed import news_since
from dovetail.adapters.simulator.api_server.store import Store
from dovetail.adapters.simulator.ledger import Entry
from dovetail.adapters.simulator.settings import WorldSettings
from dovetail.cli.demo.temporal_server import TemporalServer, start_temporal, stop_process
from dovetail.model import names
from dovetail.model.values.json import Json
from dovetail.wiring.world import SIMULATED_PLAYER
from testbed.simulated_world import SimulatedWorld
from testbed.temporal.chosen import AnyTemporal, environment_of
from worlds.fault_orders import VARIABLE, Orders
from worlds.loaded.processes import run_command, start_process
from worlds.manifests import EMBEDDED_CLASS, pool_manifest
from worlds.patience import CROWDED

T = TypeVar("T")

LOOK_SECONDS = 0.1
LINES_SHOWN = 25

FAST = WorldSettings(boot=0.2, node_ready=0.1, shutdown=0.2, pod_start=0.1, pod_stop=0.2)


class Overdue(AssertionError):
    """An awaited event did not happen in time."""


@dataclass
class Stage:
    """One cluster."""

    folder: Path
    cluster: str
    temporal: AnyTemporal
    owns_temporal: bool = False
    world: SimulatedWorld = field(init=False)
    orders: Orders = field(init=False)
    player: "subprocess.Popen[bytes] | None" = None
    workers: "list[subprocess.Popen[bytes]]" = field(default_factory=list)
    database: int = 0

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.file = self.folder / "world.db"
        self.world = SimulatedWorld.create(self.file, FAST)
        self.orders = Orders(self.folder / "faults")
        self.player = self._spawn(
            "player.log", [sys.executable, "-m", SIMULATED_PLAYER, str(self.file), "--with-parent"]
        )

    # Processes

    @property
    def own_temporal(self) -> TemporalServer:
        """The development server, of whose process and file some tests know."""
        assert isinstance(self.temporal, TemporalServer), "only the development server has one process and one file"
        return self.temporal

    @property
    def where(self) -> dict[str, str]:
        """The variables by which a command finds this cluster."""
        return {"CLUSTER_NAME": self.cluster, "DOVETAIL_WORLD": str(self.file)}

    def environment(self, **more: str) -> dict[str, str]:
        """The environment of every process of this stage, without any variables of the caller that could affect it."""
        steering = ("TEMPORAL_", "DOVETAIL_", "KUBECONFIG", "CLUSTER_NAME")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(steering)}
        return {**kept, **environment_of(self.temporal), **more}

    def start_installed(self, command: Sequence[str], log_name: str, **more: str) -> "subprocess.Popen[bytes]":
        """A worker of another installation, by its command line."""
        whole = [*command, "worker", "--cluster", self.cluster, "--world", str(self.file)]
        worker = self._spawn(log_name, whole, **more)
        self.workers.append(worker)
        return worker

    def start_worker(self, faulty: bool = False, **more: str) -> "subprocess.Popen[bytes]":
        """A worker; `faulty` ones carry fault orders out."""
        module = "tests.faults.worker" if faulty else "dovetail.cli.main"
        command = [sys.executable, "-m", module, "worker", "--cluster", self.cluster, "--world", str(self.file)]
        worker = self._spawn("worker.log", command, **({VARIABLE: str(self.orders.folder)} if faulty else {}), **more)
        self.workers.append(worker)
        return worker

    def start_worker_of_cluster(self, kubeconfig: Path, **more: str) -> "subprocess.Popen[bytes]":
        """A worker of the cluster that this file leads to, instead of the embedded world."""
        command = [sys.executable, "-m", "dovetail.cli.main", "worker", "--cluster", self.cluster]
        worker = self._spawn("worker.log", command, KUBECONFIG=str(kubeconfig), **more)
        self.workers.append(worker)
        return worker

    async def dovetail(self, *arguments: str, **more: str) -> tuple[int, str, str]:
        """Run the CLI as an operator does: exit code, standard output, standard error."""
        return await self.run_installed([sys.executable, "-m", "dovetail.cli.main"], *arguments, **more)

    async def run_installed(self, command: Sequence[str], *arguments: str, **more: str) -> tuple[int, str, str]:
        """The same of another installation, by its command line."""
        code, out, err = await run_command([*command, *arguments], self.environment(**{**self.where, **more}))
        return code, out.decode().strip(), err.decode().strip()

    def _spawn(self, log_name: str, command: list[str], **more: str) -> "subprocess.Popen[bytes]":
        with (self.folder / log_name).open("ab") as log:
            return start_process(command, self.environment(**more), log)

    def kill(self, worker: "subprocess.Popen[bytes]") -> float:
        """Kill -9; the moment."""
        moment = time.time()
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        return moment

    async def lose_database(self) -> None:
        """The Temporal server and its database are lost; another server starts with nothing."""
        assert self.owns_temporal, "a shared server is not taken away"
        await asyncio.to_thread(self.temporal.stop)
        self.own_temporal.database.unlink()
        self.database += 1
        self.temporal = await start_temporal(self.folder, self.folder / f"temporal-{self.database}.db")

    async def stop_workers(self) -> None:
        """Kill -9, all of them."""
        await asyncio.gather(*[asyncio.to_thread(stop_process, w, signal.SIGKILL) for w in self.workers])

    async def rest(self) -> None:
        """Stop workers and player: the stage has been examined, and others need the machine."""
        await self.stop_workers()
        if self.player is not None:
            await asyncio.to_thread(stop_process, self.player, signal.SIGKILL)

    async def close(self) -> None:
        """Stop everything."""
        await self.rest()
        if self.owns_temporal:
            await asyncio.to_thread(self.temporal.stop)
        self.world.close()

    # Waiting

    async def until(self, look: Callable[[], T | None], seconds: float, words: str) -> T:
        """The first answer that is true."""
        limit = CROWDED * seconds
        deadline = time.monotonic() + limit
        while True:
            answer = look()
            if answer:
                return answer
            if time.monotonic() > deadline:
                raise Overdue(
                    f"{self.cluster}: within {limit:.0f} s it did not come about that {words}; {self.folder}\n"
                    + "\n".join(self.evidence())
                )
            await asyncio.sleep(LOOK_SECONDS)

    def evidence(self) -> list[str]:
        """The current state, for the reader of a failure who does not have the folder."""
        ended = [
            f"{p.args!r} ended with {p.poll()}" for p in (*self.workers, self.player) if p and p.poll() is not None
        ]
        logs = sorted(self.folder.glob("*.log"))
        said = [log.read_text(errors="replace").splitlines()[-LINES_SHOWN:] for log in logs]
        return [*(state_of(claim) for claim in self.claims()), *ended, *(line for lines in said for line in lines)]

    # What can be seen

    def claims(self) -> list[Json]:
        return self.world.objects("NodeClaim")

    def managed_nodes(self) -> list[Json]:
        return [n for n in self.world.objects("Node") if names.NODE_POOL in n["metadata"].get("labels", {})]

    def tainted(self) -> list[str]:
        """The nodes that carry the disruption's taint."""
        return [n["metadata"]["name"] for n in self.world.objects("Node") if is_tainted(n)]

    def running_pods(self) -> int:
        return sum(1 for p in self.world.objects("Pod") if p.get("status", {}).get("phase") == "Running")

    def nothing_left(self) -> bool:
        """No claim, no node, no instance."""
        return not self.claims() and not self.managed_nodes() and not self.world.live_instances()

    def initialised(self, count: int) -> bool:
        return sum(1 for c in self.claims() if has_condition(c, names.INITIALIZED_CONDITION)) >= count

    def instances_by_claim(self) -> dict[str, int]:
        """How many instances were ever launched for each claim UID, by the cloud's own rows."""
        counts: dict[str, int] = {}
        for instance in self.world.instances():
            counts[instance.claim_uid] = counts.get(instance.claim_uid, 0) + 1
        return counts

    def writes_of_ours(self, after: float) -> list[Entry]:
        """What the product did to cluster and cloud after a moment."""
        return [e for e in self.world.ledger() if e.actor.startswith("dovetail") and e.at > after]

    def departed(self, kind: str) -> list[Json]:
        """The last states of the deleted objects of a kind."""
        store = Store(self.file)
        try:
            with store.reading() as connection:
                found, _ = news_since(connection, 0)
        finally:
            store.close()
        return [news.body for news in found if news.deleted and news.kind == kind]

    async def client(self) -> Client:
        return await self.temporal.client()

    async def workflow(self, identity: str) -> WorkflowHandle[Any, Any]:
        return (await self.client()).get_workflow_handle(identity)

    # What can be done

    def apply_pool(self, instance_type: str = "c-2x-amd64-linux", **disruption: Any) -> None:
        """A ready NodeClass, and a pool of one instance type: one pod of `deployment` fills a node."""
        self.world.apply(node_class())
        self.world.apply(node_pool([instance_type], **disruption))

    def deploy(self, replicas: int, name: str = "web", **spec: Any) -> None:
        self.world.apply(deployment(replicas, name, **spec))


def is_tainted(node: Json) -> bool:
    return any(t["key"] == names.DISRUPTED_TAINT for t in node["spec"].get("taints") or [])


def state_of(claim: Json) -> str:
    """A claim in one line."""
    metadata = claim["metadata"]
    conditions = claim.get("status", {}).get("conditions") or []
    stated = " ".join(f"{c['type']}={c['status']}({c.get('reason', '')})" for c in conditions)
    own = {key: text for key, text in metadata.get("annotations", {}).items() if key.startswith("dovetail.sh/")}
    return f"{metadata['name']} deleted={metadata.get('deletionTimestamp', '')} {own} {stated}"


def has_condition(body: Json, kind: str) -> bool:
    conditions = body.get("status", {}).get("conditions") or []
    return any(c["type"] == kind and c["status"] == "True" for c in conditions)


def node_class(name: str = "default") -> Json:
    return {"apiVersion": "dovetail.sh/v1", "kind": "EmbeddedNodeClass", "metadata": {"name": name}, "spec": {}}


def node_pool(instance_types: list[str], name: str = "pool", class_name: str = "default", **disruption: Any) -> Json:
    requirements = [
        {"key": names.INSTANCE_TYPE, "operator": "In", "values": instance_types},
        {"key": names.CAPACITY_TYPE, "operator": "In", "values": ["on-demand"]},
    ]
    policy = {
        "consolidationPolicy": "WhenEmpty",
        "consolidateAfter": "0s",
        "budgets": [{"nodes": "100%"}],
        **disruption,
    }
    of = replace(EMBEDDED_CLASS, name=class_name)
    return pool_manifest(name, of, {"requirements": requirements, "expireAfter": "720h"}, disruption=policy)


def deployment(replicas: int, name: str = "web", cpu: str = "1500m", **spec: Any) -> Json:
    """Pods that fill a node of two cpu each."""
    labels = {"app": name}
    container = {"name": "main", "image": "main:1", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container], **spec}},
        },
    }
