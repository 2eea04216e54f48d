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

import yaml

from dovetail.model.values.json import Json
from testbed.plane import ApiClient, PlaneError
from testbed.plane.network import ClusterNetwork

SERVICE: Final = Path(__file__).resolve().parents[1] / "deploy" / "kubernetes" / "service.yaml"
NAMESPACE: Final = "dovetail"
SPACE: Final = f"/api/v1/namespaces/{NAMESPACE}"
POD: Final = "dovetail-0"
POD_ADDRESS: Final = "10.128.200.1"
PORTS: Final = {"http-metrics": 8080, "http-api": 8082}  # one port of the worker answers for both
READY_SECONDS: Final = 90.0
POLL_SECONDS: Final = 0.05


async def make_service(api: ApiClient) -> None:
    """The Service of deploy/kubernetes and a pod that stands for the worker, at an address of the cluster's network.

    No scheduler looks at the pod, so that nothing is launched for it.
    """
    await _create(api, "/api/v1/namespaces", {"kind": "Namespace", "metadata": {"name": NAMESPACE}})
    [service] = yaml.safe_load_all(SERVICE.read_text())
    del service["spec"]["selector"]  # no pod of this plane runs a worker
    await _create(api, f"{SPACE}/services", service)
    spec = {"schedulerName": "nobody", "containers": [{"name": "worker", "image": "none"}]}
    await _create(api, f"{SPACE}/pods", {"kind": "Pod", "metadata": {"name": POD}, "spec": spec})
    status = {"phase": "Running", "podIP": POD_ADDRESS, "podIPs": [{"ip": POD_ADDRESS}]}
    await api.patch(f"{SPACE}/pods/{POD}/status", {"status": status})
    target = {"kind": "Pod", "namespace": NAMESPACE, "name": POD}  # the proxy insists on a pod of that address
    subset = {
        "addresses": [{"ip": POD_ADDRESS, "targetRef": target}],
        "ports": [{"name": name, "port": port} for name, port in PORTS.items()],
    }
    body = {"kind": "Endpoints", "metadata": {"name": NAMESPACE}, "subsets": [subset]}
    await _create(api, f"{SPACE}/endpoints", body)


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
