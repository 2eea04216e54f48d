"""A worker before a large cluster that is alive: `python -m acceptance.bench.alive [NODES [SECONDS]]`.

Twenty pods a node, all of it full, so that nothing is to be done but to see that. Kubelets write the status of their
Nodes every five minutes, each at a time of its own; and each second a pod is made, bound, runs, and goes a minute
later. Their Leases change every ten seconds, but no worker watches them. The worker is a process of its own
with its Temporal server; its cloud is kwok, so that nothing is asked of AWS. `--workers 2` starts a second one beside,
and prints the figures of each: the first has the waits.

Printed: the worker's share of a core over those seconds, what it wrote, and how late its event loop was. The share is
of this machine at this moment; `--quiet` has neither kubelets nor pods, to compare.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from acceptance.bench.alive.fleet import NODES, PODS, Fleet
from acceptance.bench.alive.server import Cluster, serving
from acceptance.bench.worker.load import WorkerLoad
from dovetail.cli.demo.temporal_server import free_ports, start_temporal, stop_process

SIZE: Final = 5000
SECONDS: Final = 180.0
SETTLING_SECONDS: Final = 90.0  # the first looks, and what they write
PATIENCE: Final = 600.0
STATUS_SECONDS: Final = 300.0  # of a kubelet, where nothing changes
LIFE_SECONDS: Final = 60  # of a pod
TICK: Final = 0.05


async def kubelets(cluster: Cluster, fleet: Fleet) -> None:
    """Each writes its status every five minutes."""
    began, done = time.monotonic(), 0
    while True:
        due = int((time.monotonic() - began) * fleet.nodes / STATUS_SECONDS)
        for number in range(done, due):
            cluster.put(NODES, fleet.beaten(number % fleet.nodes, time.time()))
        done = due
        await asyncio.sleep(TICK)


async def pods(cluster: Cluster, fleet: Fleet) -> None:
    """One comes each second, and one goes."""
    lives: deque[int] = deque()
    number = 0
    while True:
        cluster.put(PODS, fleet.passing(number, bound=False, time=time.time()))
        await asyncio.sleep(0.1)
        cluster.put(PODS, fleet.passing(number, bound=True, time=time.time()))
        await asyncio.sleep(0.4)
        cluster.put(PODS, fleet.passing(number, bound=True, runs=True, time=time.time()))
        lives.append(number)
        if len(lives) > LIFE_SECONDS:
            gone = lives.popleft()
            cluster.put(PODS, fleet.passing(gone, bound=True, runs=True, leaves=True, time=time.time()))
            cluster.remove(PODS, fleet.key_of_passing(gone))
        number += 1
        await asyncio.sleep(0.5)


@asynccontextmanager
async def working(folder: Path, kubeconfig: Path, temporal: str) -> AsyncIterator[tuple[int, int]]:
    """A worker process that serves: its process and its port."""
    (port,) = free_ports(1)
    settings = {
        "KUBECONFIG": str(kubeconfig),
        "CLUSTER_NAME": "alive",
        "TEMPORAL_ADDRESS": temporal,
        "DOVETAIL_CLOUD": "kwok",
        "METRICS_PORT": str(port),
        "DISABLE_CLUSTER_STATE_OBSERVABILITY": "true",  # a page of metrics would cost more than what is measured
        "LOG_FORMAT": "text",
    }
    folder.mkdir()
    log = folder / "worker.log"
    with log.open("wb") as out:
        command = [sys.executable, "-m", "dovetail.cli.main", "worker"]
        process = subprocess.Popen(command, env={**os.environ, **settings}, stdout=out, stderr=out)
    try:
        async with asyncio.timeout(PATIENCE):
            while "serving cluster" not in log.read_text():
                if process.poll() is not None:
                    raise RuntimeError(f"no worker serves: {log.read_text()[-2000:]}")
                await asyncio.sleep(0.2)
        yield process.pid, port
    finally:
        await asyncio.to_thread(stop_process, process)


async def loads(started: Sequence[tuple[int, int]]) -> list[WorkerLoad]:
    """What each worker has used so far."""
    return [await asyncio.to_thread(WorkerLoad.of, pid, port) for pid, port in started]


async def run(folder: Path, nodes: int, seconds: float, *, quiet: bool, workers: int) -> None:
    """Start, settle, measure."""
    fleet, cluster = Fleet(nodes=nodes, made=time.time() - 86400.0), Cluster(now=time.time())
    for collection, body in fleet.objects():
        cluster.put(collection, body)
    temporal = await start_temporal(folder)
    try:
        async with serving(cluster, folder) as kubeconfig, AsyncExitStack() as ending:
            started = [
                await ending.enter_async_context(working(folder / f"worker-{number}", kubeconfig, temporal.address))
                for number in range(workers)
            ]
            alive = [] if quiet else [asyncio.create_task(each(cluster, fleet)) for each in (kubelets, pods)]
            begun = await loads(started)
            await asyncio.sleep(SETTLING_SECONDS)
            settled = await loads(started)
            for before, after in zip(begun, settled, strict=True):
                size = f"{nodes} nodes, {len(cluster.objects[PODS])} pods"
                print(f"{size}; from its start, {after.since(before)}", flush=True)
            written, cluster.told = dict(cluster.writes), type(cluster.told)()
            await asyncio.sleep(seconds)
            ended = await loads(started)
            told = sum(cluster.told.values()) / (ended[0].at - settled[0].at)
            for before, after in zip(settled, ended, strict=True):
                print(f"{'at rest' if quiet else 'alive'}, {told:.1f} changes a second, {after.since(before)}")
            late = {what: count - written.get(what, 0) for what, count in cluster.writes.items()}
            print(f"written then: { ({what: count for what, count in late.items() if count}) }; before: {written}")
            for each in alive:
                each.cancel()
    finally:
        temporal.stop()


def main() -> None:
    """Print it."""
    parser = argparse.ArgumentParser(prog="python -m acceptance.bench.alive", description=__doc__.splitlines()[0])
    parser.add_argument("nodes", nargs="?", type=int, default=SIZE)
    parser.add_argument("seconds", nargs="?", type=float, default=SECONDS)
    parser.add_argument("--quiet", action="store_true", help="neither kubelets nor pods")
    parser.add_argument("--workers", type=int, default=1, help="so many, one after the other")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        asyncio.run(run(Path(name), asked.nodes, asked.seconds, quiet=asked.quiet, workers=asked.workers))


if __name__ == "__main__":
    main()
