"""Expiry with a replacement first: the recorded scenario, two nodes of one age with six pods on them.

Upstream deletes both within a second and makes replacements afterwards: all six pods are down for the start of a node.
"""

import pytest

from dovetail.model import names
from dovetail.model.values.json import Json
from worlds.stage.stage import Stage, deployment, node_class, node_pool

pytestmark = [pytest.mark.temporal, pytest.mark.soak]  # its nodes grow old by the clock: minutes a case

PODS = 6
LIFETIME = 120


def an_expiring_pool(asked_on: str) -> Json:
    """Nodes that live for two minutes; who asks for a replacement first."""
    pool = node_pool(["c-2x-amd64-linux"], consolidateAfter="Never")
    pool["spec"]["template"]["spec"]["expireAfter"] = f"{LIFETIME}s"
    asks = {"annotations": {names.REPLACE_FIRST: "true"}}
    if asked_on == "pool":
        pool["metadata"] |= asks
    if asked_on == "claim":
        pool["spec"]["template"]["metadata"] = asks
    return pool


def ready_pods(stage: Stage) -> int:
    """Pods that serve, those among them that are leaving and still serve."""
    pods = stage.world.objects("Pod")
    return sum(any(c["type"] == "Ready" and c["status"] == "True" for c in _conditions(p)) for p in pods)


def _conditions(pod: Json) -> list[Json]:
    found: list[Json] = pod.get("status", {}).get("conditions") or []
    return found


@pytest.mark.parametrize(("asked_on", "served"), [("pool", True), ("claim", True), ("nowhere", False)])
async def test_two_nodes_of_one_age_expire_without_an_unready_pod_where_that_is_asked_for(
    stage: Stage, asked_on: str, served: bool
) -> None:
    """LIF-61, DIS-181; nowhere: v1's rule, which shows that this world notices the difference."""
    stage.world.set(boot=10.0, pod_stop=8.0)
    stage.start_worker()
    stage.world.apply(node_class())
    stage.world.apply(an_expiring_pool(asked_on))
    stage.world.apply(deployment(PODS, cpu="500m"))
    await stage.until(lambda: ready_pods(stage) == PODS, LIFETIME, "six pods are ready before the first node expires")
    old = {c["metadata"]["uid"] for c in stage.claims()}
    assert len(old) == 2

    counts: set[int] = set()

    def over() -> bool:
        counts.add(min(PODS, ready_pods(stage)))
        return not old & {c["metadata"]["uid"] for c in stage.claims()}

    await stage.until(over, 2 * LIFETIME, "both nodes have expired and are gone")

    assert (min(counts) == PODS) is served, counts
