"""The demo's stage on any machine: an embedded world in one file, moved by a process of its own."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from dovetail.cli.demo.stage import Manifests
from dovetail.cli.demo.temporal_server import TemporalServer, free_ports, start_temporal, stop_process
from dovetail.model.values.json import Json
from dovetail.wiring.world import SIMULATED_PLAYER, create_simulated_world

NODE_CLASS_REF = {"group": "dovetail.sh", "kind": "EmbeddedNodeClass", "name": "default"}


class EmbeddedStage:
    """One folder, one file, two servers."""

    def __init__(self, folder: Path, moves: bool) -> None:
        self.folder = folder.resolve()
        self.cluster = "demo"
        self.moves = moves
        self.file = self.folder / "world.db"
        self.world = create_simulated_world(self.file)
        self.player: subprocess.Popen[bytes] | None = None
        self.temporal: TemporalServer | None = None
        self.workers: list[subprocess.Popen[bytes]] = []
        self.temporal_address = self.temporal_ui = self.url = ""
        self.temporal_binary = Path()
        self.manifests = Manifests(
            node_class={
                "apiVersion": "dovetail.sh/v1",
                "kind": "EmbeddedNodeClass",
                "metadata": {"name": "default"},
                "spec": {},
            },
            node_class_ref=NODE_CLASS_REF,
            requirements=[
                {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
                {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
                {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
            ],
        )

    async def prepare(self) -> list[str]:
        play = [sys.executable, "-m", SIMULATED_PLAYER, str(self.file), "--parent", str(os.getpid())]
        self.player = self._spawn("player.log", play)
        self.temporal = await start_temporal(self.folder)
        self.temporal_address, self.temporal_ui = self.temporal.address, self.temporal.ui
        self.temporal_binary = self.temporal.binary
        return [
            f"an embedded world (cluster, cloud, ledger) in {self.file}",
            f"a Temporal server at {self.temporal_address}, its Web UI at {self.temporal_ui}",
        ]

    async def apply(self, body: Json) -> None:
        self.world.apply(body)

    async def scale(self, deployment: str, replicas: int) -> None:
        self.world.scale(deployment, replicas)

    async def objects(self, kind: str) -> list[Json]:
        return self.world.objects(kind)

    async def live_instances(self) -> int:
        return len(self.world.live_instances())

    async def launches(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for machine in self.world.instances():
            counts[machine.claim_uid] = counts.get(machine.claim_uid, 0) + 1
        return counts

    async def set_boot_delay(self, seconds: float) -> None:
        self.world.set_boot_delay(seconds)

    def looks_by(self) -> dict[str, str]:
        return {
            "TEMPORAL_ADDRESS": self.temporal_address,
            "CLUSTER_NAME": self.cluster,
            "DOVETAIL_WORLD": str(self.file),
            "DOVETAIL_URL": self.url,
        }

    def start_worker(self) -> subprocess.Popen[bytes]:
        command = [
            sys.executable,
            "-m",
            "dovetail.cli.main",
            "worker",
            "--cluster",
            self.cluster,
            "--world",
            str(self.file),
        ]
        (port,) = free_ports(1)  # a killed one may hold its port for a while
        self.url = f"http://127.0.0.1:{port}"
        worker = self._spawn(
            "worker.log",
            command,
            {
                "METRICS_PORT": str(port),
                "DOVETAIL_TEMPORAL_UI": self.temporal_ui,
                "DOVETAIL_MOVES": str(self.moves).lower(),
            },
        )
        self.workers.append(worker)
        return worker

    def _spawn(
        self, log_name: str, command: list[str], variables: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "TEMPORAL_ADDRESS": self.temporal_address, **(variables or {})}
        with (self.folder / log_name).open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)

    async def close(self) -> None:
        for process in [*self.workers, self.player]:
            if process is not None:
                stop_process(process)
        if self.temporal is not None:
            self.temporal.stop()
        self.world.close()
