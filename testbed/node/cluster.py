"""A cluster with real nodes: what kind gives a person, with our image on its nodes already."""

import asyncio
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dovetail.model.values.json import Json
from testbed.node.archives import KWOK, archives
from testbed.node.network import HUB
from testbed.node.nodes import Nodes, stop_nodes
from testbed.node.programs import KWOK as KWOK_FOLDER
from testbed.node.programs import cannot_run, find_programs
from testbed.plane import (
    ApiClient,
    Binaries,
    ControlPlane,
    PlaneError,
    PlaneSettings,
    PlaneState,
    TestbedUnavailable,
    find_binaries,
    stop_plane,
)
from testbed.plane.binaries import Say
from testbed.plane.helm import find_helm

ROOT: Final = Path(__file__).resolve().parents[2]
MOST: Final = 3
# As upstream's: a machine that compiles something keeps a kubelet waiting.
PATIENCE: Final = PlaneSettings(node_grace_seconds=40, led_in_at=HUB)
# The manifests of a release of kwok, by its names of them.
_KWOK_PARTS: Final = {"kwok.yaml": "kwok", "stage-fast.yaml": "stage/fast"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Where all of it is."""

    folder: Path
    plane: PlaneState
    nodes: Nodes

    @property
    def programs(self) -> Path:
        """kubectl and helm, for a PATH."""
        return self.folder / "bin"

    @property
    def kwok(self) -> Path:
        """The manifests of kwok's release, by their names there."""
        return self.folder / "kwok"

    def report(self) -> Json:
        """The one JSON line."""
        pids = {**self.nodes.processes(), **{name: process.pid for name, process in self.plane.processes}}
        return {
            "folder": str(self.folder),
            "kubeconfig": str(self.plane.kubeconfig),
            "kubectl": str(self.plane.kubectl),
            "helm": str(self.programs / "helm"),
            "server": self.plane.server,
            "audit_log": str(self.plane.audit_log),
            "nodes": sorted(self.nodes.numbers),
            "kwok": [str(self.kwok / name) for name in _KWOK_PARTS],
            "pids": pids,
        }

    def lines_to_type(self) -> list[str]:
        """For a person: the first guide from here on."""
        chart = "--set cloud=kwok --set settings.clusterName=kind --set temporal.mode=dev --set image.tag=kind"
        return [
            "source .venv/bin/activate",
            f"export KUBECONFIG={self.plane.kubeconfig} PATH={self.programs}:$PATH",
            *(f"kubectl apply -f {self.kwok / name}" for name in _KWOK_PARTS),
            "helm install dovetail-crd deploy/charts/dovetail-crd",
            f"helm install dovetail deploy/charts/dovetail --namespace dovetail --create-namespace {chart}",
            "kubectl --namespace dovetail rollout status deployment/dovetail",
            "kubectl apply -f deploy/kind/pool.yaml",
            "kubectl apply -f deploy/kind/web.yaml",
            "dovetail top",
        ]


async def start(folder: Path, say: Say, count: int = 1) -> Cluster:
    """All of it, ready for use; where a part does not come up, nothing is left."""
    if why := cannot_run(folder):
        raise TestbedUnavailable(why)
    await stop(folder)
    try:
        return await _start(folder, say, count)
    except BaseException:
        await stop(folder)
        raise


async def stop(folder: Path) -> bool:
    """Without a trace. Whether there was anything."""
    nodes = await stop_nodes(folder)
    return await stop_plane(folder / "plane") or nodes


async def _start(folder: Path, say: Say, count: int) -> Cluster:
    binaries, programs = find_binaries(say), find_programs(say)
    helm = find_helm(say)
    images = await asyncio.to_thread(archives, programs, binaries)
    plane = await ControlPlane(folder / "plane", binaries, PATIENCE).start()
    cluster = Cluster(
        folder=folder, plane=plane, nodes=Nodes(folder=folder, plane=plane, programs=programs, images=images)
    )
    _give_programs(cluster.programs, {"kubectl": binaries.path("kubectl"), "helm": helm})
    _write_kwok(cluster.kwok, programs / KWOK_FOLDER, binaries)
    await cluster.nodes.start()
    await _make_volume(cluster)
    for number in range(1, count + 1):
        cluster.nodes.boot(f"node-{number}")
    for name in cluster.nodes.numbers:
        await cluster.nodes.until_ready(name)
    return cluster


def _give_programs(folder: Path, programs: dict[str, Path]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, program in programs.items():
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(program)


def _write_kwok(folder: Path, parts: Path, binaries: Binaries) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, part in _KWOK_PARTS.items():
        command = [str(binaries.path("kubectl")), "kustomize", str(parts / part)]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        (folder / name).write_text(text.replace(f"image: {KWOK.partition(':')[0]}\n", f"image: {KWOK}\n"))


async def _make_volume(cluster: Cluster) -> None:
    """One is there to be claimed, as kind's provisioner would make it: a folder that anybody may write to."""
    place = cluster.folder / "nodes" / "volume"
    place.mkdir(parents=True)
    place.chmod(0o777)
    spec = {
        "capacity": {"storage": "10Gi"},
        "accessModes": ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain",
        "hostPath": {"path": str(place)},
    }
    async with ApiClient(cluster.plane.kubeconfig, user_agent="dovetail-testbed") as api:
        answer = await api.post("/api/v1/persistentvolumes", {"metadata": {"name": "first"}, "spec": spec})
        if answer.status != 201:
            raise PlaneError(f"a volume: {answer.status} {answer.text[:300]}")
