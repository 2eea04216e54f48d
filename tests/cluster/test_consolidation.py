"""Consolidation that only a cloud with a choice shows: spot nodes by spot nodes, and what Balanced finds worth it."""

from collections.abc import AsyncIterator, Sequence

import pytest

from dovetail.model import names
from dovetail.model.values.json import Json
from tests.cluster.days.evening import nothing_marked
from worlds.cluster.costs import CATEGORY, many_types, start_worker
from worlds.cluster.fleets import fleet_pool, workload
from worlds.cluster.ground import Ground

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

POOL = "narrow"


@pytest.fixture
async def choice(ground: Ground) -> AsyncIterator[Ground]:
    """36 types on sale, and spot nodes may become spot nodes; afterwards the cloud sells what it sold before."""
    before = many_types(ground)
    start_worker(ground, FEATURE_GATES="SpotToSpotConsolidation=true")
    yield ground
    await ground.clear()
    ground.world(before)
    ground.ensure_workers(0)


def pool_of(policy: str, types: Sequence[str] = (), capacity_type: str = "on-demand") -> Json:
    """A pool with this policy for disruption, of these types or of all general ones."""
    disruption = {"consolidationPolicy": policy, "consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}
    pool = fleet_pool(POOL, types=tuple(types), disruption=disruption)
    requirements = pool["spec"]["template"]["spec"]["requirements"]
    requirements[0]["values"] = [capacity_type]
    if not types:
        requirements[1:] = [{"key": CATEGORY, "operator": "In", "values": ["c", "m", "r"]}]
    return pool


async def types_that_run(ground: Ground) -> list[tuple[str, str]]:
    """Type and capacity type of what runs."""
    return sorted((i["type"], i["capacityType"]) for i in await ground.instances() if i["state"] == "running")


async def said(ground: Ground, words: str) -> bool:
    """Whether an Event has these words."""
    events = (await ground.api.get("/api/v1/events")).body.get("items") or []
    return any(words in event["message"] for event in events)


async def a_small_pod_on_a_large_node(ground: Ground, pool: Json) -> str:
    """A large pod brought the node, and has gone. The node's type."""
    await ground.apply(pool)
    await ground.apply(workload("large", POOL, 1, "12"))
    await ground.until(lambda: ground.settled(1), 120, "the large pod runs")
    [(instance_type, _)] = await types_that_run(ground)
    await ground.apply(workload("small", POOL, 1, "1"))
    await ground.until(lambda: ground.settled(2), 120, "the small pod runs beside it")
    assert await types_that_run(ground) == [(instance_type, "spot")], "on the same node"
    await ground.apply(workload("large", POOL, 0, "12"))
    return instance_type


async def test_a_spot_node_is_replaced_by_one_of_fifteen_cheaper_spot_types(choice: Ground) -> None:
    """DIT-67, DIT-70."""
    since = choice.audit.end()
    large = await a_small_pod_on_a_large_node(choice, pool_of("WhenEmptyOrUnderutilized", capacity_type="spot"))

    async def cheaper() -> bool:
        running = await types_that_run(choice)
        return len(running) == 1 and running[0][0] != large and await choice.settled(1)

    await choice.until(cheaper, 150, "the node is replaced by a cheaper one")
    assert [kind for _, kind in await types_that_run(choice)] == ["spot"]
    made = [e.response for e in choice.audit.entries(since) if e.resource == "nodeclaims" and e.verb == "create"]
    last = [r for r in made if r is not None and r.get("kind") == "NodeClaim"][-1]
    [types] = [r["values"] for r in last["spec"]["requirements"] if r["key"] == names.INSTANCE_TYPE]
    assert len(types) == 15 and large not in types
    await choice.assert_one_instance_per_claim()
    await choice.until(lambda: nothing_marked(choice), 120, "the old node is gone")


async def test_a_spot_node_with_fewer_cheaper_types_stays_and_says_so(choice: Ground) -> None:
    few = ("c5.large", "m5.large", "c5.xlarge", "m5.xlarge", "m5.4xlarge")
    large = await a_small_pod_on_a_large_node(choice, pool_of("WhenEmptyOrUnderutilized", few, "spot"))
    await choice.until(lambda: said(choice, "requires 15 cheaper instance type options"), 120, "it says why it stays")
    assert await types_that_run(choice) == [(large, "spot")]


async def test_balanced_leaves_a_node_whose_move_saves_little_and_moves_one_that_saves_much(ground: Ground) -> None:
    """DIS-120 to DIS-131. $0.192 for $0.17 saves 11 % and disturbs everything; $0.192 for $0.085 saves 56 %."""
    await ground.apply(pool_of("Balanced", ("m5.xlarge",)))
    await ground.apply(workload("web", POOL, 1, "1500m"))
    await ground.until(lambda: ground.settled(1), 120, "the pod runs")
    assert await types_that_run(ground) == [("m5.xlarge", "on-demand")]

    await ground.apply(pool_of("Balanced", ("m5.xlarge", "c5.xlarge")))
    [node] = await ground.nodes()

    async def explained() -> bool:
        _, text = await ground.dovetail("explain", "node", node["metadata"]["name"])
        return "the saving is too small for the disturbance (policy Balanced)" in text

    await ground.until(explained, 120, "it says what the move is worth")
    assert await types_that_run(ground) == [("m5.xlarge", "on-demand")]

    await ground.apply(pool_of("Balanced", ("m5.xlarge", "c5.xlarge", "c5.large")))

    async def moved() -> bool:
        return await types_that_run(ground) == [("c5.large", "on-demand")] and await ground.settled(1)

    await ground.until(moved, 150, "the node is replaced by the one that saves much")
    await ground.assert_one_instance_per_claim()
    await ground.until(lambda: nothing_marked(ground), 120, "the old node is gone")
