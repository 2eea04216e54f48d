"""The gate PodDeletionCostManagement on a real API server: the right is its own, and pods say which node goes first."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from dovetail.adapters.kube.guards import DELETION_COSTS
from dovetail.model import names
from dovetail.model.values.json import Json
from testbed.up import WORKER_USER, give_rights
from worlds.cluster.costs import in_force, start_worker
from worlds.cluster.fleets import fleet_pool, workload
from worlds.cluster.ground import Ground

pytestmark = pytest.mark.cluster

RIGHTS = Path(__file__).parents[2] / "deploy" / "kubernetes" / "deletion-costs.yaml"


@pytest_asyncio.fixture(loop_scope="session")
async def ground(ground: Ground) -> AsyncIterator[Ground]:
    """With a worker whose gate is open."""
    await give_rights(ground.api, WORKER_USER, list(yaml.safe_load_all(RIGHTS.read_text())))
    await in_force(ground, DELETION_COSTS)
    await asyncio.to_thread(start_worker, ground, FEATURE_GATES="PodDeletionCostManagement=true")
    yield ground
    await ground.clear()
    ground.kill_workers()  # the next test gets one without the gate


@pytest.mark.soak
async def test_pods_on_the_node_that_disruption_would_take_next_are_given_up_first(ground: Ground) -> None:
    """DIQ-30: a pod that is protected keeps its node out of it, and what stood there is taken away."""
    await ground.apply(fleet_pool("web", disruption={"consolidateAfter": "1h", "budgets": [{"nodes": "100%"}]}))
    await ground.apply(workload("first", "web", 1))
    await ground.apply(
        workload("kept", "web", 1, annotations={names.DO_NOT_DISRUPT: "true", names.POD_DELETION_COST: "7"})
    )
    await ground.until(partial(ground.settled, 2), 120, "two nodes with a pod each")

    async def costs() -> dict[str, str | None]:
        pods: list[Json] = await ground.objects("Pod")
        return {
            pod["metadata"]["labels"]["app"]: (pod["metadata"].get("annotations") or {}).get(names.POD_DELETION_COST)
            for pod in pods
        }

    async def as_wanted() -> bool:
        return await costs() == {"first": "-1", "kept": None}

    await ground.until(as_wanted, 150, "the pods say which node goes first")
