"""What AWS does to a cluster on real servers: a shortage, a warning, and a class that is taken away. What a new image
does is among the promises: test_flagships_changes.py.

Everything goes through the front door: objects in the API server, messages in the queue, the cloud's ledger over HTTP.
Shortages are remembered in a ConfigMap for minutes; each test names pools of its own, so that no shortage
reaches the next.
"""

from collections.abc import AsyncIterator

import pytest

from dovetail.model import names
from dovetail.model.own.claim_memory import memory_of
from dovetail.model.values.json import Json
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
    if (await ground.api.get(f"{CLASSES}/default")).status == 404:
        await ground.apply(NODE_CLASS)
    await set_class(ground, NODE_CLASS)


def flexible_pool(instance_type: str) -> Json:
    """Spot where there is any, on-demand else."""
    pool = node_pool(instance_type=instance_type, consolidate_after="Never")
    requirements = pool["spec"]["template"]["spec"]["requirements"]
    requirements[0] = {"key": names.CAPACITY_TYPE, "operator": "In", "values": ["spot", "on-demand"]}
    return pool


async def launched(ground: Ground) -> list[tuple[str, str]]:
    """The living instances' capacity types and zones."""
    return sorted((i["capacityType"], i["zone"]) for i in await ground.instances() if i["state"] == "running")


async def test_a_shortage_of_spot_in_two_zones_is_avoided_and_one_everywhere_falls_back_to_on_demand(
    ground: Ground,
) -> None:
    short = [{"instanceType": "m5.2xlarge", "capacityType": "spot", "zone": f"us-west-2{zone}"} for zone in "ab"]
    ground.world({"ice": short})
    await ground.apply(flexible_pool("m5.2xlarge"))
    await ground.apply(deployment(1, "6"))
    await ground.until(lambda: ground.settled(1), 90, "the pod runs although two zones are short")
    assert await launched(ground) == [("spot", "us-west-2c")]

    ground.world({"ice": [{"instanceType": "m5.2xlarge", "capacityType": "spot"}]})
    await ground.scale(2)
    await ground.until(lambda: ground.settled(2), 90, "the second pod runs although spot is short everywhere")
    assert [kind for kind, _ in await launched(ground)] == ["on-demand", "spot"]
    await ground.assert_one_instance_per_claim()


async def test_a_pod_with_nowhere_else_to_go_asks_again_before_the_shortage_is_forgotten(ground: Ground) -> None:
    """Decision 240: others wait beside it, and follow as soon as one claim has found capacity."""
    since = ground.audit.end()
    ground.world({"ice": [{"instanceType": "m5d.large"}]})
    await ground.apply(node_pool(instance_type="m5d.large", consolidate_after="Never"))
    await ground.apply(deployment(2, "1"))

    async def made() -> list[Json]:
        written = [e for e in ground.audit.entries(since) if e.verb == "create" and e.code == 201]
        return [e.response for e in written if e.resource == "nodeclaims" and e.response is not None]

    async def refused() -> bool:
        return bool(await made()) and not await ground.claims()

    await ground.until(refused, 60, "the claims that were refused are gone")
    ground.world({"ice": []})
    await ground.until(lambda: ground.settled(2), 150, "both pods run")

    assert any(memory_of(claim["metadata"]["annotations"]).asks_again for claim in await ground.claims())
    await ground.assert_one_instance_per_claim()


async def test_a_spot_warning_replaces_its_node_and_no_other(ground: Ground) -> None:
    await ground.apply(flexible_pool("c5.xlarge"))
    await ground.apply(deployment(2, "3"))
    await ground.until(lambda: ground.settled(2), 90, "the pods run")
    warned, kept = await ground.claims()
    instance = warned["status"]["providerID"].rpartition("/")[2]
    await ground.warn(warned)

    async def replaced() -> bool:
        left = {claim["metadata"]["name"] for claim in await ground.claims()}
        return warned["metadata"]["name"] not in left and len(left) == 2 and await ground.settled(2)

    await ground.until(replaced, 120, "the warned node is replaced")
    assert kept["metadata"]["name"] in {claim["metadata"]["name"] for claim in await ground.claims()}
    assert instance not in await ground.live()


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


@pytest.mark.usefixtures("usual_class")
async def test_a_deleted_class_waits_for_its_claims_and_leaves_nothing_behind(ground: Ground) -> None:
    [claim] = await settle(ground, 1)
    profile = (await ground.api.get(f"{CLASSES}/default")).body["status"]["instanceProfile"]
    since = ground.cloud.control("GET", "ledger/last")
    assert (await ground.api.delete(f"{CLASSES}/default")).status == 200

    async def waits() -> bool:
        found = (await ground.api.get("/api/v1/events?fieldSelector=involvedObject.kind=EC2NodeClass")).body["items"]
        return any(event["reason"] == "WaitingOnNodeClaimTermination" for event in found)

    await ground.until(waits, 60, "the class says whom it waits for")
    assert await ground.claim(claim["metadata"]["name"]) is not None
    assert (await ground.api.get(f"{CLASSES}/default")).status == 200
    await ground.api.delete("/apis/apps/v1/namespaces/default/deployments/web", {"propagationPolicy": "Background"})
    await ground.delete("NodePool", "web")

    async def away() -> bool:
        return (await ground.api.get(f"{CLASSES}/default")).status == 404 and await ground.nothing_left()

    await ground.until(away, 180, "the class and everything of it are gone")
    calls = [call for call in ground.cloud.calls(since=since) if not call["error"]]
    gone = {call["input"]["InstanceProfileName"] for call in calls if call["op"] == "DeleteInstanceProfile"}
    assert gone == {profile}
    assert [call for call in calls if call["op"] == "DeleteLaunchTemplate"]
