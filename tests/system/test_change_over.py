"""The change-over of docs/guides/from-karpenter.md, played line by line on clusters that a Karpenter left.

The commands are read out of the guide. Those of `dovetail` run as processes; scaling Karpenter and Dovetail and the
installation start and stop the worker; annotations are written as kubectl writes them. A command that the drill does
not know fails it, so that the guide cannot gain a step that nobody has tried.
"""

import asyncio
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from acceptance.adopt.bystanders import Bystanders
from acceptance.adopt.loading import load
from acceptance.adopt.looking import is_true
from acceptance.adopt.states import read_states
from dovetail.cli.demo.temporal_server import TemporalServer, stop_process
from dovetail.model import names
from testbed.simulated_world import SimulatedWorld
from tests.recorded import MID_FLIGHT
from worlds.loaded.processes import start_process

GUIDE = Path(__file__).parents[2] / "docs/guides/from-karpenter.md"
# At rest; and struck between the mark and the delete of a drifted node, its replacement under way.
STATES = ("launch-08", "drift-13")
ANNOTATED = {"namespace": "Namespace", "nodepool": "NodePool"}
# kubectl's and helm's that only look, or wait for what the drill has waited for already.
LOOKS = ("kubectl get", "kubectl rollout", "kubectl wait", "helm get", "export")
SERVE_SECONDS = 240.0
STILL_SECONDS = 5.0

pytestmark = [pytest.mark.temporal, pytest.mark.soak]


def steps() -> Iterator[tuple[str, list[str]]]:
    """Heading and commands of each part that has any, continued lines joined."""
    for part in re.split(r"^## ", GUIDE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        blocks = re.findall(r"^```sh\n(.*?)^```", part, re.MULTILINE | re.DOTALL)
        if blocks:
            yield part.partition("\n")[0], "".join(blocks).replace("\\\n", " ").splitlines()


@dataclass(kw_only=True)
class Drill:
    """One cluster, with one of the two at work on it, or none."""

    world: SimulatedWorld
    cluster: str
    temporal: TemporalServer
    folder: Path
    running: str = "karpenter"
    worker: "subprocess.Popen[bytes] | None" = None
    ran: list[str] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        given = {"CLUSTER_NAME": self.cluster, "DOVETAIL_WORLD": str(self.folder / "world.db")}
        return {**os.environ, "TEMPORAL_ADDRESS": self.temporal.address, **given}

    async def type(self, line: str) -> None:
        """As a person types it."""
        words = [word for word in shlex.split(line.partition(" > ")[0]) if not word.startswith("--namespace")]
        if words[0] == "kubectl":
            words = [word for word in words if word != "kube-system" or "namespace" in words]
        self.ran.append(words[0])
        if words[0] == "dovetail":
            await self.dovetail(*words[1:])
        elif words[:2] == ["kubectl", "annotate"]:
            pairs = dict(word.split("=", 1) for word in words[4:])
            self.world.patch(ANNOTATED[words[2]], words[3], {"metadata": {"annotations": pairs}})
        elif words[:3] == ["kubectl", "scale", "deployment"]:
            await self.scale(words[3], int(words[4].partition("=")[2]))
        elif words[:3] == ["helm", "install", "dovetail"]:
            await self.scale("dovetail", 2)
        else:
            assert " ".join(words).startswith(LOOKS), f"the drill does not know: {line}"

    async def scale(self, deployment: str, replicas: int) -> None:
        """Karpenter or Dovetail begins or ends; never both at once."""
        assert self.running == ("" if replicas else deployment), f"{self.running} runs"
        self.running = deployment if replicas else ""
        if deployment == "dovetail" and replicas:
            await self.start()
        elif self.worker is not None:
            await asyncio.to_thread(stop_process, self.worker)
            self.worker = None

    async def start(self) -> None:
        """A worker, once it serves."""
        log = self.folder / "worker.log"
        with log.open("ab") as output:
            command = [sys.executable, "-m", "dovetail.cli.main", "worker"]
            self.worker = start_process(command, self.environment, output)
        await until(lambda: "serving cluster" in log.read_text(), SERVE_SECONDS, "the worker serves")

    async def dovetail(self, *words: str) -> str:
        """The command as a process; what it printed."""
        process = await asyncio.create_subprocess_exec(
            *(
                sys.executable,
                "-m",
                "dovetail.cli.main",
                *(word.replace("$CLUSTER_NAME", self.cluster) for word in words),
            ),
            env=self.environment,
            cwd=self.folder,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output = (await process.communicate())[0].decode()
        assert process.returncode == 0, f"dovetail {' '.join(words)}: {output}"
        return output

    def nodes(self) -> set[tuple[str, str]]:
        """Each claim's UID with its instance."""
        claims = self.world.objects("NodeClaim")
        return {(c["metadata"]["uid"], str(c.get("status", {}).get("providerID", ""))) for c in claims}

    def drifted(self) -> set[str]:
        return {c["metadata"]["name"] for c in self.world.objects("NodeClaim") if is_true(c, names.DRIFTED)}


async def until(holds: Callable[[], bool], seconds: float, words: str) -> None:
    ends = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < ends, f"within {seconds:.0f} s it did not come about that {words}"
        await asyncio.sleep(0.5)


async def moving(world: SimulatedWorld) -> None:
    """What else lives in the cluster."""
    bystanders = Bystanders(world)
    while True:
        bystanders.move(time.time())
        await asyncio.sleep(0.5)


@pytest.mark.parametrize("name", STATES)
async def test_the_guide_takes_a_cluster_over_and_gives_it_back(
    name: str, temporal_server: TemporalServer, tmp_path: Path
) -> None:
    state = next(state for state in read_states(MID_FLIGHT) if state.id == name)
    world, _ = load(state, tmp_path / "world.db", time.time())
    drill = Drill(world=world, cluster=f"over-{name}", temporal=temporal_server, folder=tmp_path)
    before, drifted = drill.nodes(), drill.drifted()
    try:
        with world.playing():
            others = asyncio.create_task(moving(world))
            for heading, lines in steps():
                if heading.startswith("6."):
                    await asyncio.sleep(STILL_SECONDS)
                    # The first look has touched nothing; a claim that was on its way may have its instance by now.
                    assert {node for node in before if node[1]} <= drill.nodes()
                    assert {uid for uid, _ in before} <= {uid for uid, _ in drill.nodes()}
                    assert drill.drifted() <= drifted
                for line in lines:
                    await drill.type(line)
            given_back = drill.nodes()
            await asyncio.sleep(STILL_SECONDS)  # the cluster lives on, and nobody of ours touches it
            still, drifted_now = drill.nodes(), drill.drifted()
            others.cancel()
    finally:
        if drill.worker is not None:
            stop_process(drill.worker)
        world.close()

    assert drill.running == "karpenter"
    assert {"dovetail", "kubectl", "helm"} <= set(drill.ran)
    assert drifted_now <= drifted
    assert given_back and still == given_back
