"""A StatefulSet with an EBS volume on real servers: its pod gets nodes in the volume's zone, again and again.

The zone is called as the EBS driver calls it, in the StorageClass before there is a volume and in the PersistentVolume
ever after (AWS-4). The kube-scheduler, which knows no other name for it, has the last word.
"""

import pytest

from dovetail.model import names
from dovetail.model.values.json import Json
from tests.cluster.system.scenes import gone
from tests.cluster.system.volumes import (
    ATTACHMENTS,
    CLASSES,
    STATEFUL_SETS,
    VOLUMES,
    ZONE,
    Driver,
    stateful_set,
    storage_class,
)
from worlds.cluster.fleets import fleet_pool
from worlds.cluster.ground import Ground
from worlds.cluster.objects import has_condition

pytestmark = pytest.mark.cluster

ALL: Json = {"budgets": [{"nodes": "100%"}]}
IN_ZONE = "us-west-2b"
HOLD = "example.com/slow-detach"


async def test_a_stateful_pod_moves_with_its_zone_when_its_node_drifts(ground: Ground) -> None:
    async def runs_on() -> str | None:
        found = [pod for pod in await ground.objects("Pod") if "deletionTimestamp" not in pod["metadata"]]
        running = [pod for pod in found if pod.get("status", {}).get("phase") == "Running"]
        return str(running[0]["spec"]["nodeName"]) if running else None

    async with Driver(ground):
        await ground.apply(fleet_pool("web", "blue", disruption=ALL))
        for path, body in ((CLASSES, storage_class("ebs", IN_ZONE)), (STATEFUL_SETS, stateful_set("db", "ebs"))):
            answer = await ground.api.post(path, body)
            assert answer.status == 201, answer.text[:300]
        before = await ground.until(runs_on, 90, "the pod runs, with its volume")
        [volume] = (await ground.api.get(VOLUMES)).body["items"]
        [term] = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
        assert term["matchExpressions"] == [{"key": ZONE, "operator": "In", "values": [IN_ZONE]}]

        await ground.apply(fleet_pool("web", "green", disruption=ALL))

        async def moved() -> bool:
            left = [node["metadata"]["name"] for node in await ground.nodes()]
            return before not in left and await ground.settled(1)

        await ground.until(moved, 150, "the pod runs on another node, and its old one is gone")
        after = await runs_on()
        [claim] = await ground.claims()
        assert (claim["status"]["nodeName"], claim["metadata"]["labels"][names.ZONE]) == (after, IN_ZONE)
        assert [volume["metadata"]["uid"]] == [
            each["metadata"]["uid"] for each in (await ground.api.get(VOLUMES)).body["items"]
        ]
        await ground.assert_one_instance_per_claim()


@pytest.mark.soak
async def test_an_instance_lives_until_its_volume_is_detached(ground: Ground) -> None:
    """TRM-31: the driver takes its time, and the pod's new node waits for the same volume."""
    async with Driver(ground):
        await ground.apply(fleet_pool("web", "blue", disruption=ALL))
        for path, body in ((CLASSES, storage_class("ebs", IN_ZONE)), (STATEFUL_SETS, stateful_set("db", "ebs"))):
            answer = await ground.api.post(path, body)
            assert answer.status == 201, answer.text[:300]
        await ground.until(lambda: ground.settled(1), 120, "the pod runs, with its volume")
        [claim] = await ground.claims()

        async def attached() -> list[Json]:
            found: list[Json] = (await ground.api.get(ATTACHMENTS)).body["items"]
            return [each for each in found if (each.get("status") or {}).get("attached")]

        [attachment] = await ground.until(attached, 120, "the volume is attached")
        held = f"{ATTACHMENTS}/{attachment['metadata']['name']}"
        assert attachment["spec"]["nodeName"] == claim["status"]["nodeName"]
        assert (await ground.api.patch(held, {"metadata": {"finalizers": [HOLD]}})).status == 200
        await ground.delete("NodeClaim", claim["metadata"]["name"])

        async def waits() -> bool:
            found, left = await ground.claim(claim["metadata"]["name"]), (await ground.api.get(held)).body
            drained = found is not None and has_condition(found, names.DRAINED)
            return drained and "deletionTimestamp" in left["metadata"]

        await ground.until(waits, 120, "the node is drained, and its volume is being detached")
        said = await ground.claim(claim["metadata"]["name"])
        assert said is not None and not has_condition(said, names.VOLUMES_DETACHED)
        identity = claim["status"]["providerID"].rpartition("/")[2]
        assert identity in await ground.live()

        assert (await ground.api.patch(held, {"metadata": {"finalizers": None}})).status == 200
        await ground.until(lambda: gone(ground, claim), 120, "the claim is gone")
        await ground.until(lambda: ground.settled(1), 120, "the pod runs on another node")
        assert identity not in await ground.live()
        await ground.assert_one_instance_per_claim()
