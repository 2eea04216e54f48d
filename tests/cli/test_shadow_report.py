"""`dovetail shadow report` through the front door: a real shadow over a cluster that somebody else looks after.

The cluster, and what Karpenter does there, are files: a node that both would take, one that Karpenter alone takes, one
that it leaves, and a pod for which it launches a larger node than Dovetail would.
"""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from dovetail.answers.serving.api import Api
from dovetail.answers.serving.worker_source import WorkerSource
from dovetail.answers.shadow.shadow import Shadow
from dovetail.cli.main import main
from dovetail.connection.presence import TemporalPresence
from dovetail.model import names
from dovetail.model.values.json import Json
from dovetail.wiring.world import open_world
from testbed.simulated_world import SimulatedWorld
from tests.cli.fleet import Reply, serving_by
from tests.cli.worlds import settings_of
from tests.waiting import until

STORY: Final = Path(__file__).parent / "shadow_story"
SECONDS: Final = 90.0


def act(number: int) -> list[Json]:
    """What the story applies as its so many-th act."""
    [file] = STORY.glob(f"{number}-*.yaml")
    return list(yaml.safe_load_all(file.read_text()))


def takes(world: SimulatedWorld, claim: str, reason: str) -> None:
    """Karpenter marks a claim and deletes it."""
    found = world.get("NodeClaim", claim)
    assert found is not None
    mark = {"type": names.DISRUPTION_REASON, "status": "True", "reason": reason, "message": ""}
    conditions = [*found["status"]["conditions"], {**mark, "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    world.patch("NodeClaim", claim, {"status": {"conditions": conditions}}, "status")
    world.delete("NodeClaim", claim)


class Beside:
    """A worker beside Karpenter: its loops and its API run in a thread, as in a process of their own."""

    def __init__(self, world: SimulatedWorld) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        settings = settings_of(world).model_copy(update={"batch_idle": 0.1})
        self._opened = self.run(open_world(settings))
        self.shadow = Shadow(settings, self._opened)
        self._api = Api(WorkerSource(settings, self._opened, TemporalPresence("demo"), self.shadow))
        self._tasks = self.run(self._begin())

    async def _begin(self) -> list[asyncio.Task[None]]:
        self.shadow.listen()
        return [asyncio.create_task(work()) for work in (self.shadow.watch_nodes, self.shadow.watch_pods)]

    def run(self, awaited: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(awaited, self._loop).result(SECONDS)

    def answer(self, target: str) -> Reply:
        code, content, body = self.run(self._api.answer(target))
        return code, content, body if isinstance(body, str) else body.decode()

    def until(self, seen: Callable[[], object], words: str) -> None:
        """Looked at where the shadow itself runs."""
        self.run(until(lambda: seen() or None, SECONDS - 5, words))

    def ends(self) -> None:
        self.run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.shadow.close()
        await self._opened.close()


@pytest.fixture
def told(tmp_path: Path) -> Iterator[tuple[SimulatedWorld, Path]]:
    """The whole story, and the kubeconfig of whoever asks about it."""
    world = SimulatedWorld.create(tmp_path / "world.db")
    for body in act(1):
        world.apply(body)
    beside = Beside(world)
    try:
        shadow = beside.shadow
        beside.until(lambda: shadow.comparing.looks, "it has decided")
        for body in act(2):
            world.apply(body)
        world.player().settle(0.0)
        beside.until(lambda: shadow._batches, "a batch is open")
        for body in act(3):
            world.apply(body)
        world.patch("Pod", "default/lone", {"spec": {"nodeName": "n9"}})
        beside.until(lambda: shadow.report().launches, "the launch is compared")
        takes(world, "claim-n1", "Empty")
        takes(world, "claim-n3", "Drifted")
        beside.until(lambda: len(shadow.report().departures) >= 2, "both departures are compared")
        with serving_by(tmp_path, beside.answer) as served:
            yield world, served.kubeconfig
    finally:
        beside.ends()


def typed(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert main(words) == 0
    return capsys.readouterr().out


def test_the_report_says_what_both_did_and_what_each_would_have_done_alone(
    told: tuple[SimulatedWorld, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    world, kubeconfig = told
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    monkeypatch.setenv("COLUMNS", "120")
    for name in ("CLUSTER_NAME", "DOVETAIL_WORLD"):
        monkeypatch.delenv(name, raising=False)

    text = typed(["shadow", "report"], capsys)
    found = json.loads(typed(["shadow", "report", "-o", "json"], capsys))
    as_yaml = yaml.safe_load(typed(["shadow", "report", "-o", "yaml"], capsys))

    assert found["kind"] == as_yaml["kind"] == "ShadowReport" and found["cluster"] == "demo"
    ways = {each["node"]: (each["way"], each["dovetail"], each["karpenter"]) for each in found["departures"]}
    assert ways["n1"] == ("both", "Empty", "Empty")
    assert ways["n3"] == ("karpenter", "", "Drifted")
    [launch] = found["launches"]
    assert launch["examples"] == ["default/lone"]
    assert [node["type"] for node in launch["karpenter"]] == ["c-16x-amd64-linux"]
    [ours] = launch["dovetail"]
    assert ours["price"] < launch["karpenter"][0]["price"]
    assert launch["saving"] == pytest.approx(launch["karpenter"][0]["price"] - ours["price"])
    totals = found["totals"]
    assert (totals["launchesUnlike"], totals["departuresAlike"], totals["onlyKarpenter"]) == (1, 1, 1)
    lines = text.splitlines()
    assert "nothing written" in lines[0] and lines[1] == "launches     0 alike, 1 not"
    assert lines[2].startswith("departures   1 alike, 0 for another reason, 1 only Karpenter")
    assert max(map(len, lines)) <= 120
    assert {entry.actor for entry in world.ledger()} <= {"kubectl", "kube-scheduler"}, "the shadow writes nothing"
