"""Real servers, and workers that can be killed.

One set of servers serves a whole session, because they take half a minute to start; each test must leave it as it found
it, or the next one reports what was left.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from temporalio.client import Client

from dovetail.cli.demo.temporal_server import stop_process
from dovetail.model import names
from dovetail.model.values.json import Json
from dovetail.workflows.converter import DATA_CONVERTER
from testbed.demo import PATHS
from testbed.plane import ApiClient, ApiResponse, PlaneSettings
from testbed.plane.kubeconfig import write_kubeconfig
from testbed.up import (
    NODE_CLASS,
    WORKER_USER,
    Everything,
    limit_temporal,
    lose_database,
    start,
    start_temporal_again,
    stop,
)
from worlds.cluster.objects import BUDGETS, BUFFERS, DEPLOYMENTS, KUBELET, NAMESPACED, RULES, TEMPLATES, is_tainted
from worlds.cluster.outside import Outside
from worlds.loaded.processes import run_command, start_process
from worlds.patience import CROWDED

T = TypeVar("T")

LOOK_SECONDS = 0.2
CLEARED_SECONDS = 120.0


class Overdue(AssertionError):
    """An awaited event did not happen in time."""


class Ground(Outside):
    """One set of servers, and what can be done to them."""

    def __init__(self, everything: Everything, api: ApiClient, client: Client) -> None:
        super().__init__(everything, api)
        self.client = client
        self.workers: list[subprocess.Popen[bytes]] = []
        self.workers_may_end = False  # where servers are ill, one that starts finds none and ends by itself

    @staticmethod
    async def start(folder: Path, settings: PlaneSettings | None = None) -> "Ground":
        """All servers, no worker."""
        everything = await start(folder, worker=False, settings=settings)
        api = await ApiClient(everything.plane.kubeconfig, user_agent="acceptance").__aenter__()
        ground = Ground(everything, api, await _client(everything))
        await ground.apply(NODE_CLASS)
        return ground

    async def stop(self) -> None:
        """Stop workers and servers."""
        for worker in self.workers:
            await asyncio.to_thread(stop_process, worker, signal.SIGKILL)
        await self.api.__aexit__(None, None, None)
        await stop(self.everything.folder)

    # Workers

    def ensure_workers(self, count: int = 1, identity: str = WORKER_USER, gates: str = "") -> None:
        """Afterwards that many run; new ones get that identity and these feature gates."""
        running = [worker for worker in self.workers if worker.poll() is None]
        for surplus in running[count:]:
            stop_process(surplus, signal.SIGKILL)
        for _ in range(count - len(running)):
            environment = self.everything.environment if identity == WORKER_USER else self.environment_of(identity)
            environment = {**environment, "FEATURE_GATES": gates} if gates else environment
            with (self.everything.folder / "worker.log").open("ab") as log:
                worker = start_process(self.everything.worker_command(), {**os.environ, **environment}, log)
            self.workers.append(worker)

    def ended_workers(self) -> list[subprocess.Popen[bytes]]:
        """Those that ended by themselves."""
        return [worker for worker in self.workers if worker.poll() not in {None, -signal.SIGKILL}]

    @contextmanager
    def where_workers_may_end(self) -> Iterator[None]:
        """Within the block no wait fails because one has ended; afterwards those are forgotten."""
        self.workers_may_end = True
        try:
            yield
        finally:
            self.workers_may_end = False
            self.workers = [worker for worker in self.workers if worker not in self.ended_workers()]

    def kill_workers(self) -> None:
        """Kill -9, all of them."""
        for worker in self.workers:
            if worker.poll() is None:
                worker.send_signal(signal.SIGKILL)
                worker.wait()

    def environment_of(self, user: str) -> dict[str, str]:
        """A worker's environment, under an identity that has only the rights that a test gave it."""
        plane = self.everything.plane
        kubeconfig = write_kubeconfig(plane.folder / f"{user}.kubeconfig", plane.server, plane.folder / "pki", user)
        return {**self.everything.environment, "KUBECONFIG": str(kubeconfig)}

    async def lose_database(self) -> None:
        """Temporal's database and server are lost; workers that start afterwards find another, empty one."""
        self.everything = await lose_database(self.everything)
        self.client = await _client(self.everything)

    async def limit_temporal(self, limits: Mapping[str, int]) -> None:
        """Temporal's server restarts with its database and these limits; workers look for it at the old address."""
        self.everything = await limit_temporal(self.everything, limits)
        self.client = await _client(self.everything)

    def signal_temporal(self, number: signal.Signals) -> None:
        """Stop it at once, let it continue, or kill it."""
        os.kill(self.everything.processes["temporal"].pid, number)

    async def start_temporal_again(self) -> None:
        """At its address, with its database, after it was killed."""
        self.everything = await start_temporal_again(self.everything)
        self.client = await _client(self.everything)

    async def dovetail(self, *arguments: str) -> tuple[int, str]:
        """The command as an operator types it: exit code, all its output."""
        command = [sys.executable, "-m", "dovetail.cli.main", *arguments]
        code, out, err = await run_command(command, {**os.environ, **self.everything.environment})
        return code, (err + out).decode()

    # Waiting

    async def until(
        self, look: Callable[[], Awaitable[T]], seconds: float, words: str, every: float = LOOK_SECONDS
    ) -> T:
        """The first answer that is true."""
        limit = CROWDED * seconds
        deadline = time.monotonic() + limit
        while not (answer := await look()):
            ended = [] if self.workers_may_end else [worker.returncode for worker in self.ended_workers()]
            if ended or time.monotonic() > deadline:
                left = await self.described()
                why = f"a worker ended with {ended}" if ended else f"within {limit:.0f} s it did not come about"
                raise Overdue(f"{why} (awaited: {words}); {left}; {self.everything.folder}")
            await asyncio.sleep(every)
        return answer

    async def described(self) -> str:
        """The state in a line, for the message of a failure."""
        claims = [(c["metadata"]["name"], c["metadata"].get("deletionTimestamp")) for c in await self.claims()]
        nodes = [(n["metadata"]["name"], is_tainted(n)) for n in await self.nodes()]
        return f"claims {claims}, nodes {nodes}, running pods {await self.running_pods()}, live {await self.live()}"

    # What can be done

    async def apply(self, body: Json) -> None:
        """Create the object, or change it."""
        kind, name = body["kind"], body["metadata"]["name"]
        path = NAMESPACED.get(kind) or PATHS[kind]
        answer = await self.api.patch(f"{path}/{name}", body)
        if answer.status == 404:
            answer = await self.api.post(path, body)
        assert answer.status in {200, 201}, f"{kind} {name}: {answer.status} {answer.text[:300]}"

    async def scale(self, replicas: int) -> None:
        """The Deployment's size."""
        answer = await self.api.patch(f"{DEPLOYMENTS}/web", {"spec": {"replicas": replicas}})
        assert answer.status == 200, answer.text

    async def delete(self, kind: str, name: str) -> ApiResponse:
        """What kubectl delete does."""
        return await self.api.delete(f"{PATHS.get(kind) or NAMESPACED[kind]}/{name}")

    async def hear(self, node: str, *, alive: bool) -> None:
        """Whether the node's kubelet is heard; otherwise it is NotReady at once, and no disruption may take it."""
        change: Json = {"labels": {KUBELET: "alive" if alive else "unheard"}}
        change["annotations"] = {names.DO_NOT_DISRUPT: None if alive else "true"}
        assert (await self.api.patch(f"/api/v1/nodes/{node}", {"metadata": change})).status == 200
        if not alive:
            ready = [{"type": "Ready", "status": "False", "reason": "Unheard", "message": ""}]
            status = {"status": {"conditions": ready}}
            assert (await self.api.patch(f"/api/v1/nodes/{node}/status", status, "strategic")).status == 200

    def world(self, change: Json) -> None:
        """Set how the cloud behaves."""
        self.cloud.control("PATCH", "world", change)

    async def warn(self, claim: Json) -> None:
        """AWS warns that it will take the claim's spot instance, or retire one on demand; it never does."""
        identity = claim["status"]["providerID"].rpartition("/")[2]
        is_spot = claim["metadata"]["labels"][names.CAPACITY_TYPE] == "spot"
        notice = {"kind": "spot" if is_spot else "scheduled", "terminateAfter": None}
        await asyncio.to_thread(self.cloud.control, "POST", f"instances/{identity}/interrupt", notice)

    async def clear(self, seconds: float = CLEARED_SECONDS) -> None:
        """Delete everything, by DELETE calls, until nothing is left."""
        self.world({"bootSeconds": 0, "neverJoin": False, "ice": [], "fail": [], "shutdownSeconds": 1})
        await self.api.delete(f"{BUDGETS}/web")
        await self.api.delete(BUFFERS)
        await self.api.delete(TEMPLATES)
        for kind in RULES:  # one that is left would hold the nodes of whoever comes next
            await self.api.delete(f"/apis/dovetail.sh/v1alpha1/{kind}")
        for body in await self.objects("Deployment"):
            await self.api.delete(f"{DEPLOYMENTS}/{body['metadata']['name']}", {"propagationPolicy": "Background"})
        for pool in await self.objects("NodePool"):
            await self.delete("NodePool", pool["metadata"]["name"])
        self.ensure_workers()

        async def cleared() -> bool:
            for claim in await self.claims():
                if "deletionTimestamp" not in claim["metadata"]:
                    await self.delete("NodeClaim", claim["metadata"]["name"])
            return not await self.objects("Pod") and await self.nothing_left()

        await self.until(cleared, seconds, "the test's objects and instances are gone")

    # Workflows

    async def run_of(self, identity: str) -> tuple[str, str, str]:
        """The latest run under an id: run id, type, status."""
        found = await self.client.get_workflow_handle(identity).describe()
        return found.run_id, found.workflow_type or "", found.status.name if found.status else ""

    async def runs_as(self, identity: str, kind: str) -> str:
        """The run's id, once that id runs as that type; nothing before."""
        run, found, status = await self.run_of(identity)
        return run if (found, status) == (kind, "RUNNING") else ""

    async def result(self, identity: str, run: str, seconds: float = 90) -> Any:
        """The result of that very run; without one, of the latest."""
        async with asyncio.timeout(seconds):
            return await self.client.get_workflow_handle(identity, run_id=run or None).result()


async def _client(everything: Everything) -> Client:
    return await Client.connect(everything.temporal_address, data_converter=DATA_CONVERTER)
