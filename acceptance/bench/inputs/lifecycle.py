"""Sixty claims at once, and five hundred nodes that leave at once: the whole product over a simulated world.

Run by `make bench` as inputs of its registry. A worker, a Temporal server and the world's player are processes;
figures come from the world's ledger, from Temporal's histories and from the kernel's account of the worker. Upstream
on a real control plane: 60 claims in a median of 11 to 15 s, 23 to 29 requests a node, 18 to 21 % of them conflicts.
"""

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dovetail.adapters.simulator.cloud.instances import InstanceRow
from dovetail.cli.demo.temporal_server import start_temporal
from dovetail.messages.workflow_ids import claim_owner_id
from dovetail.model import names
from dovetail.model.values.json import Json
from dovetail.model.values.time import format_time
from worlds.stage.stage import Stage, has_condition, node_class, node_pool

Line = dict[str, Any]

CLAIMS: Final = 60
NODES: Final = 500
BLOCKED: Final = 50
PATIENCE: Final = 600.0
TYPE: Final = "c-2x-amd64-linux"


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """How long each node took that could leave, events per termination, processor seconds of the worker."""

    seconds: list[float]
    events: float
    processor: float


def measure(name: str) -> Line:
    """One input of the registry."""
    with tempfile.TemporaryDirectory(prefix="dovetail-bench-") as folder:
        return asyncio.run(INPUTS[name](Path(folder)))


async def _stage(folder: Path) -> Stage:
    server = await start_temporal(folder)
    return Stage(folder=folder, cluster="bench", temporal=server, owns_temporal=True)


async def burst(folder: Path) -> Line:
    """Sixty pods that need a node each."""
    stage = await _stage(folder)
    try:
        worker = stage.start_worker()
        stage.apply_pool(consolidateAfter="Never")
        stage.deploy(CLAIMS)
        seconds = await _initialised(stage)
        used = processor(worker.pid)
        calls = [e for e in stage.writes_of_ours(0.0) if e.operation.startswith("cluster:")]
    finally:
        await stage.close()
    conflicts = sum(entry.outcome.startswith("409") for entry in calls)
    return {
        "input": "lifecycle_burst",
        "pods": CLAIMS,
        "nodes": len(seconds),
        "seconds": round(statistics.median(seconds), 2),
        "last": round(max(seconds), 2),
        "cpu": round(used, 2),
        "requests_per_node": round(len(calls) / len(seconds), 1),
        "conflicts_percent": round(100 * conflicts / len(calls), 2),
    }


async def _initialised(stage: Stage) -> list[float]:
    """From each claim's creation, as the ledger has it, to its node being ready for pods, as an observer sees it."""
    ready: dict[str, float] = {}
    began = time.monotonic()
    while len(ready) < CLAIMS:
        if time.monotonic() - began > PATIENCE:
            raise TimeoutError(f"{len(ready)} of {CLAIMS} nodes after {PATIENCE:.0f} s")
        done = [c["metadata"]["name"] for c in stage.claims() if has_condition(c, names.INITIALIZED_CONDITION)]
        ready.update({name: time.time() for name in done if name not in ready})
        await asyncio.sleep(0.1)
    entries = [e for e in stage.world.ledger() if e.operation == "cluster:create" and e.kind == "NodeClaim"]
    created = {entry.key: entry.at for entry in entries}
    return [ready[name] - created[name] for name in ready]


async def leaving(folder: Path) -> Line:
    """450 nodes alone, then with 50 beside them whose pods a PDB holds."""
    alone = await _leave(folder / "alone", NODES - BLOCKED, 0)
    beside = await _leave(folder / "beside", NODES - BLOCKED, BLOCKED)
    return {
        "input": "lifecycle_leaving",
        "pods": NODES,
        "nodes": len(beside.seconds),
        "seconds": round(statistics.median(beside.seconds), 1),
        "last": round(max(beside.seconds), 1),
        "seconds_alone": round(statistics.median(alone.seconds), 1),
        "last_alone": round(max(alone.seconds), 1),
        "events_per_termination": round(beside.events, 1),
        "cpu": round(beside.processor, 1),
        "cpu_alone": round(alone.processor, 1),
    }


async def _leave(folder: Path, free: int, blocked: int) -> Leaving:
    folder.mkdir()
    stage = await _stage(folder)
    try:
        stage.world.apply(node_class())
        stage.world.apply(node_pool([TYPE], consolidateAfter="Never"))
        stage.world.apply(_no_eviction())
        for number in range(free + blocked):
            _stand(stage, number, held=number >= free)
        worker = stage.start_worker()
        await stage.until(lambda: "serving cluster" in (folder / "worker.log").read_text(), PATIENCE, "a worker serves")
        before, began = processor(worker.pid), time.time()
        for number in range(free + blocked):
            stage.world.delete("NodeClaim", _claim(number))
        seconds = await _gone(stage, free, began)
        return Leaving(seconds=seconds, events=await _events(stage, free), processor=processor(worker.pid) - before)
    finally:
        await stage.close()


async def _gone(stage: Stage, free: int, began: float) -> list[float]:
    """When each node left that no PDB held."""
    wanted, went = {_claim(number) for number in range(free)}, dict[str, float]()
    while len(went) < free:
        if time.time() - began > PATIENCE:
            raise TimeoutError(f"{free - len(went)} nodes stand after {PATIENCE:.0f} s")
        there = {claim["metadata"]["name"] for claim in stage.claims()}
        went.update({name: time.time() - began for name in wanted - there if name not in went})
        await asyncio.sleep(0.2)
    return list(went.values())


async def _events(stage: Stage, free: int) -> float:
    """Events per history of a termination, of a sample."""
    client = await stage.client()
    lengths = []
    for number in range(0, free, max(1, free // 20)):
        found = await client.get_workflow_handle(claim_owner_id(stage.cluster, _claim(number))).describe()
        lengths.append(found.history_length)
    return statistics.mean(lengths)


def processor(process: int) -> float:
    """Seconds of the processor that a process has used, its threads' too."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _claim(number: int) -> str:
    return f"pool-bench-{number}"


def _stand(stage: Stage, number: int, held: bool) -> None:
    """Put a node there with its claim, its instance and a pod."""
    moment, provider_id = format_time(time.time() - 3600), f"embedded:///zone-a/i-{number:05}"
    done = [names.LAUNCHED, names.REGISTERED_CONDITION, names.INITIALIZED_CONDITION, names.READY]
    labels = {names.NODE_POOL: "pool", "dovetail.sh/embeddednodeclass": "default", names.INSTANCE_TYPE: TYPE}
    amounts = {"cpu": "2", "memory": "4Gi", "pods": "32"}
    meta: Json = {"labels": labels, "finalizers": [names.TERMINATION_FINALIZER], "creationTimestamp": moment}
    reference = {"group": "dovetail.sh", "kind": "EmbeddedNodeClass", "name": "default"}
    conditions = [{"type": t, "status": "True", "reason": t, "lastTransitionTime": moment} for t in done]
    status = {"providerID": provider_id, "nodeName": f"node-{number}", "capacity": amounts, "allocatable": amounts}
    stage.world.put_raw(
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": {**meta, "name": _claim(number), "uid": f"claim-{number}", "generation": 1},
            "spec": {"nodeClassRef": reference, "requirements": [], "expireAfter": "Never"},
            "status": {**status, "conditions": conditions},
        }
    )
    ready = [{"type": "Ready", "status": "True", "lastTransitionTime": moment}]
    stage.world.put_raw(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {**meta, "name": f"node-{number}", "uid": f"node-{number}"},
            "spec": {"providerID": provider_id},
            "status": {"capacity": amounts, "allocatable": amounts, "conditions": ready},
        }
    )
    stage.world.put_raw(_pod(number, held))
    stage.world.add_instance(_machine(number, provider_id))


def _pod(number: int, held: bool) -> Json:
    moment = format_time(time.time() - 3000)
    ready = [{"type": "Ready", "status": "True", "lastTransitionTime": moment}]
    requests = {"cpu": "100m", "memory": "64Mi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"pod-{number}",
            "namespace": "default",
            "uid": f"pod-{number}",
            "labels": {"app": "held" if held else "free"},
            "creationTimestamp": moment,
        },
        "spec": {
            "nodeName": f"node-{number}",
            "containers": [{"name": "main", "resources": {"requests": requests}}],
        },
        "status": {"phase": "Running", "startTime": moment, "conditions": ready},
    }


def _machine(number: int, provider_id: str) -> InstanceRow:
    return InstanceRow(
        id=f"i-{number:05}",
        provider_id=provider_id,
        token=None,
        parameters="",
        cluster="bench",
        claim_uid=f"claim-{number}",
        claim_name=_claim(number),
        instance_type=TYPE,
        zone="zone-a",
        capacity_type="on-demand",
        image="",
        annotations="{}",
        user_data="{}",
        state="running",
        launched=time.time() - 3600,
        boots=time.time() - 3600,
        joins=0,
        node=f"node-{number}",
        joined=time.time() - 3600,
        ends=None,
    )


def _no_eviction() -> Json:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "held", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "held"}}, "maxUnavailable": 0},
    }


INPUTS: Final[dict[str, Callable[[Path], Any]]] = {"lifecycle_burst": burst, "lifecycle_leaving": leaving}
