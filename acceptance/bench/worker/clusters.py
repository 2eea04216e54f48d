"""What many clusters cost one Temporal namespace, and what it costs to look at all of them.

`python -m acceptance.bench.worker.clusters [CLUSTERS SECONDS]`: so many simulated clusters with two workers each on one
server, idle, and then with one in twenty busy: ten nodes come and go. Printed for a cluster and a minute: the server's
calls by operation and billed actions, its pollers, its share of a core, and how much its database grows. Counts are
exact; a share of a core is that of this machine at this moment.

`python -m acceptance.bench.worker.clusters fleet [CLUSTERS]`: `dovetail fleet` over so many clusters that are played:
each a Caretaker with a report in its memo, and no worker.
"""

import asyncio
import re
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from acceptance.bench.inputs.lifecycle import processor
from dovetail.cli.demo.temporal_server import TemporalServer, start_temporal
from dovetail.connection.pollers import QUEUES, TYPE_ACTIVITY, TYPE_WORKFLOW, pollers_of
from dovetail.messages.inputs import CaretakerInput
from dovetail.messages.reports import REPORT, ClusterReport, ReportedNeed, ReportedWorker
from dovetail.messages.workflow_ids import caretaker_id, task_queue
from dovetail.messages.workflow_types import CARETAKER
from worlds.stage.stage import Stage

CLUSTERS: Final = 10
SECONDS: Final = 180.0
WORKERS: Final = 2
BUSY_SHARE: Final = 20  # one in so many
NODES: Final = 10
SETTLE_SECONDS: Final = 90.0  # the first looks and the first report are no rest
PATIENCE: Final = 900.0
PLAYED: Final = 300
AT_ONCE: Final = 20
_LINE: Final = re.compile(r"^(action|service_requests)\{(.*)\} (\S+)$", re.MULTILINE)
_LABEL: Final = re.compile(r'(action_type|operation)="([^"]*)"')


@dataclass(frozen=True, slots=True)
class Counts:
    """What the server has counted so far."""

    at: float
    actions: Counter[str]
    calls: Counter[str]
    processor: float
    database: int

    @classmethod
    def of(cls, server: TemporalServer) -> "Counts":
        with urllib.request.urlopen(server.metrics) as answer:
            text = answer.read().decode()
        found: dict[str, Counter[str]] = {"action": Counter(), "service_requests": Counter()}
        for name, labels, value in _LINE.findall(text):
            if 'namespace="default"' not in labels or ("service_name" in labels and '"frontend"' not in labels):
                continue
            kind = _LABEL.search(labels)
            found[name][kind[2] if kind else labels] += int(float(value))
        size = sum(file.stat().st_size for file in server.database.parent.glob(f"{server.database.name}*"))
        at, seconds = time.monotonic(), processor(server.process.pid)
        return cls(at, found["action"], found["service_requests"], seconds, size)

    def since(self, before: "Counts", clusters: int) -> str:
        """For a cluster and a minute."""
        seconds = self.at - before.at
        share = 60.0 / seconds / clusters
        calls, actions = self.calls - before.calls, self.actions - before.actions
        by_kind = ", ".join(f"{name} {count * share:.2f}" for name, count in calls.most_common(12))
        billed = ", ".join(f"{name} {count * share:.2f}" for name, count in actions.most_common(6))
        return (
            f"{seconds:.0f} s: {calls.total() * share:.1f} calls ({by_kind}); {actions.total() * share:.2f} actions "
            f"({billed}); {(self.processor - before.processor) / seconds / clusters:.2%} of a core; "
            f"{(self.database - before.database) * share / 1024:.1f} KiB of database"
        )


async def many(folder: Path, clusters: int, seconds: float) -> None:
    """Idle, then with one in twenty busy."""
    server = await start_temporal(folder)
    stages = [Stage(folder=made, cluster=made.name, temporal=server) for made in _folders(folder, clusters)]
    try:
        for stage in stages:
            stage.world.set(boot=35.0, node_ready=5.0, shutdown=45.0, pod_stop=10.0)
            stage.apply_pool()
            for number in range(WORKERS):
                stage.start_worker(False, DOVETAIL_TEMPORAL_HEARTBEATS="cloud", POD_NAME=f"w{number}")
            await stage.until(lambda s=stage: _serving(s), PATIENCE, "its workers serve")  # type: ignore[misc]
        await asyncio.sleep(SETTLE_SECONDS)
        await _idle_and_busy(server, stages, seconds)
    finally:
        for stage in stages:
            await stage.close()
        server.stop()


def _folders(folder: Path, clusters: int) -> list[Path]:
    made = [folder / f"cluster-{number}" for number in range(clusters)]
    for each in made:
        each.mkdir()
    return made


def _serving(stage: Stage) -> bool:
    return (stage.folder / "worker.log").read_text().count("serving cluster") == WORKERS


async def _idle_and_busy(server: TemporalServer, stages: list[Stage], seconds: float) -> None:
    client, clusters = await server.client(), len(stages)
    before = Counts.of(server)
    await asyncio.sleep(seconds)
    idle = Counts.of(server)
    print(f"{clusters} clusters of {WORKERS} workers, for a cluster and a minute")
    print(f"idle, {idle.since(before, clusters)}")
    asked = [(queue, TYPE_ACTIVITY) for queue in QUEUES] + [("control", TYPE_WORKFLOW)]
    polling = [len(await pollers_of(client, task_queue(stages[0].cluster, queue), kind)) for queue, kind in asked]
    print(f"workers that poll, by queue: {dict(zip([*QUEUES, 'workflows'], polling, strict=True))}")
    busy = stages[: max(1, clusters // BUSY_SHARE)]
    for stage in busy:
        stage.deploy(NODES)
    for stage in busy:
        await stage.until(lambda s=stage: s.initialised(NODES), PATIENCE, "its nodes have come")  # type: ignore[misc]
        stage.world.scale("web", 0)
    for stage in busy:
        await stage.until(stage.nothing_left, PATIENCE, "its nodes have gone")
    after = Counts.of(server)
    print(f"{len(busy)} busy ({NODES} nodes come and go), {after.since(idle, clusters)}")


def _report(number: int) -> ClusterReport:
    now = time.time()
    workers = tuple(ReportedWorker(pod=f"dovetail-{n}", version="0.2.0", since=now - 9e4) for n in range(2))
    need = ReportedNeed(about="shop/web-1", what="pending for 9m", since=now, command="dovetail explain pod shop/web-1")
    needs = (need,) * (number % 10 == 0)
    return ClusterReport(
        at=now - number * 10,
        version="0.2.0",
        kubernetes="v1.35.1",
        region="eu-west-1",
        workers=workers,
        nodes=100 + number,
        price=60.0 + number,
        needs=needs,
        needing=len(needs),
    )


async def fleet(folder: Path, clusters: int) -> None:
    """Processor and clock of the command itself."""
    server = await start_temporal(folder)
    try:
        client, slots = await server.client(), asyncio.Semaphore(AT_ONCE)

        async def play(number: int) -> None:
            name = f"prod-{number}"
            async with slots:
                await client.start_workflow(
                    CARETAKER,
                    CaretakerInput(cluster=name),
                    id=caretaker_id(name),
                    task_queue=task_queue(name, "control"),
                    memo={REPORT: _report(number)},
                )

        await asyncio.gather(*[play(number) for number in range(clusters)])
        while (await client.count_workflows(f"WorkflowType = '{CARETAKER}'")).count < clusters:  # noqa: ASYNC110
            await asyncio.sleep(1.0)  # lists of workflows follow a moment later, and nobody says when
        command = [sys.executable, "-m", "dovetail.cli.main", "fleet"]
        environment = {"TEMPORAL_ADDRESS": server.address, "PATH": ""}
        for _ in range(3):
            before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
            done = await asyncio.to_thread(subprocess.run, command, env=environment, capture_output=True, check=True)
            took, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
            spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            lines = len(done.stdout.splitlines())
            print(f"{clusters} clusters: {spent:.2f} s of processor, {took:.2f} s of the clock, {lines} lines")
    finally:
        server.stop()


def main(given: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        if given[:1] == ["fleet"]:
            asyncio.run(fleet(Path(folder), int(given[1]) if given[1:] else PLAYED))
        else:
            clusters, seconds = (int(given[0]), float(given[1])) if given else (CLUSTERS, SECONDS)
            asyncio.run(many(Path(folder), clusters, seconds))


if __name__ == "__main__":
    main(sys.argv[1:])
