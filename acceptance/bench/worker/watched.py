"""What it costs to be watched: a worker's processor time and memory with all of it on, beside one with all of it off.

`python -m acceptance.bench.worker.watched [PAIRS]`. On: metrics scraped every 15 s, the log as JSON, traces, log and
metrics to a collector on this machine. Off: none of it. Both do the same on simulated clusters of their own: nodes
come, all at once, and go again, and the rest of a minute is idle. By turns in one run, so that a machine that slows
down slows both; the ratio is that of the medians. What the start of the process takes stands apart.
"""

import asyncio
import json
import statistics
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from acceptance.bench.inputs.lifecycle import processor
from dovetail.cli.demo.temporal_server import TemporalServer, free_ports, start_temporal
from testbed.collector import Collector
from worlds.stage.stage import Stage

PODS: Final = 40
TURN_SECONDS: Final = 60.0
SCRAPE_SECONDS: Final = 15.0
PATIENCE: Final = 300.0
AIM: Final = 1.03
PAIRS: Final = 4


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one worker in one turn."""

    start: float  # seconds of processor time until it serves
    cpu: float  # in the turn that follows
    megabytes: float  # at the most


async def turn(folder: Path, temporal: TemporalServer, cluster: str, collector: Collector | None) -> Cost:
    """One worker, watched where there is a collector."""
    stage = Stage(folder=folder, cluster=cluster, temporal=temporal)
    (port,) = free_ports(1)
    settings = {"LOG_FORMAT": "text"}
    if collector is not None:
        settings = {
            "LOG_FORMAT": "json",
            "METRICS_PORT": str(port),
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.start(),
        }
    scraping: asyncio.Task[None] | None = None
    try:
        worker = stage.start_worker(False, **settings)
        await stage.until(lambda: "serving cluster" in (folder / "worker.log").read_text(), PATIENCE, "a worker serves")
        if collector is not None:
            scraping = asyncio.create_task(_scrape(port))
        before, ends = processor(worker.pid), time.monotonic() + TURN_SECONDS
        stage.apply_pool(consolidateAfter="0s", budgets=[{"nodes": "100%"}])
        stage.deploy(PODS)
        await stage.until(lambda: stage.running_pods() == PODS and stage.initialised(PODS), PATIENCE, "all pods run")
        stage.world.scale("web", 0)
        await stage.until(stage.nothing_left, PATIENCE, "nothing is left")
        if time.monotonic() > ends:
            print(f"    {cluster}: {time.monotonic() - ends:.0f} s longer than a turn: the machine is busy", flush=True)
        await asyncio.sleep(max(0.0, ends - time.monotonic()))
        return Cost(start=before, cpu=processor(worker.pid) - before, megabytes=_most_memory(worker.pid))
    finally:
        if scraping is not None:
            scraping.cancel()
            await asyncio.gather(scraping, return_exceptions=True)
        await stage.close()
        if collector is not None:
            collector.close()


async def _scrape(port: int) -> None:
    """As Prometheus would."""
    while True:
        await asyncio.to_thread(_read, f"http://127.0.0.1:{port}/metrics")
        await asyncio.sleep(SCRAPE_SECONDS)


def _read(address: str) -> None:
    with urllib.request.urlopen(address, timeout=SCRAPE_SECONDS) as answer:
        answer.read()


def _most_memory(process: int) -> float:
    """Resident, at its highest."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith("VmHWM:")]
    return int(line.split()[1]) / 1024


async def main(pairs: int) -> int:
    """Turn after turn; the exit code is 1 where the aim was missed."""
    costs: dict[str, list[Cost]] = {"off": [], "on": []}
    with tempfile.TemporaryDirectory(prefix="dovetail-watched-") as name:
        folder = Path(name)
        temporal = await start_temporal(folder)
        try:
            for number in range(pairs):
                for how in ("off", "on") if number % 2 else ("on", "off"):
                    collector = Collector() if how == "on" else None
                    cluster = f"{how}-{number}"
                    costs[how].append(await turn(folder / cluster, temporal, cluster, collector))
                    if collector is not None:
                        assert collector.spans and collector.lines and collector.metrics, "nothing was sent"
                    print(f"    {cluster}: {costs[how][-1]}", flush=True)
        finally:
            await asyncio.to_thread(temporal.stop)
    start, cpu, memory = (
        {how: round(statistics.median(getattr(cost, what) for cost in found), 2) for how, found in costs.items()}
        for what in ("start", "cpu", "megabytes")
    )
    ratio, more = cpu["on"] / cpu["off"], memory["on"] / memory["off"]
    figures = {"start": start, "cpu": cpu, "megabytes": memory}
    print(json.dumps({**figures, "cpu ratio": round(ratio, 3), "memory ratio": round(more, 3)}))
    return 0 if ratio <= AIM and more <= AIM else 1


if __name__ == "__main__":
    status = asyncio.run(main(int(sys.argv[1]) if sys.argv[1:] else PAIRS))
    sys.exit(status)
