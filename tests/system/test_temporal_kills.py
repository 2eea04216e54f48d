"""A Temporal as it is run in earnest (four services, PostgreSQL, TLS) loses parts while nodes are replaced.

Each row takes something away as the first replacement is made, and gives it back after some seconds. All nodes are
replaced, no pod is missing longer than a move takes, no claim gets two instances, and no workflow ends otherwise than
well. `DOVETAIL_TEMPORAL_KILLS=FILE` adds a line for each row: how long it took, and how long nothing was written.
"""

import asyncio
import itertools
import json
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from dovetail.model.values.json import Json
from testbed.temporal.server import RealTemporal, start_temporal
from testbed.temporal.services import SERVICES
from worlds.stage.stage import Stage, node_class, node_pool

pytestmark = [pytest.mark.temporal, pytest.mark.soak]

NODES = 12
AT_ONCE = 4
TYPE = "c-2x-amd64-linux"
RECORD = "DOVETAIL_TEMPORAL_KILLS"
ENDED_BADLY = ("Failed", "TimedOut", "Terminated", "Canceled")
Act = Callable[[RealTemporal], Awaitable[object]]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def real(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RealTemporal]:
    made = await start_temporal(tmp_path_factory.mktemp("temporal"), print)
    yield made
    await asyncio.to_thread(made.stop)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def stage(tmp_path_factory: pytest.TempPathFactory, real: RealTemporal) -> AsyncIterator[Stage]:
    """Two workers and twelve nodes, each full of one pod."""
    folder: Path = tmp_path_factory.mktemp("stage")
    made = Stage(folder=folder, cluster=folder.name, temporal=real)
    made.world.set(boot=2.0, node_ready=1.0, shutdown=3.0, pod_start=0.5, pod_stop=3.0)
    made.world.apply(node_class())
    made.world.apply(a_release("r0"))
    made.deploy(NODES)
    for _ in range(2):
        made.start_worker()
    await made.until(lambda: made.running_pods() == NODES and made.initialised(NODES), 240, "all pods run")
    yield made
    await made.close()


def a_release(name: str) -> Json:
    """Another one lets every node drift."""
    pool = node_pool([TYPE], budgets=[{"nodes": str(AT_ONCE)}])
    pool["spec"]["template"]["metadata"] = {"labels": {"example.com/release": name}}
    return pool


def lost(*names: str) -> Act:
    async def act(real: RealTemporal) -> None:
        await real.kill(*names)

    return act


def back(*names: str) -> Act:
    async def act(real: RealTemporal) -> None:
        for name in names:
            real.start(name)

    return act


async def database_lost(real: RealTemporal) -> None:
    await asyncio.to_thread(real.services.postgres.stop, "immediate")


async def database_back(real: RealTemporal) -> None:
    await asyncio.to_thread(real.services.postgres.start)


async def all_lost(real: RealTemporal) -> None:
    await asyncio.gather(database_lost(real), real.kill(*SERVICES))


async def all_back(real: RealTemporal) -> None:
    await database_back(real)
    await back(*SERVICES)(real)


async def read_only(real: RealTemporal) -> None:
    _alter(real, "on")


async def writable(real: RealTemporal) -> None:
    _alter(real, "off")


def _alter(real: RealTemporal, word: str) -> None:
    postgres = real.services.postgres
    postgres.sql(f"ALTER SYSTEM SET default_transaction_read_only = {word}")
    postgres.sql("SELECT pg_reload_conf()")


ROWS: dict[str, tuple[Act, float, Act]] = {
    "frontend, 10 s": (lost("frontend"), 10.0, back("frontend")),
    "matching, 10 s": (lost("matching"), 10.0, back("matching")),
    "both histories, 10 s": (lost("history", "history-2"), 10.0, back("history", "history-2")),
    "one history of two, 30 s": (lost("history-2"), 30.0, back("history-2")),
    "Temporal's own worker, 10 s": (lost("worker"), 10.0, back("worker")),
    "PostgreSQL, 10 s": (database_lost, 10.0, database_back),
    "PostgreSQL, 90 s": (database_lost, 90.0, database_back),
    "all six processes, 45 s": (all_lost, 45.0, all_back),
    "PostgreSQL takes no writes, 30 s": (read_only, 30.0, writable),
}


@pytest.mark.parametrize("row", ROWS)
async def test_nothing_is_lost_whatever_is_killed(stage: Stage, real: RealTemporal, row: str) -> None:
    take, seconds, give = ROWS[row]
    old, badly = {uid_of(claim) for claim in stage.claims()}, await ended_badly(stage)
    began = time.time()
    stage.world.apply(a_release(f"r{int(began)}"))
    await stage.until(lambda: len(stage.claims()) > NODES, 120, "a replacement is made")
    await take(real)
    given_back = asyncio.create_task(after(seconds, give, real))

    def replaced() -> bool:
        standing = {uid_of(claim) for claim in stage.claims()}
        return not old & standing and stage.running_pods() == NODES and stage.initialised(NODES)

    await stage.until(replaced, 300 + 2 * seconds, f"all are replaced though {row} were away")
    took = time.time() - began
    await given_back
    await stage.until(lambda: len(stage.managed_nodes()) == NODES, 60, "no node is left over")

    assert [uid for uid, launched in stage.instances_by_claim().items() if launched > 1] == []
    assert await ended_badly(stage) == badly
    code, said, refused = await stage.dovetail("status", "--check")
    assert code == 0, said + refused
    _record(row, took, silence(stage, began, began + took))


async def after(seconds: float, give: Act, real: RealTemporal) -> None:
    await asyncio.sleep(seconds)  # how long the row says that it is away
    await give(real)


def silence(stage: Stage, began: float, ended: float) -> float:
    """The longest time in which nothing was written."""
    moments = sorted([began, ended, *(entry.at for entry in stage.writes_of_ours(began) if entry.at < ended)])
    return max(later - earlier for earlier, later in itertools.pairwise(moments))


def uid_of(claim: Json) -> str:
    return str(claim["metadata"]["uid"])


async def ended_badly(stage: Stage) -> dict[str, int]:
    client = await stage.client()
    query = f"WorkflowId STARTS_WITH '{stage.cluster}/' AND ExecutionStatus = '{{}}'"
    return {status: (await client.count_workflows(query.format(status))).count for status in ENDED_BADLY}


def _record(row: str, took: float, silent: float) -> None:
    if file := os.environ.get(RECORD):
        line = {"row": row, "nodes": NODES, "seconds": round(took, 1), "longest silence": round(silent, 1)}
        with Path(file).open("a") as record:
            record.write(json.dumps(line) + "\n")
