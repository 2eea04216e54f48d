"""A NodeOverlay that promises what no node has, on real servers: two nodes for one pod, and no third one (PLQ-32)."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from dovetail.model.json import Json
from tests.cluster.system.ground import Ground, deployment, node_pool

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


async def test_one_pod_whose_device_no_node_has_gets_two_nodes_and_no_third_one(overlaid: Ground) -> None:
    ground = overlaid
    before = {i["id"] for i in await ground.instances()}
    await ground.apply(node_pool(consolidate_after="Never"))
    web = deployment(1, "1")
    resources = web["spec"]["template"]["spec"]["containers"][0]["resources"]
    resources["requests"][DEVICE] = "1"
    resources["limits"] = {DEVICE: "1"}
    await ground.apply(web)

    async def given_up() -> bool:
        events = (await ground.api.get("/api/v1/events")).body.get("items") or []
        return any("2 NodeClaims were made for it" in (e.get("message") or "") for e in events)

    await ground.until(given_up, 240, "an Event says that no third node is made")
    launched = {i["id"] for i in await ground.instances()} - before
    assert len(launched) == len(await ground.claims()) == 2
    assert await ground.running_pods() == 0
