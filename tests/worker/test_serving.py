"""A worker that ends by itself: the process waits where Temporal is the reason, and ends where it is not."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dovetail.cli.demo.temporal_server import free_ports
from dovetail.connection import presence
from dovetail.connection.presence import TemporalPresence
from dovetail.model import names
from dovetail.model.values.json import Json
from dovetail.ports.clock import SameClock
from dovetail.settings.settings import read_settings
from dovetail.telemetry.metrics.karpenters.pod_times import PodTimes
from dovetail.worker import run, task_queues
from dovetail.worker.otlp.observing import Observed
from dovetail.worker.self_watch import SelfWatch
from dovetail.worker.singletons import Singletons
from dovetail.worker.unanswered import Unanswered
from testbed.simulated_world import SimulatedWorld
from tests.system.test_temporal_away import ask
from tests.waiting import until
from worlds.fakes import on_duty

LOOK_SECONDS = 0.1


@dataclass
class Poller:
    """The SDK's worker of one queue."""

    fails: Exception | None = None
    hangs: bool = False
    told: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: bool = False

    async def run(self) -> None:
        if self.fails is not None:
            raise self.fails
        try:
            await (asyncio.Event() if self.hangs else self.told).wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise

    async def shutdown(self) -> None:
        self.told.set()
        if self.hangs:
            await asyncio.Event().wait()


class Presence(TemporalPresence):
    """Answers what it is told."""

    def __init__(self, there: bool) -> None:
        super().__init__("c")
        self.there = there

    async def look(self) -> bool:
        return self.there


class Wired:
    """A wiring without a world."""

    settings = read_settings({"CLUSTER_NAME": "c"})

    observed = Observed()
    times = PodTimes(duties=on_duty())

    class world:  # noqa: N801
        clock = SameClock()
        notices = view = catalogues = None
        cluster_uid = "uid"
        why_unfit = staticmethod(str)

    def activities(self, roles: object) -> dict[str, list[Any]]:
        return {"control": [], "waits": []}


async def served(monkeypatch: pytest.MonkeyPatch, pollers: list[Poller], there: bool, stop: asyncio.Event) -> None:
    left = list(pollers)

    async def nothing(*given: object) -> int:
        return 0

    monkeypatch.setattr(task_queues, "queue_worker", lambda *given: left.pop(0))
    monkeypatch.setattr(task_queues, "end_lost_steps", nothing)
    monkeypatch.setattr(Singletons, "watch", nothing)
    monkeypatch.setattr(Unanswered, "watch", nothing)
    wiring: Any = Wired()
    view: Any = None
    client: Any = None
    refused = asyncio.get_running_loop().create_future()
    await task_queues.serve_tasks(
        client, wiring, SelfWatch(view=view, why_unfit=str, presence=Presence(there)), stop, refused
    )


async def test_a_poller_that_ends_while_temporal_is_away_ends_the_others_and_not_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its namespace is gone, its right was taken: the caller connects anew as soon as that has passed."""
    well = Poller()
    await served(monkeypatch, [Poller(RuntimeError("namespace not found")), well], False, asyncio.Event())
    assert well.told.is_set()


async def test_a_poller_that_ends_while_temporal_answers_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match="a bug"):
        await served(monkeypatch, [Poller(RuntimeError("a bug")), Poller()], True, asyncio.Event())


async def test_a_stop_ends_the_process_though_nobody_takes_the_last_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_queues, "GRACE", {"control": 0.05})
    monkeypatch.setattr(task_queues, "FLUSH_SECONDS", 0.05)
    stop, stuck = asyncio.Event(), Poller(hangs=True)
    stop.set()
    async with asyncio.timeout(60):
        await served(monkeypatch, [Poller(), stuck], False, stop)
    assert stuck.cancelled


def body(kind: str, version: str, name: str, **fields: Any) -> Json:
    always = {"name": name, "uid": f"uid-{name}", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"apiVersion": version, "kind": kind, "metadata": {**always, **fields.pop("metadata", {})}, **fields}


def a_standing_node(world: SimulatedWorld) -> None:
    """A claim, its node and a pod on it, as they stand when all is well."""
    done = [
        {"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for kind in (names.LAUNCHED, names.REGISTERED_CONDITION, names.INITIALIZED_CONDITION, names.READY)
    ]
    mine: Json = {"labels": {names.NODE_POOL: "pool"}, "finalizers": [names.TERMINATION_FINALIZER]}
    reference = {"group": "dovetail.sh", "kind": "EmbeddedNodeClass", "name": "default"}
    status: Json = {"providerID": "embedded:///a/i-1", "nodeName": "node-1", "conditions": done}
    spec: Json = {"nodeClassRef": reference, "requirements": []}
    world.put_raw(body("NodeClaim", "karpenter.sh/v1", "pool-1", metadata=mine, spec=spec, status=status))
    ready = [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}]
    world.put_raw(
        body(
            "Node",
            "v1",
            "node-1",
            metadata=mine,
            spec={"providerID": "embedded:///a/i-1"},
            status={"conditions": ready},
        )
    )
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
    pod: Json = {"nodeName": "node-1", "containers": [{"name": "main", "image": "main:1"}]}
    of_pod: Json = {"namespace": "default", "ownerReferences": [owner]}
    world.put_raw(body("Pod", "v1", "web-1", metadata=of_pod, spec=pod, status={"phase": "Running"}))


async def test_the_whole_worker_without_temporal_waits_drains_what_leaves_and_ends_when_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """No server at all: settings, world and stand-in as `dovetail worker` puts them together."""
    monkeypatch.setattr(presence, "AWAY_AFTER", 0.5)
    monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
    world = SimulatedWorld.create(tmp_path / "world.db")
    a_standing_node(world)
    world.delete("NodeClaim", "pool-1")
    stop = asyncio.Event()
    settings = read_settings({"CLUSTER_NAME": "c", "DOVETAIL_WORLD": str(tmp_path / "world.db")})
    serving = asyncio.create_task(run.serve(settings, stop))

    def evicted() -> bool:
        return any("evict" in entry.operation for entry in world.ledger())

    deadline = time.monotonic() + 60
    while not evicted():
        assert time.monotonic() < deadline and not serving.done()
        await asyncio.sleep(LOOK_SECONDS)
    node = world.get("Node", "node-1")
    assert node is not None
    assert [taint["key"] for taint in node["spec"]["taints"]] == [names.DISRUPTED_TAINT]
    assert world.get("NodeClaim", "pool-1") is not None, "the rest is its workflow's"
    said = [record.message for record in caplog.records if "waits until it answers" in record.message]
    assert len(said) == 1 and said[0].startswith("no Temporal server at 127.0.0.1:1")

    stop.set()
    async with asyncio.timeout(60):
        await serving
    world.close()


PAGE = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
IN_PLACE: dict[str, tuple[bool, bytes]] = {  # whether it reads before it closes, and what it says
    "closes at once": (False, b""),
    "closes what it has read": (True, b""),
    "a page": (True, PAGE),
}


@asynccontextmanager
async def in_the_place_of_temporal(how: str) -> AsyncIterator[str]:
    """The address of a load balancer without a target, or of a sidecar, while Temporal is away."""
    reads, says = IN_PLACE[how]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if reads:
            await reader.read(1)
        writer.write(says)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize("tls", ["", "true"])
@pytest.mark.parametrize("how", IN_PLACE)
async def test_the_whole_worker_waits_where_something_before_temporal_takes_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, how: str, tls: str
) -> None:
    """What could be wrong with the settings is said meanwhile."""
    monkeypatch.setattr(presence, "AWAY_AFTER", 0.0)
    SimulatedWorld.create(tmp_path / "world.db").close()
    [port] = free_ports(1)
    given = {"CLUSTER_NAME": "c", "DOVETAIL_WORLD": str(tmp_path / "world.db"), "HEALTH_PROBE_PORT": str(port)}
    stop = asyncio.Event()
    async with in_the_place_of_temporal(how) as address:
        monkeypatch.setenv("TEMPORAL_ADDRESS", address)
        monkeypatch.setenv("TEMPORAL_TLS", tls or "false")
        serving = asyncio.create_task(run.serve(read_settings(given), stop))
        await until(lambda: serving.done() or "waits until it answers" in caplog.text, 60, "it says that it waits")
        assert not serving.done(), serving.exception()
        status, text = await ask(port, "/readyz")
        stop.set()
        await serving

    [said] = [record.message for record in caplog.records if "waits until it answers" in record.message]
    assert said.startswith(f"Temporal at {address}: ") and "TEMPORAL_TLS" in said
    assert status == 503 and f"Temporal at {address}: " in text and "TEMPORAL_TLS" in text
