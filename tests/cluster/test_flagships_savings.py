"""What is promised of what nodes cost: consolidation, Balanced, spot by spot, overlays, limits and weights, company by
DaemonSets. The scenes are played beside each other; those in which consolidation
compares nodes open their budgets one after the other, since it looks at the nodes of all NodePools together."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import pytest

from dovetail.model import names
from dovetail.model.values.json import Json
from tests.cluster.flagships.corner import Corner
from tests.cluster.flagships.wave import scene
from worlds.cluster.costs import CATEGORY, many_types, start_worker
from worlds.cluster.fleets import owners_in
from worlds.cluster.ground import Ground

pytestmark = pytest.mark.cluster

CLOSED: Final[Json] = {"budgets": [{"nodes": "0"}]}
UNDERUTILISED: Final[Json] = {
    "budgets": [{"nodes": "100%"}],
    "consolidationPolicy": "WhenEmptyOrUnderutilized",
    "consolidateAfter": "0s",
}
EMPTY: Final[Json] = {**UNDERUTILISED, "consolidationPolicy": "WhenEmpty"}
BALANCED: Final[Json] = {**UNDERUTILISED, "consolidationPolicy": "Balanced"}
ONE_AT_A_TIME = asyncio.Lock()
DEVICE: Final = "example.com/dongle"
GATES: Final = "SpotToSpotConsolidation=true,NodeOverlay=true"


@asynccontextmanager
async def setting(ground: Ground) -> AsyncIterator[None]:
    """36 types on sale; afterwards the cloud sells what it sold before."""
    before = many_types(ground)
    start_worker(ground, FEATURE_GATES=GATES, BATCH_MAX_DURATION="5s")  # nominations last half as long
    try:
        yield
    finally:
        ground.world(before)
        ground.ensure_workers(0)


def any_type(pool: Json, capacity_type: str) -> Json:
    requirements = pool["spec"]["template"]["spec"]["requirements"]
    requirements[:] = [
        {"key": names.CAPACITY_TYPE, "operator": "In", "values": [capacity_type]},
        {"key": CATEGORY, "operator": "In", "values": ["c", "m", "r"]},
    ]
    return pool


@scene
async def test_several_nodes_become_one_that_is_enough(corner: Corner) -> None:
    """DIS-96 to DIS-117: two small pods on two nodes, by a single command."""
    types = ("m5.large", "m5.xlarge")
    pool = partial(corner.pool, types=types)
    await corner.apply(pool(disruption=CLOSED), corner.workload(2, "2500m", name="large"))
    await corner.settle(2, 2)
    await corner.apply(corner.workload(2, "700m"))
    await corner.settle(4, 2)
    await corner.kubectl("delete", "deployment", "large", "-n", corner.name)
    await corner.settle(2, 2)
    assert len({pod["spec"]["nodeName"] for pod in await corner.pods()}) == 2
    old = {claim["metadata"]["name"] for claim in await corner.claims()}
    async with ONE_AT_A_TIME:
        await corner.apply(pool(disruption=UNDERUTILISED))

        async def one() -> bool:
            return await corner.running() == ["m5.large"] and await corner.settled(2, 1)

        await corner.until(one, 240, "both pods run on one small node")
        await corner.apply(pool(disruption=CLOSED))
    owners = {claim: owner for claim, owner in owners_in(corner.calls()).items() if claim in old}
    assert owners.keys() == old and len(set(owners.values())) == 1, "one command took both"


@scene
async def test_balanced_moves_what_saves_much_and_leaves_what_saves_little(corner: Corner) -> None:
    """DIS-120 to DIS-131: $0.192 for $0.17 saves 11 %; $0.192 for $0.085 saves 56 %."""
    await corner.apply(corner.pool(disruption=CLOSED), corner.workload(1, "1500m"))
    await corner.settle(1, 1)
    [node] = await corner.nodes()
    async with ONE_AT_A_TIME:
        await corner.apply(corner.pool(types=("m5.xlarge", "c5.xlarge"), disruption=BALANCED))
        little = "the saving is too small for the disturbance (policy Balanced)"
        await corner.says(little, "explain", "node", node["metadata"]["name"], seconds=120)
        assert await corner.running() == ["m5.xlarge"]
        await corner.apply(corner.pool(types=("m5.xlarge", "c5.xlarge", "c5.large"), disruption=BALANCED))

        async def moved() -> bool:
            return await corner.running() == ["c5.large"] and await corner.settled(1, 1)

        await corner.until(moved, 180, "the node is replaced by the one that saves much")
        await corner.apply(corner.pool(types=("c5.large",), disruption=CLOSED))


@scene
async def test_a_spot_node_is_replaced_by_one_of_fifteen_cheaper_spot_types(corner: Corner) -> None:
    """DIT-67, DIT-70."""
    await corner.apply(any_type(corner.pool(disruption=CLOSED), "spot"), corner.workload(1, "12", name="large"))
    await corner.settle(1, 1)
    [large] = await corner.running()
    await corner.apply(corner.workload(1, "1"))
    await corner.settle(2, 1)
    await corner.kubectl("delete", "deployment", "large", "-n", corner.name)
    await corner.settle(1, 1)
    async with ONE_AT_A_TIME:
        await corner.apply(any_type(corner.pool(disruption=UNDERUTILISED), "spot"))

        async def cheaper() -> bool:
            return large not in await corner.running() and await corner.settled(1, 1)

        await corner.until(cheaper, 180, "the node is replaced by a cheaper one")
        await corner.apply(any_type(corner.pool(disruption=CLOSED), "spot"))
    assert await corner.running("capacityType") == ["spot"]
    [claim] = await corner.claims()
    [types] = [r["values"] for r in claim["spec"]["requirements"] if r["key"] == names.INSTANCE_TYPE]
    assert len(types) == 15 and large not in types


def overlay(name: str, types: list[str], **spec: Any) -> Json:
    wanted = [{"key": names.INSTANCE_TYPE, "operator": "In", "values": types}]
    body = {"apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": {"name": name}}
    return {**body, "spec": {"requirements": wanted, **spec}}


@scene
async def test_an_overlay_s_price_and_capacity_decide_what_is_bought(corner: Corner) -> None:
    """AWS-88: the dearer of two types at a discount; and the one type with a device that the cloud knows nothing of."""
    both, device = ("m6i.xlarge", "m6i.2xlarge"), "c6i.xlarge"
    price, capacity = f"{corner.name}-price", f"{corner.name}-device"
    await corner.apply(
        overlay(price, ["m6i.2xlarge"], price="0.001"), overlay(capacity, [device], capacity={DEVICE: "2"})
    )
    try:
        await corner.apply(corner.pool(types=(*both, device), disruption=CLOSED), corner.workload(1, "1"))
        await corner.settle(1, 1)
        assert await corner.running() == ["m6i.2xlarge"]
        wanting: Any = corner.workload(1, "1", name="wanting")
        wanting["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {DEVICE: "1"}}
        await corner.apply(wanting)

        async def joined() -> str:
            found = [n for n in await corner.nodes() if n["metadata"]["labels"][names.INSTANCE_TYPE] == device]
            return str(found[0]["metadata"]["name"]) if found else ""

        node = await corner.until(joined, 120, "the type with the device is bought")
        plugged = {"status": {"capacity": {DEVICE: "2"}, "allocatable": {DEVICE: "2"}}}
        answer = await corner.ground.api.patch(f"/api/v1/nodes/{node}/status", plugged)  # as a device plugin says it
        assert answer.status == 200, answer.text
        await corner.settle(2, 2)
    finally:
        await corner.kubectl("delete", "nodeoverlay", price, capacity)


@scene
async def test_the_heavier_pool_is_filled_to_its_limit_and_the_lighter_takes_the_rest(corner: Corner) -> None:
    heavy, light = corner.pool(disruption=CLOSED), corner.pool(types=("m5a.xlarge",), disruption=CLOSED)
    heavy["spec"] |= {"weight": 10, "limits": {"cpu": "8"}}
    light["metadata"]["name"] = f"{corner.name}-light"
    light["spec"]["weight"] = 1
    pods: Any = corner.workload(3)
    pods["spec"]["template"]["spec"]["nodeSelector"] = {"team": corner.name}
    for pool in (heavy, light):
        pool["spec"]["template"]["metadata"]["labels"]["team"] = corner.name
    await corner.apply(heavy, light, pods)
    try:
        await corner.until(partial(run, corner, 3), 120, "all pods run")
        assert await corner.running() == ["m5.xlarge", "m5.xlarge"], "as many as the limit lets"
        await corner.until(partial(uses, corner, "8"), 60, "its status says so")
        types = {
            n["metadata"]["labels"][names.INSTANCE_TYPE] for n in await corner.ground.nodes() if of_team(n, corner)
        }
        assert types == {"m5.xlarge", "m5a.xlarge"}
    finally:
        await corner.kubectl("delete", "nodepool", light["metadata"]["name"], "--wait=false")


async def uses(corner: Corner, cpus: str) -> bool:
    return bool((await corner.object("nodepool"))["status"]["resources"]["cpu"] == cpus)


def of_team(node: Json, corner: Corner) -> bool:
    return bool(node["metadata"]["labels"].get("team") == corner.name)


async def run(corner: Corner, pods: int) -> bool:
    return [pod["status"]["phase"] for pod in await corner.pods()] == ["Running"] * pods


@scene
async def test_a_daemon_set_is_company_that_takes_room_and_keeps_no_node(corner: Corner) -> None:
    """A pod of three cpus fits on the smaller node; with a DaemonSet of one and a half it needs the larger one at once.
    Alone with the DaemonSet's pod that node is empty."""
    body: Any = corner.workload(0, "1500m", name="company", priorityClassName="system-node-critical")
    body["kind"] = "DaemonSet"
    body["spec"].pop("replicas")
    await corner.apply(body)
    await corner.apply(corner.pool(types=("m5.xlarge", "m5.2xlarge"), disruption=EMPTY), corner.workload(1))
    await corner.settle(2, 1)
    assert await corner.running() == ["m5.2xlarge"] and len(corner.made()) == 1
    await corner.kubectl("scale", "deployment", "web", "-n", corner.name, "--replicas=0")
    await corner.settle(0, 0)
