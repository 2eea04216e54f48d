"""Two pools side by side, one under the policy cost: the same pods on each, and what their instances cost."""

from typing import Any

import pytest

from dovetail.adapters.kwok.instance_types import default_types
from dovetail.model import names
from dovetail.model.values.json import Json
from tests.system.beside import beside
from worlds.stage.stage import Stage, deployment, node_class, node_pool

pytestmark = pytest.mark.temporal
PODS = 6


def pool(name: str, **annotations: str) -> Json:
    """A pool of every type of one architecture and system."""
    made: dict[str, Any] = node_pool([], name, consolidateAfter="Never")
    made["metadata"]["annotations"] = annotations
    made["spec"]["template"]["spec"]["requirements"] = [
        {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
        {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
        {"key": names.CAPACITY_TYPE, "operator": "In", "values": [names.CAPACITY_ON_DEMAND]},
    ]
    return made


def workloads(name: str) -> list[Json]:
    """Pods that fill a node of one cpu and keep apart, and pods that need more than what is left there."""
    term = {"labelSelector": {"matchLabels": {"app": f"apart-{name}"}}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    selector = {names.NODE_POOL: name}
    return [
        deployment(PODS, f"apart-{name}", "900m", nodeSelector=selector, affinity=apart),
        deployment(PODS, f"free-{name}", "600m", nodeSelector=selector),
    ]


def dollars(stage: Stage, of_pool: str) -> float:
    """What the instances of a pool's nodes cost an hour, by what the cloud launched."""
    price = {pool.instance_type: price for each in default_types() for pool, price in each.prices.items()}
    nodes = [node for node in stage.managed_nodes() if node["metadata"]["labels"][names.NODE_POOL] == of_pool]
    return sum(price[node["metadata"]["labels"][names.INSTANCE_TYPE]] for node in nodes)


def selects(pod: Json) -> str:
    """The pool that the pod asks for."""
    return str(pod["spec"]["nodeSelector"][names.NODE_POOL])


@beside
async def test_a_pool_under_the_policy_runs_the_same_pods_for_less(stage: Stage) -> None:
    """PLQ-34, through the front door: the worker, the API server and the cloud."""
    stage.world.apply(node_class())
    stage.world.apply(pool("plain"))
    stage.world.apply(pool("saving", **{names.PLACEMENT: "cost"}))
    for name in ("plain", "saving"):
        for each in workloads(name):
            stage.world.apply(each)

    stage.start_worker()

    await stage.until(lambda: stage.running_pods() == 4 * PODS, 180, "all pods run")
    assert dollars(stage, "saving") < 0.9 * dollars(stage, "plain")
    written = {e.key for e in stage.writes_of_ours(0.0) if (e.operation, e.kind) == ("cluster:patch-status", "Pod")}
    saving = {f"default/{p['metadata']['name']}" for p in stage.world.objects("Pod") if selects(p) == "saving"}
    assert written and written <= saving  # PLQ-36: places are kept there, and no other pod is written to
