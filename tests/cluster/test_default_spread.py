"""The kube-scheduler's default spread, told to workers by SCHEDULER_CONFIG: nodes are launched where it wants pods."""

import json

import pytest

from dovetail.model import names
from worlds.cluster.costs import start_worker
from worlds.cluster.ground import Ground
from worlds.cluster.objects import deployment, node_pool

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

SERVICES = "/api/v1/namespaces/default/services"


@pytest.mark.parametrize(("told", "zones"), [(True, 3), (False, 1)])
async def test_pods_of_one_service_get_nodes_in_three_zones(ground: Ground, told: bool, zones: int) -> None:
    """PLC-56. Nothing is told: one zone, the cheapest."""
    constraint = {"maxSkew": 1, "topologyKey": names.ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    document = json.dumps({"podTopologySpread": {"defaultConstraints": [constraint]}})
    start_worker(ground, **({"SCHEDULER_CONFIG": document} if told else {}))
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    }
    assert (await ground.api.post(SERVICES, service)).status == 201
    try:
        await ground.apply(node_pool(consolidate_after="Never"))
        await ground.apply(deployment(3, "3"))
        await ground.until(lambda: ground.settled(3), 120, "three pods run on nodes of their own")
        assert len({i["zone"] for i in await ground.instances() if i["state"] == "running"}) == zones
    finally:
        await ground.api.delete(f"{SERVICES}/web")
        await ground.clear()
        ground.ensure_workers(0)
