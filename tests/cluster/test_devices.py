"""Pods with resource claims on a real control plane: its scheduler gives them devices, on nodes made for them.

The cloud is kwok, which sells a type with two devices and a cheaper one without; a driver of the test bed publishes
them. Which node is needed is the planner's word, which device a claim gets is the kube-scheduler's: where they did not
agree a pod would wait, or a node would be too many.
"""

import json
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from dovetail.adapters.kwok import names as own
from dovetail.model import names
from dovetail.model.nodes import NodeClassRef
from dovetail.model.values.json import Json
from tests.cluster.system.devices import (
    CLAIMS,
    DEVICE_CLASSES,
    DRIVER,
    SLICES,
    TEMPLATES,
    DeviceDriver,
    claim_template,
    device,
    device_class,
)
from worlds.cluster.ground import Ground
from worlds.cluster.kwok import end_kwok_nodes, start_kwok_worker
from worlds.cluster.objects import DEPLOYMENTS, KUBELET, deployment, has_condition
from worlds.manifests import pool_manifest

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

CLASSES = "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses"
DEVICES = [device("gpu-0"), device("gpu-1")]
WITH = "gpu.xlarge"


def sold(name: str, price: float, devices: list[Json]) -> Json:
    offering = {"capacityType": "on-demand", "zone": "test-zone-a", "price": price}
    pools = [{"driver": DRIVER, "devices": devices}] if devices else []
    return {
        "name": name,
        "offerings": [offering],
        "architecture": "amd64",
        "operatingSystems": ["linux"],
        "resources": {"cpu": "8", "memory": "32Gi"},
        "devices": pools,
    }


def pool() -> Json:
    """Of any type, and with the label by which the test bed's kwok knows its nodes."""
    of = NodeClassRef(group=own.GROUP, kind=own.KIND, name="default")
    quick = {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}
    body = pool_manifest("web", of, {"expireAfter": "Never"}, disruption=quick)
    body["spec"]["template"]["metadata"] = {"labels": {KUBELET: "alive"}}
    return body


def asking(replicas: int, template: str = "one", name: str = "web") -> Json:
    body = deployment(replicas, "100m")
    body["metadata"]["name"] = name
    pod = body["spec"]["template"]["spec"]
    pod["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": template}]
    pod["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    return body


@pytest_asyncio.fixture(loop_scope="session")
async def with_devices(ground: Ground, tmp_path: Path) -> AsyncIterator[Ground]:
    """A worker that does not ignore resource claims, and a cloud with devices."""
    types = tmp_path / "types.json"
    types.write_text(json.dumps([sold("plain.xlarge", 0.1, []), sold(WITH, 1.0, DEVICES)]))
    await start_kwok_worker(ground, INSTANCE_TYPES_FILE_PATH=str(types), IGNORE_DRA_REQUESTS="false")
    bodies: tuple[tuple[str, Json], ...] = (
        (
            CLASSES,
            {"apiVersion": f"{own.GROUP}/v1alpha1", "kind": own.KIND, "metadata": {"name": "default"}, "spec": {}},
        ),
        (DEVICE_CLASSES, device_class("gpu")),
        (TEMPLATES, claim_template("one", "gpu", 1)),
        (TEMPLATES, claim_template("three", "gpu", 3)),
    )
    for path, body in bodies:
        answer = await ground.api.post(path, body)
        assert answer.status in {201, 409}, f"{answer.status} {answer.text[:300]}"
    yield ground
    for body in await ground.objects("Deployment"):
        await ground.api.delete(f"{DEPLOYMENTS}/{body['metadata']['name']}", {"propagationPolicy": "Background"})
    await end_kwok_nodes(ground)
    for path, body in bodies:
        await ground.api.delete(f"{path}/{body['metadata']['name']}")
    ground.kill_workers()


async def allocated(ground: Ground) -> list[tuple[str, str]]:
    """The devices that claims have, each with its pool, which is named as its node."""
    found = (await ground.api.get(CLAIMS)).body["items"]
    results = [
        each["status"]["allocation"]["devices"]["results"] for each in found if "allocation" in each.get("status", {})
    ]
    return sorted((result["pool"], result["device"]) for listed in results for result in listed)


async def test_pods_get_nodes_with_their_devices_and_the_kube_scheduler_agrees(with_devices: Ground) -> None:
    """PLC-203, PLC-204, PLC-156."""
    ground = with_devices
    async with DeviceDriver(ground, {WITH: DEVICES}) as driver:
        await ground.apply(pool())
        await ground.apply(asking(3))

        async def registered() -> bool:
            claims = await ground.claims()
            return len(claims) == 2 and all(has_condition(claim, "Registered") for claim in claims)

        await ground.until(registered, 120, "two nodes for three pods, by two devices each")
        for claim in await ground.claims():
            assert claim["metadata"]["annotations"][names.DEVICE_DRIVERS] == DRIVER
            assert claim["metadata"]["labels"][names.INSTANCE_TYPE] == WITH
            assert not has_condition(claim, names.INITIALIZED_CONDITION), "the driver has published nothing"

        driver.publish()
        await ground.until(lambda: ground.settled(3), 120, "the pods run, on initialised nodes")
        assert len(await allocated(ground)) == len(set(await allocated(ground))) == 3
        before = {node["metadata"]["name"] for node in await ground.nodes()}

        await ground.scale(4)
        await ground.until(lambda: ground.settled(4), 120, "a fourth pod runs")
        assert {node["metadata"]["name"] for node in await ground.nodes()} == before, "on the device that was free"

        await ground.apply(asking(1, "three", "many"))

        async def is_named() -> bool:
            events = (await ground.api.get("/api/v1/namespaces/default/events")).body["items"]
            said = [e for e in events if e["involvedObject"]["name"].startswith("many-")]
            return any("3 of the devices of class gpu" in event["message"] for event in said)

        await ground.until(is_named, 90, "an Event says what no type brings")
        await ground.scale(5)

        async def five_run() -> bool:
            return await ground.running_pods() == 5

        await ground.until(five_run, 120, "a fifth pod runs beside one that asks for too much")
        assert len(await ground.nodes()) == 3
        per_node = Counter(node for node, _ in await allocated(ground))
        assert sorted(per_node.values()) == [1, 2, 2]
        await ground.api.delete(f"{DEPLOYMENTS}/many", {"propagationPolicy": "Background"})

        await ground.scale(1)

        async def one_is_left() -> bool:
            return len(await ground.nodes()) == 1 and await ground.settled(1)

        await ground.until(one_is_left, 180, "nodes whose devices nobody needs go")
        [node] = [each["metadata"]["name"] for each in await ground.nodes()]
        assert [where for where, _ in await allocated(ground)] == [node]

    async def only_its_slice() -> bool:
        return len((await ground.api.get(SLICES)).body["items"]) == 1

    await ground.until(only_its_slice, 60, "slices go with their nodes")
