"""Plays the kubelet for the workers' pods: each pod of the release runs as a container from the image's tree.

The control plane is real, and so are Deployment, ReplicaSet, scheduler, ServiceAccount and its token; kwok says that
pods run. What is done here is what the node would do: start the container with what its pod says, start it
again when it ends or its liveness probe fails, say whether it is ready, ask it to end when the pod is deleted, and
give it a new token before the old one expires.
"""

import asyncio
import shutil
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from dovetail.model.values.json import Json
from testbed.container import ACCOUNT, Surroundings, start_container
from testbed.plane import KUBELET_ALIVE, KUBELET_LABEL, ApiClient, PlaneState
from testbed.pod_network import PodNetwork
from tests.cluster.system.probes import Probe, probes_of

WORKERS = "app.kubernetes.io%2Fcomponent%3Dworker"
NODE = "system"
LOOK_SECONDS = 0.3
TOKEN_SECONDS = 600  # the shortest that the API server gives
OURS_TO_SAY: Final = {"dovetail.test/ready": "never"}  # annotations of pods whose readiness kwok leaves to us


@dataclass(slots=True, kw_only=True)
class Container:
    """One pod's container."""

    pod: Json
    around: Surroundings
    process: "subprocess.Popen[bytes]"
    probes: dict[str, Probe]
    leaves: bool = False

    @property
    def name(self) -> str:
        return str(self.pod["metadata"]["name"])

    @property
    def ready(self) -> bool:
        return self.probes["readinessProbe"].passes

    def start(self) -> None:
        """Once more."""
        self.process, self.probes = start_container(self.pod, self.around), probes_of(self.pod, self.around)


@dataclass(slots=True, kw_only=True)
class Kubelet:
    """The node on which the workers run."""

    plane: PlaneState
    api: ApiClient
    namespace: str
    image: Path
    folder: Path
    servers: tuple[str, ...] = ()  # URLs and addresses of what the pods call, all on the machine's loopback
    containers: dict[str, Container] = field(default_factory=dict)  # by the pod's uid
    ended: list[tuple[str, int]] = field(default_factory=list)  # containers of deleted pods: name, exit code
    killed: list[str] = field(default_factory=list)  # pods whose liveness probe failed, once for each time

    async def join(self) -> None:
        """A node that is nobody's but the workers'."""
        taint = {"key": "CriticalAddonsOnly", "effect": "NoSchedule"}
        room = {"cpu": "32", "memory": "64Gi", "pods": "110"}
        labels = {KUBELET_LABEL: KUBELET_ALIVE, "kubernetes.io/os": "linux", "kubernetes.io/hostname": NODE}
        body: Json = {"metadata": {"name": NODE, "labels": labels}, "spec": {"taints": [taint]}}
        assert (await self.api.post("/api/v1/nodes", body)).status == 201
        status = {"status": {"capacity": room, "allocatable": room}}
        assert (await self.api.patch(f"/api/v1/nodes/{NODE}/status", status)).status == 200

    async def run(self) -> None:
        """For as long as it is not cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Make what runs what the pods say."""
        path = f"/api/v1/namespaces/{self.namespace}/pods?labelSelector={WORKERS}"
        pods = {pod["metadata"]["uid"]: pod for pod in (await self.api.get(path)).body.get("items") or []}
        for uid, pod in pods.items():
            leaves = "deletionTimestamp" in pod["metadata"]
            if uid not in self.containers and not leaves and pod["spec"].get("nodeName") == NODE:
                await self._start(uid, pod)
        for uid, container in list(self.containers.items()):
            gone = uid not in pods or "deletionTimestamp" in pods[uid]["metadata"]
            await self._tend(uid, container, gone=gone)
            if not gone:
                await self._probe(container, pods[uid])

    async def _start(self, uid: str, pod: Json) -> None:
        folder = self.folder / uid
        account = folder / "account"
        account.mkdir(parents=True)
        folder.chmod(0o755)
        shutil.copyfile(self.plane.folder / "pki" / "ca.crt", account / "ca.crt")
        (account / "namespace").write_text(self.namespace)
        await self.write_token(pod, account)
        server = urlsplit(self.plane.server)
        called = (self.plane.server, *self.servers)
        network = PodNetwork(ports={int(each.rpartition(":")[2].strip("/")) for each in called})
        around = Surroundings(
            image=self.image,
            folder=folder,
            files={ACCOUNT: account},
            environment={"KUBERNETES_SERVICE_HOST": str(server.hostname), "KUBERNETES_SERVICE_PORT": str(server.port)},
            network=await network.__aenter__(),
        )
        running = start_container(pod, around)
        self.containers[uid] = Container(pod=pod, around=around, process=running, probes=probes_of(pod, around))

    async def write_token(self, pod: Json, account: Path) -> None:
        """A token of the pod's ServiceAccount, in the place of the one before."""
        path = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/{pod['spec']['serviceAccountName']}/token"
        answer = await self.api.post(path, {"spec": {"expirationSeconds": TOKEN_SECONDS}})
        assert answer.status == 201, answer.text
        (account / "token").write_text(answer.body["status"]["token"])

    async def rotate_tokens(self) -> None:
        """New tokens for all that run."""
        for container in self.containers.values():
            await self.write_token(container.pod, container.around.files[ACCOUNT])

    async def _tend(self, uid: str, container: Container, *, gone: bool) -> None:
        code = container.process.poll()
        if gone and code is not None:
            self.ended.append((container.name, code))
            del self.containers[uid]
            await _without_network(container)
        elif gone and not container.leaves:
            container.leaves = True
            self.signal(container, signal.SIGTERM)
        elif code is not None:
            container.start()

    async def _probe(self, container: Container, pod: Json) -> None:
        """Ask what is to be asked now; kill what is not alive; write what is new into the pod's status."""
        await asyncio.gather(*[probe.ask() for probe in container.probes.values()])
        if container.probes["livenessProbe"].fails:
            self.killed.append(container.name)
            self.signal(container, signal.SIGTERM)
            await asyncio.to_thread(container.process.wait)
        status = pod.get("status") or {}
        shown = {one["type"]: one["status"] for one in status.get("conditions") or []}.get("Ready")
        said = str(container.ready)
        if status.get("phase") == "Running" and shown != said:
            conditions = [{"type": name, "status": said} for name in ("ContainersReady", "Ready")]
            path = f"/api/v1/namespaces/{self.namespace}/pods/{container.name}/status"
            answer = await self.api.patch(path, {"status": {"conditions": conditions}}, "strategic")
            assert answer.status in {200, 404}, answer.text

    def signal(self, container: Container, number: signal.Signals) -> None:
        """To the container's own process, not to what holds its namespaces."""
        outer = container.process.pid
        children = Path(f"/proc/{outer}/task/{outer}/children")
        inner = [int(pid) for pid in children.read_text().split()] if children.exists() else []
        for pid in inner:
            subprocess.run(["kill", f"-{number.value}", str(pid)], check=False)

    def kill_all(self) -> None:
        """Kill -9, as a kernel does that is out of memory."""
        for container in self.containers.values():
            self.signal(container, signal.SIGKILL)

    async def stop(self) -> None:
        """End everything that runs."""
        for container in self.containers.values():
            container.process.kill()
            container.process.wait()
            await _without_network(container)


async def _without_network(container: Container) -> None:
    if container.around.network is not None:
        await container.around.network.close()
