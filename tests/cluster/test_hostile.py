"""Does anything that a user of one namespace can write stop the others? A real API server says what can be written."""

import asyncio
import socket
import urllib.request
from dataclasses import replace

import pytest

from dovetail.model import names
from dovetail.model.values.json import Json
from tests.cluster.system.volumes import CLAIMS as VOLUME_CLAIMS
from tests.cluster.system.volumes import CLASSES as STORAGE_CLASSES
from tests.cluster.system.volumes import Driver, places, storage_class, volume_claim
from worlds.cluster.ground import Ground
from worlds.cluster.objects import deployment, node_pool
from worlds.cluster.trouble import (
    DIGITS,
    ONCE,
    PODS,
    create_pods,
    hostile_pods,
    owner_of_all,
    refused_by_the_definition,
    sharing_pods,
)

pytestmark = pytest.mark.cluster

GOOD = 10


def hostile_pool() -> Json:
    """A pool with a budget that cannot be read and is not active now: nobody may look at it."""
    pool = node_pool()
    never = {"nodes": DIGITS, "schedule": "0 0 29 2 *", "duration": "1m"}
    pool["spec"]["disruption"]["budgets"] = [{"nodes": "100%"}, never]
    return pool


def unreadable_pool() -> Json:
    """A slip of an admin's hand: the definition admits any number of digits."""
    pool = node_pool(consolidate_after=f"{DIGITS}h")
    pool["metadata"]["name"] = "slip"
    return pool


async def running(ground: Ground) -> list[Json]:
    """The good pods that run."""
    pods = [p for p in await ground.objects("Pod") if (p["metadata"].get("labels") or {}).get("app") == "web"]
    return [p for p in pods if p["status"].get("phase") == "Running"]


async def told(ground: Ground) -> dict[str, set[str]]:
    """By object, the reasons of its Events that do not come from the kube-scheduler."""
    events = (await ground.api.get("/api/v1/events")).body.get("items") or []
    found: dict[str, set[str]] = {}
    for event in events:
        if event["source"].get("component") != "default-scheduler":
            found.setdefault(event["involvedObject"]["name"], set()).add(event["reason"])
    return found


def start_measured_worker(ground: Ground) -> int:
    """One worker with a port for its metrics."""
    ground.kill_workers()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    environment = {**ground.everything.environment, "METRICS_PORT": str(port)}
    ground.workers.append(replace(ground.everything, environment=environment).start_worker())
    return port


async def scrape(port: int) -> str:
    with await asyncio.to_thread(urllib.request.urlopen, f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        return str(answer.read().decode())


@pytest.mark.soak
async def test_hostile_objects_stop_nobody(ground: Ground) -> None:
    port = start_measured_worker(ground)
    await ground.apply(hostile_pool())
    await ground.apply(deployment(1, "3"))
    await ground.until(lambda: ground.settled(1), 120, "the first pod runs")
    [first] = await ground.nodes()
    await ground.apply(unreadable_pool())
    admitted = await create_pods(ground, hostile_pods(first["metadata"]["name"]))
    assert {"endless-protection", "endless-preference", "many-preferences", "not-a-buffer"} <= admitted
    try:
        await good_pods_come_and_go(ground, port)
        await hostile_objects_are_named(ground, port)
    finally:
        for name in admitted:
            await ground.api.delete(f"{PODS}/{name}", {"gracePeriodSeconds": 0})
        await ground.delete("NodePool", "slip")
    await ground.scale(0)
    await ground.until(ground.nothing_left, 180, "no claim, no node and no instance is left")
    await nothing_is_left_of_them(ground, port, {*admitted, "slip"})


@pytest.mark.soak
async def test_pods_that_no_claim_can_suit_are_named_and_those_beside_them_get_nodes(ground: Ground) -> None:
    """They are planned in the same pass and for the same nodes: the API server would refuse each claim (PLQ-60)."""
    await ground.apply(node_pool())
    beside, wishing = refused_by_the_definition()
    assert await create_pods(ground, beside) == set(beside)
    try:

        async def are_named() -> bool:
            reasons = await told(ground)
            return all("FailedScheduling" in reasons.get(name, ()) for name in beside)

        await ground.until(are_named, 90, "an Event names each pod that no claim can suit")
        _, said = await ground.dovetail("explain", "pod", "default/one-label")
        assert "takes no part in provisioning: no NodeClaim can require label karpenter" in " ".join(said.split())
        assert await create_pods(ground, wishing) == set(wishing)
        await ground.apply(deployment(GOOD, "3"))

        async def all_run() -> bool:
            homeless = [p for p in await ground.objects("Pod") if not p["spec"].get("nodeName")]
            only_beside = {p["metadata"]["name"] for p in homeless} <= set(beside)
            return only_beside and len(await running(ground)) == GOOD

        await ground.until(all_run, 180, f"{GOOD} good pods run beside those that no claim can suit")
    finally:
        for name in (*beside, *wishing):
            await ground.api.delete(f"{PODS}/{name}", {"gracePeriodSeconds": 0})
    await ground.scale(0)
    await ground.until(ground.nothing_left, 180, "no claim, no node and no instance is left")


@pytest.mark.soak
async def test_hostile_pods_that_share_owner_nodes_pool_and_storage_class_with_good_ones_stop_none_of_them(
    ground: Ground,
) -> None:
    """They are planned in the same pass, for the same nodes, with volumes of the same class, whose places overlap."""
    shared = storage_class("shared", "us-west-2a")
    shared["allowedTopologies"] = [places("us-west-2a", "us-west-2b"), places("us-west-2b", "us-west-2c")]
    good = [f"good-{number}" for number in range(3)]
    bodies = sharing_pods(await owner_of_all(ground), {name: [name] for name in good}, "shared")
    async with Driver(ground):
        await ground.apply(node_pool())
        assert (await ground.api.post(STORAGE_CLASSES, shared)).status == 201
        for name in sorted({volume for volumes in bodies.volumes.values() for volume in volumes}):
            answer = await ground.api.post(VOLUME_CLAIMS, volume_claim(name, "shared", once=name == ONCE))
            assert answer.status == 201, answer.text
        assert await create_pods(ground, bodies.pods) == set(bodies.pods)
        try:

            async def good_run() -> bool:
                pods = {p["metadata"]["name"]: p["status"].get("phase") for p in await ground.objects("Pod")}
                return all(pods.get(name) == "Running" for name in good)

            await ground.until(good_run, 180, "the good pods run, each with its volume")
            stopped = [p["metadata"]["annotations"] for p in await ground.objects("NodePool")]
            assert not [each for each in stopped if names.LAUNCHES_STOPPED in each], "the pool's launches go on"
        finally:
            for name in bodies.pods:
                await ground.api.delete(f"{PODS}/{name}", {"gracePeriodSeconds": 0})
    await ground.until(ground.nothing_left, 240, "no claim, no node and no instance is left")


async def good_pods_come_and_go(ground: Ground, port: int) -> None:
    """Ten pods run, then one; nodes come and empty ones go, and the metrics are answered."""
    await ground.scale(GOOD)

    async def all_run() -> bool:
        return len(await running(ground)) == GOOD

    await ground.until(all_run, 180, f"{GOOD} good pods run beside the hostile ones")
    lines = await scrape(port)
    for node in await ground.nodes():
        assert f'karpenter_nodes_allocatable{{node_name="{node["metadata"]["name"]}"' in lines
    await ground.scale(1)

    async def empty_nodes_are_gone() -> bool:
        homes = {p["spec"]["nodeName"] for p in await ground.objects("Pod") if p["spec"].get("nodeName")}
        return {n["metadata"]["name"] for n in await ground.nodes()} <= homes and len(await running(ground)) == 1

    await ground.until(empty_nodes_are_gone, 180, "the empty nodes go")


async def hostile_objects_are_named(ground: Ground, port: int) -> None:
    """Each pod that waits has an Event; what is left out is named by an Event, the metrics and doctor."""

    async def waiting_are_named() -> bool:
        reasons = await told(ground)
        pending = [p for p in await ground.objects("Pod") if p["status"].get("phase") == "Pending"]
        return all("FailedScheduling" in reasons.get(p["metadata"]["name"], set()) for p in pending)

    await ground.until(waiting_are_named, 90, "an Event names each hostile pod that waits")
    reasons = await told(ground)
    assert "InvalidDoNotDisruptAnnotation" in reasons["endless-protection"]
    left_out = {name for name, of_one in reasons.items() if {"CannotBeRead", "CannotBeJudged"} & of_one}
    assert "slip" in left_out
    _, said = await ground.dovetail("doctor")
    lines = await scrape(port)
    for name in left_out:
        assert name in said
        assert f'name="{name}",why="' in lines


async def nothing_is_left_of_them(ground: Ground, port: int, gone: set[str]) -> None:
    """Neither the metrics nor doctor name what was removed."""
    lines = await scrape(port)
    assert "dovetail_object_set_aside{" not in lines
    _, said = await ground.dovetail("doctor")
    assert "objects that cannot be judged" in said
    for name in gone:
        assert f'name="{name}"' not in lines
        assert name not in said
