"""A worker beside another that acts decides on the same real cluster, compares, and writes nothing.

The one that acts stands for Karpenter: what is looked at are claims, nodes and pods, whoever makes them.
"""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
import pytest_asyncio
import yaml

from dovetail.cli.demo.temporal_server import free_ports, stop_process
from dovetail.model.values.json import Json
from testbed.up import give_rights
from tests.cluster.system.scenes import settle
from worlds.cluster.ground import Ground
from worlds.cluster.objects import node_pool

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

RIGHTS = Path(__file__).parents[2] / "deploy" / "kubernetes" / "rbac.yaml"
USER = "shadow"
QUESTIONS = {"selfsubjectaccessreviews", "selfsubjectreviews"}  # whether it may: asked by a create, and kept by nobody


def answer(port: int, path: str) -> Json | None:
    """None while nobody answers."""
    try:
        with urlopen(f"http://127.0.0.1:{port}/{path}", timeout=60) as found:
            body: Json = json.loads(found.read()) if path.startswith("api") else {}
            return body
    except (URLError, ConnectionError, TimeoutError):
        return None


@pytest_asyncio.fixture(loop_scope="session")
async def beside(ground: Ground) -> AsyncIterator[int]:
    """The port of a worker that looks on, with all rights of one that acts: it keeps its hands off by itself."""
    await settle(ground, 1)
    await give_rights(ground.api, USER, list(yaml.safe_load_all(RIGHTS.read_text())))
    (port,) = free_ports(1)
    looking = {"DOVETAIL_BESIDE_KARPENTER": "true", "METRICS_PORT": str(port), "HEALTH_PROBE_PORT": str(port)}
    environment = {**ground.environment_of(USER), **looking, "TEMPORAL_ADDRESS": "127.0.0.1:1"}
    process = replace(ground.everything, environment=environment).start_worker("shadow.log")

    async def ready() -> bool:
        return await asyncio.to_thread(answer, port, "readyz") is not None

    await ground.until(ready, 60, "the shadow is ready")
    yield port
    await asyncio.to_thread(stop_process, process, signal.SIGKILL)


async def test_both_are_compared_and_the_one_beside_writes_nothing(ground: Ground, beside: int) -> None:
    await ground.scale(3)
    await ground.until(lambda: ground.settled(3), 120, "two more nodes were launched")

    async def launches() -> Json | None:
        found = await asyncio.to_thread(answer, beside, "api/v1/shadow")
        return found if found and sum(len(each["karpenter"]) for each in found["launches"]) >= 2 else None

    found = await ground.until(launches, 60, "the launches are compared")
    assert found is not None
    made = [node for each in found["launches"] for node in each["karpenter"]]
    would = [node for each in found["launches"] for node in each["dovetail"]]
    print("launches:", [(each["differs"], each["saving"]) for each in found["launches"]])
    assert len(made) == len(would) == 2, found["launches"]
    assert {node["type"] for node in made} == {node["type"] for node in would}
    assert [each["differs"] for each in found["launches"]] == [""] * len(found["launches"])

    await ground.apply(node_pool(colour="green"))

    async def departures() -> Json | None:
        found = await asyncio.to_thread(answer, beside, "api/v1/shadow")
        gone = [each for each in (found or {}).get("departures", []) if each["karpenter"] == "Drifted"]
        return found if len(gone) >= 3 else None

    found = await ground.until(departures, 240, "three drifted nodes have left")
    assert found is not None
    print("totals:", found["totals"])
    ways = [each["way"] for each in found["departures"] if each["karpenter"] == "Drifted"]
    assert ways.count("both") >= 2, found["departures"]
    assert found["totals"]["launchesUnlike"] == 0

    mine = [entry for entry in ground.audit.entries() if entry.user == USER]
    assert {entry.verb for entry in mine} >= {"list", "watch"}, "it has looked"
    assert [entry for entry in mine if entry.is_write and entry.resource not in QUESTIONS] == []
