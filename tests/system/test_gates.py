"""Node repair and static pools on the simulated world, workers and all, behind their gates."""

import pytest

from dovetail.model import names
from dovetail.model.values.json import Json
from tests.system.beside import beside
from worlds.stage.stage import Stage, deployment, has_condition, node_class, node_pool

pytestmark = pytest.mark.temporal

TYPE = "c-2x-amd64-linux"


def static_pool(replicas: int, colour: str = "blue", **spec: object) -> Json:
    pool = node_pool([TYPE])
    pool["spec"] |= {"replicas": replicas, **spec}
    pool["spec"]["template"]["metadata"] = {"labels": {"colour": colour}}
    return pool


def live(stage: Stage) -> list[Json]:
    """The claims that stay."""
    return [c for c in stage.claims() if "deletionTimestamp" not in c["metadata"]]


def stand(stage: Stage, count: int) -> bool:
    """Exactly that many claims, all initialised, none leaving, an instance each."""
    claims = stage.claims()
    ready = all(has_condition(c, names.INITIALIZED_CONDITION) for c in claims)
    return len(claims) == len(live(stage)) == len(stage.world.live_instances()) == count and ready


def most_at_once(stage: Stage) -> int:
    """How many claims ever stood side by side, read from the creations and deletions of the world's feed."""
    lives = [c["metadata"] for c in (*stage.departed("NodeClaim"), *stage.claims())]
    moments: set[str] = {m["creationTimestamp"] for m in lives}
    ends = {c["metadata"]["uid"]: c["metadata"].get("deletionTimestamp", "9") for c in stage.departed("NodeClaim")}
    counts: list[int] = [sum(m["creationTimestamp"] <= at < ends.get(m["uid"], "9") for m in lives) for at in moments]
    return max(counts)


@beside
async def test_a_static_pool_keeps_its_number_through_growing_shrinking_and_a_killed_worker(stage: Stage) -> None:
    """NPL-40 to NPL-44, BEH-96, BEH-97, DUR-21: two workers, one of which dies in the middle; never one too many."""
    stage.world.apply(node_class())
    stage.world.apply(static_pool(4))
    for _ in range(2):
        stage.start_worker(FEATURE_GATES="StaticCapacity=true")

    await stage.until(lambda: len(stage.claims()) >= 1, 60, "the first claim stands")
    stage.kill(stage.workers[0])
    await stage.until(lambda: stand(stage, 4), 90, "four nodes stand")
    stage.world.apply(static_pool(6))
    await stage.until(lambda: stand(stage, 6), 60, "six nodes stand")
    stage.world.delete("NodeClaim", live(stage)[0]["metadata"]["name"])
    await stage.until(lambda: len(stage.departed("NodeClaim")) == 1 and stand(stage, 6), 60, "the lost one is refilled")
    stage.world.apply(static_pool(2))
    await stage.until(lambda: stand(stage, 2), 60, "two nodes are left")
    stage.world.apply(static_pool(0))
    await stage.until(stage.nothing_left, 60, "none is left")

    assert most_at_once(stage) <= 6
    assert set(stage.instances_by_claim().values()) == {1}
    assert len(stage.instances_by_claim()) == 7


@pytest.mark.soak
async def test_a_static_pool_drifts_within_its_limit_of_nodes(stage: Stage) -> None:
    """DIS-75 to DIS-78, NPL-42, BEH-126: a replacement first, and never more nodes than the limit."""
    limits = {"nodes": "3"}
    stage.world.apply(node_class())
    stage.world.apply(static_pool(2, limits=limits))
    stage.start_worker(FEATURE_GATES="StaticCapacity=true")
    await stage.until(lambda: stand(stage, 2), 60, "two nodes stand")
    old = {c["metadata"]["uid"] for c in stage.claims()}

    stage.world.apply(static_pool(2, colour="green", limits=limits))
    await stage.until(
        lambda: stand(stage, 2) and not old & {c["metadata"]["uid"] for c in stage.claims()}, 150, "both are replaced"
    )

    assert most_at_once(stage) <= 3
    assert len(stage.instances_by_claim()) == 4


@beside
async def test_without_the_gate_a_static_pool_gets_nothing(stage: Stage) -> None:
    """PLM-13: a dynamic pool beside it shows that the worker works."""
    stage.world.apply(node_class())
    stage.world.apply(static_pool(2))
    stage.world.apply(node_pool([TYPE], name="dynamic"))
    stage.world.apply(deployment(1))
    stage.start_worker()

    await stage.until(lambda: stage.running_pods() == 1, 90, "the dynamic pool's pod runs")

    pools = {c["metadata"]["labels"][names.NODE_POOL] for c in stage.claims()}
    assert pools == {"dynamic"}


@pytest.mark.parametrize("legacy", ["false", "true"])
@beside
async def test_a_silent_node_is_repaired_and_its_pods_run_elsewhere(stage: Stage, legacy: str) -> None:
    """GCR-15, GCR-16, GCR-20, BEH-40, BEH-44, BEH-47: with a replacement first or at once, whatever its pods ask
    for."""
    stage.world.set(repair=3.0)
    stage.start_worker(FEATURE_GATES="NodeRepair=true", LEGACY_NODE_REPAIR=legacy)
    stage.apply_pool()
    held = deployment(1)
    held["spec"]["template"]["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "true"}
    stage.world.apply(held)
    await stage.until(lambda: stage.running_pods() == 1 and stage.initialised(1), 90, "the pod runs")
    [claim] = stage.claims()

    stage.world.silence(claim["status"]["nodeName"])
    await stage.until(lambda: claim["metadata"]["uid"] not in _uids(stage), 150, "the silent node is gone")
    await stage.until(lambda: stage.running_pods() == 1, 60, "the pod runs elsewhere")

    [gone] = [c for c in stage.departed("NodeClaim") if c["metadata"]["uid"] == claim["metadata"]["uid"]]
    deadline = gone["metadata"]["annotations"][names.TERMINATION_DEADLINE]
    assert deadline <= gone["metadata"]["deletionTimestamp"]


def _uids(stage: Stage) -> set[str]:
    return {c["metadata"]["uid"] for c in stage.claims()}
