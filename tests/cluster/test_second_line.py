"""A NodeOverlay that promises what no node has, on real servers: one node for one pod, and not one each pass."""

from collections.abc import AsyncIterator
from functools import partial

import pytest
import pytest_asyncio

from dovetail.model import names
from dovetail.model.values.json import Json
from worlds.cluster.ground import Ground
from worlds.cluster.objects import deployment, has_condition, node_pool

pytestmark = pytest.mark.cluster

OVERLAYS = "/apis/karpenter.sh/v1alpha1/nodeoverlays"
DEVICE = "example.com/device"
OVERLAY: Json = {
    "apiVersion": "karpenter.sh/v1alpha1",
    "kind": "NodeOverlay",
    "metadata": {"name": "devices"},
    "spec": {
        "requirements": [{"key": "kubernetes.io/arch", "operator": "Exists"}],
        "capacity": {DEVICE: "8"},
    },
}


@pytest_asyncio.fixture(loop_scope="session")
async def overlaid(ground: Ground) -> AsyncIterator[Ground]:
    """Workers with the gate, and the overlay."""
    ground.kill_workers()
    assert (await ground.api.post(OVERLAYS, OVERLAY)).status == 201
    ground.ensure_workers(gates="NodeOverlay=true")
    yield ground
    await ground.api.delete(f"{OVERLAYS}/devices")
    ground.kill_workers()


def late_pods(replicas: int) -> Json:
    """Others, which show that passes are made."""
    body = deployment(replicas, "100m")
    body["metadata"]["name"] = "late"
    body["spec"]["selector"] = {"matchLabels": {"app": "late"}}
    body["spec"]["template"]["metadata"] = {"labels": {"app": "late"}}
    return body


async def test_one_pod_whose_device_no_node_has_gets_one_node_while_that_may_come_up(overlaid: Ground) -> None:
    """PLQ-32: a node is not initialised before it has the device, so the claim may still become the pod's node."""
    ground = overlaid
    before = {i["id"] for i in await ground.instances()}
    await ground.apply(node_pool(consolidate_after="Never"))
    web = deployment(1, "1")
    resources = web["spec"]["template"]["spec"]["containers"][0]["resources"]
    resources["requests"][DEVICE] = "1"
    resources["limits"] = {DEVICE: "1"}
    await ground.apply(web)

    async def registered() -> bool:
        return any(has_condition(c, names.REGISTERED_CONDITION) for c in await ground.claims())

    await ground.until(registered, 120, "its node has registered")
    for replicas in (1, 2, 3):
        await ground.apply(late_pods(replicas))
        await ground.until(partial(_running, ground, replicas), 60, "the others run")

    [pod] = [p["metadata"]["name"] for p in await ground.objects("Pod") if p["metadata"]["labels"]["app"] == "web"]
    _, said = await ground.dovetail("explain", "pod", f"default/{pod}")
    launched = {i["id"] for i in await ground.instances()} - before
    [claim] = await ground.claims()
    assert len(launched) == 1
    assert claim["metadata"]["name"] in said or claim["status"]["nodeName"] in said


async def _running(ground: Ground, pods: int) -> bool:
    return await ground.running_pods() == pods
