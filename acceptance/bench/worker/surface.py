"""What an operator's surface costs a worker at 5,000 nodes and 100,000 pods.

`python -m acceptance.bench.worker.surface [NODES PODS]`. A worker process beside the cluster (`--beside-karpenter`:
its view, its API and its shadow, and no steps) answers each question of the API three times over HTTP, each on a
cluster that has changed in between; a question that was asked twice would be answered from what is kept. Then the
cluster is one in which there is something to decide, and the shadow decides for two minutes. The flight recorder is
measured beside the decision that it keeps, and an hour of the record as it is written and read, both in a process of
their own.
"""

import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from acceptance.bench.inputs.lifecycle import processor
from dovetail.activities.shared.looks.snapshots import whole_snapshot
from dovetail.adapters.folder.kept_objects import FolderObjects
from dovetail.answers.look.recording import Decision, Recording, packed, unpacked
from dovetail.answers.record.entries import Entry
from dovetail.answers.record.kept import Archive
from dovetail.cli.demo.temporal_server import free_ports, stop_process
from dovetail.disruption.choose import choose
from dovetail.disruption.decision_snapshot import for_disruption
from dovetail.disruption.rounds import never
from dovetail.model import names
from dovetail.model.values.json import Json
from dovetail.model.values.time import format_time
from dovetail.settings.deciding import deciding, disruption_settings
from dovetail.settings.settings import Settings, read_settings
from dovetail.wiring.world import open_world
from testbed.simulated_world import SimulatedWorld

CLUSTER: Final = "bench"
TYPE: Final = "c-4x-amd64-linux"
AMOUNTS: Final = {"cpu": "4", "memory": "8Gi", "pods": "110"}
TIMES: Final = 3
SHADOW_SECONDS: Final = 120.0
PATIENCE: Final = 300.0
ENTRIES: Final = 1000  # of an hour in which much happens
QUIET: Final[Json] = {"consolidateAfter": "Never", "consolidationPolicy": "WhenEmpty"}
BUSY: Final[Json] = {"consolidateAfter": "0s", "consolidationPolicy": "WhenEmptyOrUnderutilized"}
QUESTIONS: Final = (
    *("version", "names", "status", "nodes", "pods", "plan"),
    *("explain/node/node-7", "explain/pod/default/waits", "forecast?for=7d", "shadow"),
)


def a_pool(disruption: Json) -> Json:
    """The only one, found ready."""
    moment = format_time(time.time() - 86400)
    kinds = ("Ready", "ValidationSucceeded", "NodeClassReady")
    reference = {"group": "dovetail.sh", "kind": "EmbeddedNodeClass", "name": "default"}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "pool", "uid": "pool", "creationTimestamp": moment},
        "spec": {"template": {"spec": {"nodeClassRef": reference, "requirements": []}}, "disruption": disruption},
        "status": {"conditions": [_true(kind, moment) for kind in kinds]},
    }


def _true(kind: str, moment: str) -> Json:
    return {"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": moment}


def objects(nodes: int, pods: int) -> Iterator[Json]:
    """Nodes alike with their claims, replicas of fifty workloads on them, and a pod that waits."""
    moment = format_time(time.time() - 86400)
    yield {
        "apiVersion": "dovetail.sh/v1",
        "kind": "EmbeddedNodeClass",
        "metadata": {"name": "default", "uid": "class"},
        "spec": {},
    }
    yield a_pool(QUIET)
    for number in range(nodes):
        yield from _node(number, moment)
    for number in range(pods):
        yield _pod(f"web-{number % 50}-{number:06}", f"web-{number % 50}", "100m", moment, f"node-{number % nodes}")
    yield _pod("waits", "waits", "1000", moment, "")


def _node(number: int, moment: str) -> Iterator[Json]:
    provider = f"embedded:///test-zone-a/i-{number:05}"
    labels = {
        names.NODE_POOL: "pool",
        names.INSTANCE_TYPE: TYPE,
        names.ZONE: f"test-zone-{'abc'[number % 3]}",
        names.CAPACITY_TYPE: "spot" if number % 2 else "on-demand",
        names.ARCH: "amd64",
        names.OS: "linux",
        names.REGISTERED: "true",
        names.INITIALIZED: "true",
        names.HOSTNAME: f"node-{number}",
    }
    kinds = (names.LAUNCHED, names.REGISTERED_CONDITION, names.INITIALIZED_CONDITION, names.READY)
    status = {"capacity": AMOUNTS, "allocatable": AMOUNTS}
    yield {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": f"pool-{number}", "uid": f"c{number}", "labels": labels, "creationTimestamp": moment},
        "spec": {
            "nodeClassRef": {"group": "dovetail.sh", "kind": "EmbeddedNodeClass", "name": "default"},
            "requirements": [],
            "expireAfter": "720h",
        },
        "status": {
            **status,
            "providerID": provider,
            "nodeName": f"node-{number}",
            "conditions": [_true(kind, moment) for kind in kinds],
        },
    }
    yield {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{number}", "uid": f"n{number}", "labels": labels, "creationTimestamp": moment},
        "spec": {"providerID": provider},
        "status": {**status, "conditions": [_true("Ready", moment)]},
    }


def _pod(name: str, app: str, cpu: str, moment: str, node: str) -> Json:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": app, "controller": True}
    requests = {"cpu": cpu, "memory": "128Mi"}
    refused = {**_true("PodScheduled", moment), "status": "False", "reason": "Unschedulable"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "creationTimestamp": moment,
            "labels": {"app": app},
            "ownerReferences": [owner],
        },
        "spec": {
            "containers": [{"name": "main", "resources": {"requests": requests}}],
            **({"nodeName": node} if node else {}),
        },
        "status": {
            "phase": "Running" if node else "Pending",
            "conditions": [_true("Ready", moment) if node else refused],
        },
    }


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker process beside the cluster."""

    pid: int
    port: int

    @property
    def megabytes(self) -> float:
        """That it holds now."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        [held] = [line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")]
        return int(held) / 1024

    def asked(self, path: str) -> tuple[float, float, int]:
        """Seconds until the answer, seconds of its processor meanwhile, bytes."""
        before, began = processor(self.pid), time.monotonic()
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/{path}", timeout=PATIENCE) as answer:
            size = len(answer.read())
        return time.monotonic() - began, processor(self.pid) - before, size


@contextmanager
def working(folder: Path) -> Iterator[Worker]:
    """Until the block ends; it is there once it serves."""
    (port,) = free_ports(1)
    words = ("worker", "--cluster", CLUSTER, "--world", str(folder / "world.db"), "--beside-karpenter")
    log = folder / "worker.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "dovetail.cli.main", *words],
            env={**os.environ, "METRICS_PORT": str(port), "LOG_FORMAT": "text"},
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + PATIENCE
        while "writes nothing" not in log.read_text():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"no worker serves: {log.read_text()[-500:]}")
            time.sleep(0.1)
        yield Worker(process.pid, port)
    finally:
        stop_process(process)


def _touch(world: SimulatedWorld, turn: int) -> None:
    """A pod has moved, so that no answer is the last one."""
    world.patch("Pod", "default/web-0-000000", {"metadata": {"annotations": {"turn": str(turn)}}})


def answers(world: SimulatedWorld, worker: Worker) -> dict[str, Any]:
    """By question: the median of several; and what the process holds before and after."""
    found: dict[str, Any] = {}
    for question in QUESTIONS:
        taken = []
        for turn in range(TIMES):
            _touch(world, turn)
            waited, used, size = worker.asked(question)
            taken.append((used, waited, size))
            time.sleep(max(1.0, 4.5 * waited))  # for as long as an answer is kept
        used, waited, size = (statistics.median(column) for column in zip(*taken, strict=True))
        found[question] = {"cpu_s": round(used, 2), "wall_s": round(waited, 2), "first_s": round(taken[0][1], 2)}
        found[question]["kB"] = round(size / 1024, 1)
    return found


def shadow(world: SimulatedWorld, worker: Worker) -> dict[str, Any]:
    """While there is something to decide, and a pod moves twice a minute."""
    world.put_raw(a_pool(BUSY))
    before, began, turn = processor(worker.pid), time.monotonic(), 100
    while time.monotonic() - began < SHADOW_SECONDS:
        time.sleep(30.0)
        turn += 1
        _touch(world, turn)
    share = (processor(worker.pid) - before) / (time.monotonic() - began)
    return {"share_of_a_core": round(share, 2), "MB": round(worker.megabytes)}


async def flights(file: Path) -> dict[str, Any]:
    """A decision with its inputs: how large, and what it costs to keep and to read it again."""
    settings: Settings = read_settings({}, cluster=CLUSTER, world=file)
    world = await open_world(settings)
    snapshot = for_disruption(await whole_snapshot(world.view, world.catalogues), {}, frozenset())
    began = time.process_time()
    plan = choose(snapshot, disruption_settings(settings), never)
    decided, before = time.process_time() - began, _peak()
    decision = Decision(kind="disruption", plan=plan)
    flight = Recording(cluster=CLUSTER, snapshot=snapshot, settings=deciding(settings), decision=decision)
    began = time.process_time()
    data = packed(flight)
    kept, peak = time.process_time() - began, _peak()
    began = time.process_time()
    unpacked(data)
    read = time.process_time() - began
    await world.close()
    return {
        "decision_cpu_s": round(decided, 2),
        "keep_cpu_s": round(kept, 2),
        "read_cpu_s": round(read, 2),
        "MB": round(len(data) / 2**20, 2),
        "more_memory_MB": round(peak - before),
    }


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def record(folder: Path) -> dict[str, Any]:
    """An hour with many entries, written and read."""
    archive = Archive(FolderObjects(folder / "record"), CLUSTER)
    entries = [_entry(number) for number in range(ENTRIES)]
    began = time.process_time()
    await archive.put(0, entries)
    put = time.process_time() - began
    size = sum(file.stat().st_size for file in (folder / "record").rglob("*.gz"))
    began = time.process_time()
    found = await archive.read([0])
    read = time.process_time() - began
    assert len(found.entries) == ENTRIES
    return {"entries": ENTRIES, "kB": round(size / 1024), "put_cpu_s": round(put, 3), "read_cpu_s": round(read, 3)}


def _entry(number: int) -> Entry:
    return Entry(
        kind="disruption",
        workflow=f"{CLUSTER}/disrupt/{number:08x}",
        run=f"{number * 7919:032x}",
        began=float(number),
        ended=float(number) + 90.0,
        outcome="done",
        reason="Underutilized",
        method="single",
        pool="pool",
        nodes=(f"ip-10-0-{number // 250}-{number % 250}.eu-west-1.compute.internal",),
        claims=(f"pool-{number:05x}",),
        replacements=(f"pool-{number + 1:05x}",),
        pods=12,
        pod_names=tuple(f"default/web-{number}-{i}" for i in range(12)),
        price_before=0.384,
        price_after=0.192,
        saved=0.192,
    )


def main(nodes: int, pods: int) -> Mapping[str, Any]:
    """All of it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        world = SimulatedWorld.create(folder / "world.db")
        world.put_all(objects(nodes, pods))
        found: dict[str, Any] = {"nodes": nodes, "pods": pods}
        with working(folder) as worker:
            found["worker"] = {"start_cpu_s": round(processor(worker.pid), 1), "MB": round(worker.megabytes)}
            found["answers"] = answers(world, worker)
            found["worker"]["MB_after_answers"] = round(worker.megabytes)
            found["shadow"] = shadow(world, worker)
        world.close()
        parts = {part: _apart(part, folder) for part in ("flights", "record")}
        return {**found, **parts}


def _apart(part: str, folder: Path) -> Any:
    """In a process of its own, whose memory is its own."""
    command = [sys.executable, "-m", "acceptance.bench.worker.surface", part, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


if __name__ == "__main__":
    if sys.argv[1:2] == ["flights"]:
        print(json.dumps(asyncio.run(flights(Path(sys.argv[2]) / "world.db"))), flush=True)
    elif sys.argv[1:2] == ["record"]:
        print(json.dumps(asyncio.run(record(Path(sys.argv[2])))), flush=True)
    else:
        given = [int(word) for word in sys.argv[1:3]] or [5000, 100_000]
        print(json.dumps(main(*given), indent=2), flush=True)
    os._exit(0)
