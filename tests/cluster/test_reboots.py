"""The gate RebootForRepair on a real API server, with EC2's policies enforced: one instance, one call, the same node.

The kubelets are kwok's, and EC2's side is the test bed's: what a real machine does while it starts is not shown.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest
import pytest_asyncio

from dovetail.model import names
from dovetail.model.values.json import Json
from dovetail.model.values.time import format_time
from worlds.cluster.costs import start_worker
from worlds.cluster.fleets import fleet_pool, workload
from worlds.cluster.ground import Ground

pytestmark = pytest.mark.cluster

FAULT = "AcceleratedHardwareReady"
GATES = {"FEATURE_GATES": "NodeRepair=true", "AWS_FEATURE_GATES": "RebootForRepair=true"}


@pytest_asyncio.fixture(loop_scope="session")
async def ground(ground: Ground) -> AsyncIterator[Ground]:
    """With a worker whose gates are open."""
    await asyncio.to_thread(start_worker, ground, **GATES)
    yield ground
    await ground.clear()
    ground.kill_workers()  # the next test gets one without the gates


async def breaks(ground: Ground, node: str) -> None:
    """The node's monitor finds a GPU error that a reboot clears, eleven minutes ago."""
    since = format_time(time.time() - 660)
    fault = {"type": FAULT, "status": "False", "reason": "NvidiaXID48Error", "message": "", "lastTransitionTime": since}
    path = f"/api/v1/nodes/{node}/status"
    assert (await ground.api.patch(path, {"status": {"conditions": [fault]}}, "strategic")).status == 200


def condition(body: Json, kind: str) -> Json:
    found: list[Json] = [each for each in body["status"].get("conditions") or () if each["type"] == kind]
    return found[0] if found else {}


@pytest.mark.soak
async def test_an_instance_is_rebooted_its_pods_come_back_and_a_killed_worker_makes_no_difference(
    ground: Ground,
) -> None:
    """GCR-19."""
    await ground.apply(fleet_pool("web"))
    await ground.apply(workload("app", "web", 1))
    await ground.until(partial(ground.settled, 1), 120, "a pod runs")
    [claim] = await ground.claims()
    node: Any = await ground.node(claim["status"]["nodeName"])
    boot = node["status"]["nodeInfo"]["bootID"]
    [pod] = await ground.objects("Pod")
    await breaks(ground, node["metadata"]["name"])

    async def begun() -> bool:
        found = await ground.claim(claim["metadata"]["name"])
        return found is not None and condition(found, names.REBOOTING).get("status") == "True"

    await ground.until(begun, 60, "the reboot has begun")
    ground.kill_workers()
    await asyncio.to_thread(start_worker, ground, **GATES)

    async def over() -> bool:
        found = await ground.claim(claim["metadata"]["name"])
        return found is not None and condition(found, names.REBOOTING).get("reason") == "RebootSucceeded"

    await ground.until(over, 240, "the node is back")
    await ground.until(partial(ground.settled, 1), 120, "the pod runs again")

    back: Any = await ground.node(node["metadata"]["name"])
    [kept] = await ground.claims()
    [again] = await ground.objects("Pod")
    calls = [each for each in ground.cloud.calls("RebootInstances") if not each.get("error")]
    assert len(calls) == 1
    assert (back["metadata"]["uid"], kept["metadata"]["uid"]) == (node["metadata"]["uid"], claim["metadata"]["uid"])
    assert back["status"]["nodeInfo"]["bootID"] != boot
    assert again["metadata"]["uid"] != pod["metadata"]["uid"], "it was evicted, and no other node was made for it"
    assert [taint["key"] for taint in back["spec"].get("taints") or ()] == []
    assert names.REBOOT_GRACE not in (kept["metadata"].get("annotations") or {})
    assert condition(back, FAULT)["status"] == "True"
