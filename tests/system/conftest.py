"""Stages for the front door and for two workers; those that take long to prepare are prepared side by side."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from dovetail.cli.demo.temporal_server import TemporalServer
from dovetail.model import names
from dovetail.model.values.json import Json
from tests.system.servers import temporal_server
from worlds.stage.running import SideBySide, shared_stage
from worlds.stage.stage import Stage, has_condition, node_pool

__all__ = ["temporal_server"]

Disrupted = tuple[Stage, Json]


@pytest_asyncio.fixture(loop_scope="session")
async def stage(tmp_path_factory: pytest.TempPathFactory, temporal_server: TemporalServer) -> AsyncIterator[Stage]:
    """A stage of the test's own, on the session's Temporal server; no worker runs yet."""
    folder = tmp_path_factory.mktemp("stage")
    made = shared_stage(folder, folder.name, temporal_server)
    yield made
    await made.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def prepared(
    tmp_path_factory: pytest.TempPathFactory, temporal_server: TemporalServer
) -> AsyncIterator[SideBySide[Disrupted]]:
    """Stages by the name of the test that asks for one."""
    made: list[Stage] = []

    async def prepare(name: str) -> Disrupted:
        folder = tmp_path_factory.mktemp("prepared")
        stage = shared_stage(folder, folder.name, temporal_server)
        made.append(stage)
        if name.startswith("disrupted:"):
            return stage, await a_disruption_that_waits(stage)
        await a_settled_node(stage)
        return stage, {}

    side_by_side = SideBySide(prepare, at_once=4)
    yield side_by_side
    await side_by_side.stop()
    for stage in made:
        await stage.close()


async def _one(request: pytest.FixtureRequest, prepared: SideBySide[Disrupted]) -> Disrupted:
    """With those of the same file: a disruption waits ten minutes for its replacement, and the folder takes longer."""
    wanted, items = ("disrupted", "settled"), [i for i in request.session.items if i.path == request.node.path]
    every = [f"{f}:{i.name}" for f in wanted for i in items if f in getattr(i, "fixturenames", ())]
    return await prepared.outcome(f"{request.fixturename}:{request.node.name}", every)


@pytest_asyncio.fixture(loop_scope="session")
async def disrupted(request: pytest.FixtureRequest, prepared: SideBySide[Disrupted]) -> AsyncIterator[Disrupted]:
    """A stage on which a drifted node is marked and waits for a replacement that never joins; and its claim."""
    found = await _one(request, prepared)
    yield found
    await found[0].rest()


@pytest_asyncio.fixture(loop_scope="session")
async def settled(request: pytest.FixtureRequest, prepared: SideBySide[Disrupted]) -> AsyncIterator[Stage]:
    """A stage with a worker and a node on which a pod runs."""
    stage, _ = await _one(request, prepared)
    yield stage
    await stage.rest()


async def a_settled_node(stage: Stage) -> None:
    """A worker, a pod, a node."""
    stage.start_worker()
    stage.apply_pool()
    stage.deploy(1)
    await stage.until(lambda: stage.running_pods() == 1 and stage.initialised(1), 90, "the pod runs")


async def a_disruption_that_waits(stage: Stage) -> Json:
    """A node has drifted and its replacement never joins: the disruption stands before its delete. The marked claim."""
    await a_settled_node(stage)
    stage.world.never_join()
    pool = node_pool(["c-2x-amd64-linux"])
    pool["spec"]["template"]["metadata"] = {"labels": {"colour": "green"}}
    stage.world.apply(pool)
    return await stage.until(lambda: _marked(stage), 120, "the drifted node is marked and its replacement launched")


def _marked(stage: Stage) -> Json | None:
    """A marked claim whose replacement stands beside it."""
    claims = stage.claims()
    owned = [c for c in claims if names.OWNER in (c["metadata"].get("annotations") or {})]
    replaced = any(has_condition(c, names.LAUNCHED) and c not in owned for c in claims)
    return owned[0] if owned and replaced and stage.tainted() else None
