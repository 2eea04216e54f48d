"""What AWS sells and at what price, on real servers. A shortage, a warning, and a class that is taken away are in
test_lives_of_nodes.py; what a new image does is among the promises: test_flagships_changes.py.
"""

from collections.abc import AsyncIterator

import pytest

from dovetail.model import names
from testbed.up import NODE_CLASS
from tests.cluster.system.adopting import set_class
from tests.cluster.system.scenes import settle
from worlds.cluster.ground import Ground
from worlds.cluster.objects import deployment, node_pool

pytestmark = pytest.mark.cluster


CLASSES = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"
OVERLAYS = "/apis/karpenter.sh/v1alpha1/nodeoverlays"
STANDARD_IMAGE = "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/standard/recommended/image_id"


@pytest.fixture
async def usual_class(ground: Ground) -> AsyncIterator[None]:
    """Other tests find the class as it was."""
    yield
    await ground.clear()
    await set_class(ground, NODE_CLASS)


@pytest.fixture
async def overlay(ground: Ground) -> AsyncIterator[str]:
    """The price of the dearer of two types, below that of the cheaper one."""
    dearer = {"key": names.INSTANCE_TYPE, "operator": "In", "values": ["m5.2xlarge"]}
    body = {
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "NodeOverlay",
        "metadata": {"name": "discount"},
        "spec": {"requirements": [dearer], "price": "0.001"},
    }
    ground.ensure_workers(0)
    ground.ensure_workers(gates="NodeOverlay=true")
    created = await ground.api.post(OVERLAYS, body)
    assert created.status == 201, created.text
    yield "m5.2xlarge"
    await ground.clear()
    await ground.api.delete(f"{OVERLAYS}/discount")
    ground.ensure_workers(0)


@pytest.mark.soak
async def test_a_node_overlay_s_price_decides_which_type_is_bought(ground: Ground, overlay: str) -> None:
    """AWS-88: the fleet goes by the priorities that the overlay made."""
    pool = node_pool(consolidate_after="Never")
    requirements = pool["spec"]["template"]["spec"]["requirements"]
    requirements[1] = {"key": names.INSTANCE_TYPE, "operator": "In", "values": ["m5.xlarge", overlay]}
    await ground.apply(pool)
    await ground.apply(deployment(1, "1"))
    await ground.until(lambda: ground.settled(1), 90, "the pod runs")

    assert [i["type"] for i in await ground.instances() if i["state"] == "running"] == [overlay]


@pytest.fixture
async def preview(ground: Ground) -> AsyncIterator[str]:
    """A type that AWS sells and names no price for, as those that are not for everybody yet."""
    before = ground.cloud.control("GET", "world")["types"]
    ground.world({"types": [*before, "r9g.xlarge"]})
    ground.ensure_workers(0)
    ground.ensure_workers(gates="NodeOverlay=true")
    yield "r9g.xlarge"
    await ground.api.delete(f"{OVERLAYS}/preview")
    await ground.clear()
    ground.world({"types": before})
    ground.ensure_workers(0)


@pytest.mark.soak
async def test_a_type_without_a_price_is_bought_once_an_overlay_says_what_it_costs(
    ground: Ground, preview: str
) -> None:
    """NPL-57."""
    await ground.apply(node_pool(instance_type=preview, consolidate_after="Never"))
    await ground.apply(deployment(1, "1"))

    async def is_refused() -> bool:
        events = (await ground.api.get("/api/v1/namespaces/default/events")).body["items"]
        return any(e["reason"] == "FailedScheduling" and "karpenter" in str(e["source"]) for e in events)

    await ground.until(is_refused, 90, "an Event says that no type is on sale")
    assert await ground.claims() == []
    wanted = {"key": names.INSTANCE_TYPE, "operator": "In", "values": [preview]}
    body = {
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "NodeOverlay",
        "metadata": {"name": "preview"},
        "spec": {"requirements": [wanted], "price": "0.3"},
    }
    created = await ground.api.post(OVERLAYS, body)
    assert created.status == 201, created.text
    await ground.until(lambda: ground.settled(1), 120, "the pod runs")

    assert [i["type"] for i in await ground.instances() if i["state"] == "running"] == [preview]


@pytest.mark.soak
@pytest.mark.usefixtures("usual_class")
async def test_an_image_is_chosen_by_the_arn_of_a_public_parameter(ground: Ground) -> None:
    """AWS-12."""
    term = {"ssmParameter": f"arn:aws:ssm:us-west-2::parameter{STANDARD_IMAGE}"}
    spec = {**NODE_CLASS["spec"], "amiSelectorTerms": [term], "amiFamily": "AL2023"}
    await set_class(ground, {**NODE_CLASS, "spec": spec})
    await settle(ground, 1)

    status = (await ground.api.get(f"{CLASSES}/default")).body["status"]
    assert [ami["id"] for ami in status["amis"]] == ["ami-0a12023a"]
