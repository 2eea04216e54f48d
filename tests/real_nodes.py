"""The fixture of a cluster with real nodes, for the tests that need one."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from testbed.node.cluster import start
from testbed.node.programs import cannot_run
from testbed.plane import ApiClient, TestbedUnavailable
from testbed.up import stop
from tests.unavailable import no_control_plane, no_nodes
from worlds.cluster.real_nodes import RealGround

_STATE = Path(__file__).parents[1] / ".dovetail"


async def real_ground(request: pytest.FixtureRequest, name: str, nodes: int = 1) -> AsyncIterator[RealGround]:
    """Started once, and its logs are kept where a test has failed. The folder is fixed for each lane, so that what a
    killed session left is ended by the next."""
    folder = _STATE / f"tests-{name}-{os.environ.get('DOVETAIL_LANE', '0')}"
    if why := cannot_run(folder):
        no_nodes(why)
    try:
        cluster = await start(folder, lambda _line: None, nodes)
    except TestbedUnavailable as reason:
        no_control_plane(reason)
    try:
        async with ApiClient(cluster.plane.kubeconfig, user_agent="acceptance") as api:
            yield RealGround(cluster, api)
    finally:
        if request.session.testsfailed:
            await asyncio.to_thread(_keep_logs, folder)
        await stop(folder)
    if not request.session.testsfailed:
        shutil.rmtree(folder, ignore_errors=True)


def _keep_logs(folder: Path) -> None:
    kept = folder / "node-logs"
    shutil.rmtree(kept, ignore_errors=True)
    for log in (folder / "nodes").glob("**/*.log"):
        if log.parent.parent.name in {"nodes", folder.name} or log.parent.name == "nodes":
            kept.mkdir(parents=True, exist_ok=True)
            shutil.copy(log, kept / f"{log.parent.name}-{log.name}")
