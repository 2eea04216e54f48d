"""Does the model of the kube-scheduler bind as the real one does? The same pods and nodes are given to both.

The real one draws among nodes that score alike, so what is compared is not names: how many pods wait, and how the pods
lie on the nodes.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest

from acceptance.binding.nodes import HOSTNAME, Node
from acceptance.binding.pods import Kinds
from acceptance.binding.scheduler import bound
from acceptance.checker.values import amounts
from dovetail.model.values.json import Json
from testbed.plane import KUBELET_ALIVE, KUBELET_LABEL, ApiClient

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

NODES, ZONE = "/api/v1/nodes", "topology.kubernetes.io/zone"
ONLY = "dovetail.test/only-for"
COUNT = 120


@pytest.fixture
async def namespace(api: ApiClient) -> AsyncIterator[str]:
    name = f"test-{uuid.uuid4().hex[:8]}"
    await api.post("/api/v1/namespaces", {"metadata": {"name": name}})
    await api.wait_for(f"/api/v1/namespaces/{name}/serviceaccounts/default", lambda answer: answer.status == 200)
    yield name
    await api.delete(f"/api/v1/namespaces/{name}", {"gracePeriodSeconds": 0})
    for node in _names(name):
        await api.delete(f"{NODES}/{node}")


def _names(namespace: str) -> list[str]:
    return [f"{namespace}-{number}" for number in range(12)]


def _nodes(namespace: str) -> list[Node]:
    """Three zones, three sizes, too little for all pods."""
    found = []
    for number, name in enumerate(_names(namespace)):
        cpu = 4 << number % 3
        room = {"cpu": str(cpu), "memory": f"{3 * cpu}Gi", "pods": "40"}
        labels = {HOSTNAME: name, ZONE: f"zone-{number // 4}", ONLY: namespace, KUBELET_LABEL: KUBELET_ALIVE}
        taint = {"key": ONLY, "value": namespace, "effect": "NoSchedule"}
        found.append(Node(name, labels, (taint,), amounts(room), 1.0))
    return found


def _pods(namespace: str, chance: np.random.Generator) -> list[Json]:
    """Plain ones, some that spread over zones, some that keep apart, some that keep together."""
    host = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "apart"}}}
    zone = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "affine"}}}
    spread = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "spread"}}}
    rules: dict[str, Json] = {
        "plain": {},
        "spread": {"topologySpreadConstraints": [{**spread, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]},
        "apart": {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [host]}}},
        "affine": {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [zone]}}},
    }
    found = []
    for number in range(COUNT):
        app = str(chance.choice(["plain", "plain", "spread", "apart", "affine"]))
        cpu, memory = chance.choice([250, 500, 1000, 1500]), chance.choice([256, 1024, 4096])
        requests = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
        spec = {
            "containers": [{"name": "c", "image": "none", "resources": {"requests": requests}}],
            "nodeSelector": {ONLY: namespace},
            "tolerations": [{"key": ONLY, "operator": "Exists"}],
            **rules[app],
        }
        metadata = {"name": f"p{number:03d}", "namespace": namespace, "labels": {"app": app}}
        found.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    return found


async def _real(api: ApiClient, namespace: str, nodes: list[Node], pods: list[Json]) -> dict[str, str]:
    """The nodes join, then the pods come one after the other, each when the one before has been judged."""
    for node in nodes:
        room = {name: str(int(amount)) for name, amount in node.room.items()}
        body: dict[str, Any] = {
            "metadata": {"name": node.name, "labels": dict(node.labels)},
            "spec": {"providerID": f"aws:///test/{node.name}", "taints": list(node.taints)},
            "status": {"capacity": room, "allocatable": room},
        }
        assert (await api.post(NODES, body)).status == 201
    for node in nodes:
        await api.wait_for(f"{NODES}/{node.name}", _is_open)
    path = f"/api/v1/namespaces/{namespace}/pods"
    for pod in pods:
        assert (await api.post(path, pod)).status == 201
        await api.wait_for(f"{path}/{pod['metadata']['name']}", _is_judged)
    listed = (await api.get(path)).body["items"]
    return {p["metadata"]["name"]: p["spec"]["nodeName"] for p in listed if p["spec"].get("nodeName")}


def _is_open(answer: Any) -> bool:
    return not any(t["key"] == "node.kubernetes.io/not-ready" for t in answer.body["spec"].get("taints") or ())


def _is_judged(answer: Any) -> bool:
    conditions = answer.body.get("status", {}).get("conditions") or ()
    return any(each["type"] == "PodScheduled" for each in conditions)


def _equal_share(one: dict[str, str], other: dict[str, str], pods: list[Json]) -> float:
    """The share of pods that lie alike: by kind of pod and size of node."""
    kinds = Kinds()

    def lying(where: dict[str, str]) -> Counter[tuple[int, int]]:
        numbered = ((kinds.of(pod).number, where.get(pod["metadata"]["name"], "-1")) for pod in pods)
        return Counter((kind, -1 if name == "-1" else int(name.rsplit("-", 1)[1]) % 3) for kind, name in numbered)

    return (lying(one) & lying(other)).total() / len(pods)


async def test_the_model_binds_as_the_real_one(api: ApiClient, namespace: str) -> None:
    nodes, pods = _nodes(namespace), _pods(namespace, np.random.default_rng(7))

    real = await _real(api, namespace, nodes, pods)
    modelled = [bound(nodes, pods, seed) for seed in range(5)]

    shares = [_equal_share(real, each, pods) for each in modelled]
    among = [_equal_share(modelled[0], each, pods) for each in modelled[1:]]
    print(f"of {COUNT} pods the real one left {COUNT - len(real)}, the model {[COUNT - len(m) for m in modelled]}; ")
    print(f"lying alike: {[f'{share:.2f}' for share in shares]}, the model with itself {[f'{s:.2f}' for s in among]}")
    lefts = [COUNT - len(each) for each in modelled]
    assert min(lefts) - 2 <= COUNT - len(real) <= max(lefts) + 2
    assert max(shares) >= min(among) - 0.1
