"""The shipped policy keeps who may pause, cancel and replace to that, on a real API server, and nobody else."""

from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from testbed.plane.api import ApiClient
from testbed.up import WORKER_USER, give_rights
from worlds.cluster.ground import Ground
from worlds.cluster.objects import node_pool
from worlds.cluster.trouble import BINDINGS, POLICIES

pytestmark = pytest.mark.cluster

FILE: Final = Path(__file__).parents[2] / "deploy" / "kubernetes" / "operators.yaml"
POOL: Final = "/apis/karpenter.sh/v1/nodepools/web"
SYSTEM: Final = "/api/v1/namespaces/kube-system"
OPERATOR, OWNER = "carol", "dave"

ORDERS: Final[list[dict[str, Any]]] = [
    {"metadata": {"annotations": {"dovetail.sh/paused": "all", "dovetail.sh/paused-reason": "an incident"}}},
    {"metadata": {"annotations": {"dovetail.sh/paused": None, "dovetail.sh/launches-resumed": "2026-01-01T00:00:00Z"}}},
    {"metadata": {"annotations": {"dovetail.sh/breaker": None}}},
]
OTHERS: Final[list[dict[str, Any]]] = [
    {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}},
    {"metadata": {"finalizers": ["example.com/kept"]}},
    {"metadata": {"annotations": {"example.com/note": "x"}}},
    {"metadata": {"annotations": {"dovetail.sh/owner": "me"}}},
]


async def test_who_has_the_operators_role_changes_orders_alone(ground: Ground) -> None:
    role, policy, binding, _ = yaml.safe_load_all(FILE.read_text())
    pool = node_pool()
    pool["metadata"]["annotations"] = {"dovetail.sh/breaker": "1700000000x1;"}
    await ground.apply(pool)
    await give_rights(ground.api, OPERATOR, [role])
    wider = {
        **role,
        "metadata": {"name": "wider"},
        "rules": [{**role["rules"][0], "verbs": ["get", "patch", "update"]}],
    }
    await give_rights(ground.api, OWNER, [role, wider])
    for path, body in ((POLICIES, policy), (BINDINGS, binding)):
        assert (await ground.api.post(path, body)).status == 201
    operator, owner, worker = [
        Path(ground.environment_of(user)["KUBECONFIG"]) for user in (OPERATOR, OWNER, WORKER_USER)
    ]
    looks = count()
    try:
        async with ApiClient(operator) as carol, ApiClient(owner) as dave, ApiClient(worker) as ours:

            async def in_force() -> bool:
                label = {"look": str(next(looks))}  # what is there already would change nothing, and be allowed
                return (await carol.patch(POOL, {"metadata": {"labels": label}})).status == 422

            await ground.until(in_force, 60, "the policy is in force")
            for path in (POOL, SYSTEM):
                for order in ORDERS:
                    answer = await carol.patch(path, order)
                    assert answer.status == 200, answer.text
                for other in (*OTHERS, *([{"spec": {"weight": 7}}] if path == POOL else [])):
                    answer = await carol.patch(path, other)
                    assert answer.status == 422 and "dovetail-orders" in answer.text, (other, answer.text)

            assert (await dave.patch(POOL, {"spec": {"weight": 7}})).status == 200, "who may update it may change it"
            assert (await ours.patch(POOL, OTHERS[3])).status == 200, "a worker has not the role"
            assert (await ground.api.patch(POOL, OTHERS[0])).status == 200
    finally:
        for path in (BINDINGS, POLICIES):
            await ground.api.delete(f"{path}/dovetail-orders")
