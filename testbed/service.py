"""The Service behind which the commands find a worker that runs beside the plane, on loopback.

`python -m testbed.service PLANE-FOLDER PORT` plays the cluster's network for it until it is stopped; tests
play it themselves.
"""

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import aiohttp
import yaml

from dovetail.model.values.json import Json
from testbed.plane import KUBELET_ALIVE, KUBELET_LABEL, ApiClient, PlaneError
from testbed.plane.network import ClusterNetwork

SERVICE: Final = Path(__file__).resolve().parents[1] / "deploy" / "kubernetes" / "service.yaml"
NAMESPACE: Final = "dovetail"
SPACE: Final = f"/api/v1/namespaces/{NAMESPACE}"
POD: Final = "dovetail-0"
NODE: Final = "workers"
POD_ADDRESS: Final = "10.128.200.1"
PORTS: Final = {"http-metrics": 8080, "http-api": 8082}  # one port of the worker answers for both
READY_SECONDS: Final = 90.0
POLL_SECONDS: Final = 0.05


async def make_service(api: ApiClient) -> None:
    """The Service of deploy/kubernetes, and a pod on a node of its own that stands for the worker, at an address of the
    cluster's network.

    What the Service leads to is for the controllers of endpoints to say. The pod is not ready until `kubelet_asks`
    finds it so; it runs before it is on the node, so that kwok leaves it as it is.
    """
    await _create(api, "/api/v1/namespaces", {"kind": "Namespace", "metadata": {"name": NAMESPACE}})
    [service] = yaml.safe_load_all(SERVICE.read_text())
    await _create(api, f"{SPACE}/services", service)
    taint = {"key": "CriticalAddonsOnly", "effect": "NoSchedule"}
    node = {"metadata": {"name": NODE, "labels": {KUBELET_LABEL: KUBELET_ALIVE}}, "spec": {"taints": [taint]}}
    await _create(api, "/api/v1/nodes", {"kind": "Node", **node})
    ports = [{"name": name, "containerPort": port} for name, port in PORTS.items()]
    spec = {"schedulerName": "nobody", "containers": [{"name": "worker", "image": "none", "ports": ports}]}
    meta = {"name": POD, "labels": service["spec"]["selector"]}
    await _create(api, f"{SPACE}/pods", {"kind": "Pod", "metadata": meta, "spec": spec})
    status = {"phase": "Running", "podIP": POD_ADDRESS, "podIPs": [{"ip": POD_ADDRESS}]}
    await api.patch(f"{SPACE}/pods/{POD}/status", {"status": status})
    await _say_ready(api, ready=False)
    bound = {"kind": "Binding", "metadata": {"name": POD}, "target": {"kind": "Node", "name": NODE}}
    await _create(api, f"{SPACE}/pods/{POD}/binding", bound)
    await api.wait_for(f"{SPACE}/endpoints/{service['metadata']['name']}", lambda found: POD_ADDRESS in found.text)


async def remove_pod(api: ApiClient) -> None:
    """With its node. The Service stays, and leads nowhere."""
    await api.delete(f"{SPACE}/pods/{POD}", {"gracePeriodSeconds": 0})
    await api.delete(f"/api/v1/nodes/{NODE}")


async def kubelet_asks(api: ApiClient, url: str) -> bool:
    """What a kubelet does again and again: ask the worker whether it is ready, and say in the pod's status what it
    answers."""
    try:
        async with aiohttp.ClientSession() as session, session.get(f"{url}/readyz") as answer:
            ready = answer.status < 400
    except aiohttp.ClientError:
        ready = False
    await _say_ready(api, ready=ready)
    return ready


async def _say_ready(api: ApiClient, *, ready: bool) -> None:
    conditions = [{"type": name, "status": str(ready)} for name in ("ContainersReady", "Ready")]
    answer = await api.patch(f"{SPACE}/pods/{POD}/status", {"status": {"conditions": conditions}}, "strategic")
    if answer.status != 200:
        raise PlaneError(f"pod {POD}: {answer.status} {answer.text[:300]}")


def network(plane_folder: Path, port: int) -> ClusterNetwork:
    """Leads the pod's ports to the worker's on loopback."""
    return ClusterNetwork(_socket(plane_folder), {f"{POD_ADDRESS}:{each}": port for each in PORTS.values()})


async def network_plays(plane_folder: Path, process: "subprocess.Popen[bytes]") -> None:
    """Wait until the process that plays the network accepts calls; until then the API server answers 503."""
    deadline = time.monotonic() + READY_SECONDS
    while not await _takes_calls(_socket(plane_folder)):
        if process.poll() is not None:
            raise PlaneError(f"the cluster's network ended with {process.returncode}")
        if time.monotonic() > deadline:
            raise PlaneError(f"the cluster's network takes no calls after {READY_SECONDS:.0f} s")
        await asyncio.sleep(POLL_SECONDS)


async def _takes_calls(socket: Path) -> bool:
    try:
        _, writer = await asyncio.open_unix_connection(str(socket))
    except (FileNotFoundError, ConnectionRefusedError):  # the second: one that an earlier process left behind
        return False
    writer.close()
    return True


def _socket(plane_folder: Path) -> Path:
    return plane_folder / "network.sock"


async def _create(api: ApiClient, path: str, body: Json) -> None:
    answer = await api.post(path, {"apiVersion": "v1", **body})
    if answer.status not in {201, 409}:
        raise PlaneError(f"{path}: {answer.status} {answer.text[:300]}")


async def _play(plane_folder: Path, port: int) -> None:
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    async with network(plane_folder, port):
        await stopped.wait()


if __name__ == "__main__":
    asyncio.run(_play(Path(sys.argv[1]), int(sys.argv[2])))
