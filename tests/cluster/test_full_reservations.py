"""A node whose only place is the one that it holds in a full capacity reservation, on a real API server with EC2's
policies enforced (DIS-201, DIS-202, NPL-58).

The reservation is the test bed's: it counts its instances, and refuses one too many.
"""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any, Final

import pytest
import pytest_asyncio

from dovetail.model import names
from dovetail.model.values.json import Json
from testbed.up import NODE_CLASS
from tests.cluster.system.adopting import set_class
from worlds.cluster.costs import start_worker
from worlds.cluster.fleets import fleet_pool, pool_claims, workload
from worlds.cluster.ground import Ground
from worlds.cluster.timeline import has_true

pytestmark = pytest.mark.cluster

RESERVATION: Final = "cr-0123456789abcdef0"
LABEL: Final = "karpenter.k8s.aws/capacity-reservation-id"
CLOSED: Final = {"FEATURE_GATES": "NodeRepair=true,StaticCapacity=true"}
OPEN: Final = {"FEATURE_GATES": "NodeRepair=true,StaticCapacity=true,TerminateFirstDrift=true"}


@pytest_asyncio.fixture(loop_scope="session")
async def ground(ground: Ground) -> AsyncIterator[Ground]:
    """With one reserved instance for its class."""
    ground.world({"reservations": [{"id": RESERVATION, "type": "m5.xlarge", "zone": "us-west-2a", "available": 1}]})
    await set_class(ground, selecting(RESERVATION))
    yield ground
    await ground.clear()
    ground.world({"reservations": []})
    await set_class(ground, NODE_CLASS)
    ground.kill_workers()  # the next test gets one without the gates


def selecting(reservation: str) -> Json:
    terms = [{"id": reservation}]
    return {**NODE_CLASS, "spec": {**NODE_CLASS["spec"], "capacityReservationSelectorTerms": terms}}


def pool_of(kind: str, colour: str) -> Json:
    pool = fleet_pool("web", colour)
    pool["spec"]["template"]["spec"]["requirements"][0]["values"] = ["reserved"]
    if kind == "static":
        pool["spec"] |= {"replicas": 1, "limits": {"nodes": "2"}}
        pool["spec"]["disruption"] = {"budgets": [{"nodes": "100%"}]}
    return pool


async def only_claim(ground: Ground) -> Json:
    [claim] = await pool_claims(ground, "web")
    return claim


@pytest.mark.parametrize("kind", ["dynamic", pytest.param("static", marks=pytest.mark.soak)])
async def test_a_drifted_node_says_why_it_stays_and_then_leaves_before_its_replacement_though_the_worker_is_killed(
    ground: Ground, kind: str
) -> None:
    await asyncio.to_thread(start_worker, ground, **CLOSED)
    await ground.apply(pool_of(kind, "blue"))
    if kind == "dynamic":
        await ground.apply(workload("app", "web", 1))

    async def up(but: str = "") -> bool:
        claims = await pool_claims(ground, "web")
        return [has_true(c, names.INITIALIZED_CONDITION) and c["metadata"]["uid"] != but for c in claims] == [True]

    await ground.until(up, 180, "a node is up")
    old = await only_claim(ground)
    node: Any = old["status"]["nodeName"]
    assert old["metadata"]["labels"][LABEL] == RESERVATION
    since = ground.audit.end()
    await ground.apply(pool_of(kind, "green"))

    async def said() -> bool:
        listed = (await ground.api.get("/api/v1/namespaces/default/events")).body["items"]
        events = [e for e in listed if e["reason"] == "DisruptionBlocked"]
        about = [e["message"] for e in events if e["involvedObject"]["name"] == node]
        words = "capacity reservations are full" if kind == "static" else f"reservation {RESERVATION} is full"
        return any(words in message for message in about)

    await ground.until(said, 120, "an Event says why nothing moves")
    assert (await only_claim(ground))["metadata"].get("deletionTimestamp") is None

    await asyncio.to_thread(start_worker, ground, **OPEN)

    async def leaving() -> bool:
        found = [c for c in await pool_claims(ground, "web") if c["metadata"]["uid"] == old["metadata"]["uid"]]
        return not found or "deletionTimestamp" in found[0]["metadata"]

    await ground.until(leaving, 120, "it leaves first")
    ground.kill_workers()
    await asyncio.to_thread(start_worker, ground, **OPEN)
    await ground.until(partial(up, old["metadata"]["uid"]), 240, "its replacement is up")

    new = await only_claim(ground)
    assert new["metadata"]["labels"][LABEL] == RESERVATION
    writes = [
        e for e in ground.worker_calls(since) if e.resource == "nodeclaims" and e.code < 300 and not e.subresource
    ]
    made = [(e.time, e.name) for e in writes if e.verb == "create"]
    ended = [(e.time, e.name) for e in writes if e.verb == "delete"]
    assert len(made) == 1, f"into the full reservation nothing is launched: {made} beside {ended}"
    refused = [each for each in ground.cloud.calls("CreateFleet") if "ReservationCapacityExceeded" in str(each)]
    assert refused == []
