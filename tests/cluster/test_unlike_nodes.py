"""Unlike nodes that drift together, on real servers: what crosses Temporal stays far below what its server takes.

Every pod asks for another amount and stands apart from all others, so each node has, and is replaced by one of, other
instance types of the whole catalogue. Fleets of like nodes share one list of types and hide what lists weigh.
"""

from functools import partial

import pytest

from dovetail.messages.sizes import PAYLOAD_BYTES, TASK_BYTES
from dovetail.model.values.json import Json
from tests.system.histories import histories, payload_sizes, task_sizes
from worlds.cluster.fleets import fleet_pool, workload
from worlds.cluster.ground import Ground

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

ALL: Json = {"budgets": [{"nodes": "100%"}]}
CATEGORY = "karpenter.k8s.aws/instance-category"


def any_type(colour: str) -> Json:
    """A pool of on-demand nodes of every general type; another colour drifts its nodes."""
    pool = fleet_pool("web", colour, disruption=ALL)
    requirements = pool["spec"]["template"]["spec"]["requirements"]
    requirements[1:] = [{"key": CATEGORY, "operator": "In", "values": ["c", "m", "r"]}]
    return pool


def apart(number: int, millicores: int) -> Json:
    """A pod of that size that shares its node with no other of these."""
    body = workload(f"unlike-{number}", "web", 1, f"{millicores}m")
    template = body["spec"]["template"]
    template["metadata"]["labels"]["apart"] = "yes"
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"apart": "yes"}}}
    template["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return body


@pytest.mark.parametrize("count", [8, 40], ids=["eight", "forty"])
async def test_unlike_nodes_drift_in_waves_that_temporal_carries(ground: Ground, count: int) -> None:
    await ground.apply(any_type("blue"))
    for number in range(count):
        await ground.apply(apart(number, 600 + 14_000 * number // count))
    await ground.until(partial(ground.settled, count), 60 + 5 * count, "each pod runs on a node of its own")
    old = {claim["metadata"]["name"] for claim in await ground.claims()}
    kinds = {str(claim["metadata"]["labels"]["node.kubernetes.io/instance-type"]) for claim in await ground.claims()}
    await ground.apply(any_type("green"))

    async def replaced() -> bool:
        return not old & {c["metadata"]["name"] for c in await ground.claims()} and await ground.settled(count)

    await ground.until(replaced, 120 + 10 * count, "every node is replaced")

    found = await histories(ground.client, ground.everything.environment["CLUSTER_NAME"])
    tasks = max(max(task_sizes(history), default=0) for history in found)
    payload, event = max(max(payload_sizes(history), default=(0, "")) for history in found)
    print(
        f"{count} nodes of {len(kinds)} types: largest workflow task {tasks} bytes, largest payload {payload} ({event})"
    )
    assert len(old) >= count and len(kinds) > 2  # a small pod may take the node of a large one, which gets another
    assert tasks < TASK_BYTES
    assert payload < PAYLOAD_BYTES
