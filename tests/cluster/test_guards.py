"""Rights that would be the whole cluster are kept to what they are for, and one whose policy is not proven is not used.

The attacks are tried under the worker's own identity; what the worker does with these rights it does by its own code.
"""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest
import pytest_asyncio
import yaml

from dovetail.adapters.kube.client import Client
from dovetail.adapters.kube.connection import ClusterAddress
from dovetail.adapters.kube.failures import Answer
from dovetail.adapters.kube.guards import DELETION_COSTS, MOVES, PLACES, Guard, GuardedRight, why_unproven
from dovetail.adapters.kube.inspection import KubeInspection, Need
from dovetail.adapters.kube.objects.deployments import KubeDeployments
from dovetail.adapters.kube.objects.nodes import KubeNodes
from dovetail.adapters.kube.objects.pods import KubePods
from dovetail.adapters.kube.objects.pools import KubeNodePools
from dovetail.adapters.kube.raw import KubeRawObjects
from dovetail.adapters.kube.requests import Request
from dovetail.adapters.kubernetes_json.parsing.deployments import parse_deployment
from dovetail.adapters.kubernetes_json.parsing.nodes import parse_node
from dovetail.adapters.kubernetes_json.parsing.pods import parse_pod
from dovetail.model import names
from dovetail.model.nodes import Node
from dovetail.model.objects.workloads import Deployment
from dovetail.model.places.move_changes import beginning
from dovetail.model.pods import Pod
from dovetail.model.values.json import Json
from dovetail.ports.failures import Conflict, Forbidden
from dovetail.ports.objects import MetadataChange
from dovetail.termination.announced import drained, draining, planned, undone
from testbed.plane.api import ApiClient
from testbed.up import POLICY_PATHS, SHIPPED_USER, WORKER_USER, give_rights
from worlds.cluster.fleets import fleet_pool, workload
from worlds.cluster.ground import Ground
from worlds.cluster.objects import DEPLOYMENTS

T = TypeVar("T")

pytestmark = pytest.mark.cluster

FOLDER: Final = Path(__file__).parents[2] / "deploy" / "kubernetes"
PODS: Final = "/api/v1/namespaces/default/pods"
NODES: Final = "/api/v1/nodes"
STRATEGIC: Final = "strategic"
MERGED: Final = "merge"
POOLS: Final = "/apis/karpenter.sh/v1/nodepools"
NODE_CLASSES: Final = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"
NOW: Final = 1_790_000_000.0
POLICIES: Final = POLICY_PATHS["ValidatingAdmissionPolicy"]
BINDINGS: Final = POLICY_PATHS["ValidatingAdmissionPolicyBinding"]

OF_A_POD: Final[dict[str, Json]] = {
    "image": {"spec": {"containers": [{"name": "c", "image": "evil/own:1"}]}},
    "deadline": {"spec": {"activeDeadlineSeconds": 1}},
    "label": {"metadata": {"labels": {"app": "mine"}}},
    "another annotation": {"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}},
    "finalizer": {"metadata": {"finalizers": ["example.com/mine"]}},
    "owner": {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "o"}]}},
    "its cost and an image": {
        "metadata": {"annotations": {names.POD_DELETION_COST: "1"}},
        "spec": {"containers": [{"name": "c", "image": "evil/own:1"}]},
    },
}
OF_ITS_STATUS: Final[dict[str, Json]] = {
    "address": {"status": {"podIP": "6.6.6.6", "podIPs": [{"ip": "6.6.6.6"}]}},
    "host": {"status": {"hostIP": "6.6.6.6"}},
    "phase": {"status": {"phase": "Succeeded"}},
    "condition": {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
    "label": {"metadata": {"labels": {"app": "mine"}}},
    "annotation": {"metadata": {"annotations": {"a": "b"}}},
    "its place and an address": {"status": {"nominatedNodeName": "n", "podIP": "6.6.6.6"}},
}
OF_A_NODE: Final[dict[str, Json]] = {
    "addresses": {"status": {"addresses": [{"type": "InternalIP", "address": "6.6.6.6"}]}},
    "port of its kubelet": {"status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 6666}}}},
    "capacity": {"status": {"capacity": {"cpu": "999"}}},
    "readiness": {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
    "another condition": {"status": {"conditions": [{"type": "Mine", "status": "True"}]}},
    "label": {"metadata": {"labels": {"a": "b"}}},
    "ours and addresses": {
        "status": {
            "conditions": [{"type": "Drained", "status": "True"}],
            "addresses": [{"type": "InternalIP", "address": "6.6.6.6"}],
        }
    },
}
OF_A_POOL: Final[dict[str, Json]] = {
    "limits": {"spec": {"limits": {"cpu": "100000"}}},
    "label": {"metadata": {"labels": {"app": "mine"}}},
}
OF_A_CLASS: Final[dict[str, Json]] = {
    "what its nodes run": {"spec": {"userData": "#!/bin/sh"}},
    "label": {"metadata": {"labels": {"app": "mine"}}},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A pod, a Deployment and a Node that nobody works on, and two clients under the worker's identity."""

    ground: Ground
    pod: Pod
    deployment: Deployment
    worker: ApiClient
    client: Client

    async def node(self) -> Node:
        return parse_node((await self.ground.api.get(f"{NODES}/kept")).body)

    async def seen(self) -> Pod:
        return parse_pod((await self.ground.api.get(f"{PODS}/kept")).body)

    async def refuses(self, right: GuardedRight) -> bool:
        tried = self.deployment if right is MOVES else self.pod
        return await why_unproven(self.client, right, "default", tried.name) == ""

    async def refused(self, path: str, policy: str, changes: dict[str, Json], form: str = STRATEGIC) -> None:
        """Each of them, by that policy; a person may write them."""
        for what, change in changes.items():
            answer = await self.worker.patch(path, change, form)
            assert answer.status == 422 and f"'{policy}' with binding" in answer.text, f"{what}: {answer.text}"
        labelled = await self.ground.api.patch(f"{path}?dryRun=All", changes["label"], form)
        assert labelled.status == 200, labelled.text


@pytest_asyncio.fixture(loop_scope="session")
async def scene(ground: Ground) -> AsyncIterator[Scene]:
    for file in ("moves", "deletion-costs", "places"):
        await give_rights(ground.api, WORKER_USER, list(yaml.safe_load_all((FOLDER / f"{file}.yaml").read_text())))
    meta = {"name": "kept", "labels": {"app": "kept"}}
    spec = {"schedulerName": "nobody", "containers": [{"name": "c", "image": "web:1"}]}
    address = {"type": "InternalIP", "address": "10.0.0.9"}
    node = {
        "metadata": meta,
        "spec": {"unschedulable": True},
        "status": {"addresses": [address], "conditions": [{"type": "Ready", "status": "True", "reason": "R"}]},
    }
    applied = workload("kept", "", 0)
    for path, body in ((PODS, {"metadata": meta, "spec": spec}), (NODES, node), (DEPLOYMENTS, applied)):
        answer = await ground.api.post(path, body)
        assert answer.status == 201, answer.text
    kubeconfig = Path(ground.everything.environment["KUBECONFIG"])
    client = Client(ClusterAddress(kubeconfig=kubeconfig))
    await client.open()
    pod = parse_pod((await ground.api.get(f"{PODS}/kept")).body)
    found = (await ground.api.get(f"{DEPLOYMENTS}/kept")).body
    deployment = parse_deployment(found, moves=True, followed=False)
    try:
        async with ApiClient(kubeconfig) as worker:
            built = Scene(ground=ground, pod=pod, deployment=deployment, worker=worker, client=client)
            for right in (MOVES, DELETION_COSTS, PLACES):
                await ground.until(partial(built.refuses, right), 60, f"{right.policy} is in force")
            yield built
    finally:
        await client.close()
        for path in (PODS, NODES, DEPLOYMENTS):
            await ground.api.delete(f"{path}/kept")


async def test_a_stolen_worker_changes_nothing_of_a_pod_but_its_deletion_cost(scene: Scene) -> None:
    """OPS-5."""
    await scene.refused(f"{PODS}/kept", DELETION_COSTS.policy, OF_A_POD)

    pods = KubePods(scene.client, clock=time.time)
    for value in ("-1", "7", None):
        await pods.annotate(await scene.seen(), names.POD_DELETION_COST, value)
        found = (await scene.ground.api.get(f"{PODS}/kept")).body["metadata"].get("annotations") or {}
        assert found.get(names.POD_DELETION_COST) == value


async def test_a_stolen_worker_changes_nothing_of_a_pod_s_status_but_its_place(scene: Scene) -> None:
    """OPS-5."""
    await scene.refused(f"{PODS}/kept/status", PLACES.policy, OF_ITS_STATUS)

    pods = KubePods(scene.client, clock=time.time)
    for node in ("node-1", "node-2", ""):
        await pods.nominate(await scene.seen(), node)
        assert (await scene.seen()).nominated_node == node


async def test_a_stolen_worker_changes_nothing_of_a_node_s_status_but_what_it_says_of_its_leaving(scene: Scene) -> None:
    """OPS-5."""
    await scene.refused(f"{NODES}/kept/status", "dovetail-node-status", OF_A_NODE)

    nodes = KubeNodes(scene.client, lookups=None)
    for said in (planned, draining):
        await nodes.set_conditions(await scene.node(), said(await scene.node(), NOW, "Drifted"))
    await nodes.set_conditions(await scene.node(), drained(await scene.node(), NOW))
    found = {each.type: each.status for each in (await scene.node()).conditions}
    assert found == {"Ready": "True", "MaintenancePlanned": "True", "DrainInProgress": "False", "Drained": "True"}
    await nodes.set_conditions(await scene.node(), undone(await scene.node(), NOW))
    assert {each.status for each in (await scene.node()).conditions if each.type != "Ready"} == {"False"}


async def test_a_stolen_worker_changes_nothing_of_what_new_nodes_run_and_how_much_is_bought(scene: Scene) -> None:
    """OPS-5. Its own code writes annotations and finalizers there."""
    ground = scene.ground
    await ground.apply(fleet_pool("kept"))
    try:
        await scene.refused(f"{POOLS}/kept", "dovetail-specs", OF_A_POOL, MERGED)
        await scene.refused(f"{NODE_CLASSES}/default", "dovetail-specs", OF_A_CLASS, MERGED)

        pools = KubeNodePools(scene.client)
        hashed = MetadataChange(annotations={names.NODE_POOL_HASH: "1"})
        pool = await at_its_latest(partial(pools.read, "kept"), lambda pool: pools.patch(pool, hashed))
        assert pool.annotations[names.NODE_POOL_HASH] == "1"
        classes = KubeRawObjects(scene.client, "EC2NodeClass", NODE_CLASSES)
        read = partial(classes.read, "default")
        kept = (await ground.api.get(f"{NODE_CLASSES}/default")).body["metadata"].get("finalizers") or []
        for finalizers in ([*kept, "karpenter.k8s.aws/termination"], kept or None):
            change = {"metadata": {"finalizers": finalizers, "annotations": {"a": "b"}}}
            raw = await at_its_latest(read, partial(classes.patch, change=change))
            assert raw["metadata"]["annotations"]["a"] == "b"
        await classes.merge("default", {"metadata": {"annotations": {"a": None}}})
    finally:
        await ground.api.delete(f"{POOLS}/kept")


async def at_its_latest(read: Callable[[], Awaitable[T | None]], write: Callable[[T], Awaitable[T | None]]) -> T:
    """The object as written, read again where one of the workers, which write there too, has been faster."""
    while True:
        found = await read()
        assert found is not None
        with suppress(Conflict):
            written = await write(found)
            assert written is not None
            return written


def another_identity(policy: Json) -> Json:
    [condition] = policy["spec"]["matchConditions"]
    of_another = {**condition, "expression": f'request.userInfo.username == "{SHIPPED_USER}"'}
    return {"spec": {"matchConditions": [of_another]}}


def another_condition(policy: Json) -> Json:
    never = {"name": "elsewhere", "expression": 'request.namespace == "kube-system"'}
    return {"spec": {"matchConditions": [*policy["spec"]["matchConditions"], never]}}


def elsewhere(policy: Json) -> Json:
    chosen = {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}
    return {"spec": {"matchConstraints": {**policy["spec"]["matchConstraints"], "namespaceSelector": chosen}}}


@asynccontextmanager
async def changed(scene: Scene, right: GuardedRight, how: Any) -> AsyncIterator[None]:
    """Until the end of the block the policy is another; afterwards it is as it was, and in force."""
    path = f"{POLICIES}/{right.policy}"
    policy = (await scene.ground.api.get(path)).body

    async def passes() -> bool:
        return not await scene.refuses(right)

    answer = await scene.ground.api.patch(path, how(policy))
    assert answer.status == 200, answer.text
    try:
        await scene.ground.until(passes, 60, f"{right.policy} lets the worker pass")
        yield
    finally:
        spec = {"matchConditions": policy["spec"]["matchConditions"], "matchConstraints": {"namespaceSelector": None}}
        assert (await scene.ground.api.patch(path, {"spec": spec})).status == 200
        await scene.ground.until(partial(scene.refuses, right), 60, f"{right.policy} is in force again")


@pytest.mark.parametrize("right", [DELETION_COSTS, PLACES, MOVES], ids=lambda right: right.policy)
@pytest.mark.parametrize("how", [another_identity, another_condition, elsewhere])
async def test_a_policy_that_means_others_is_not_believed(scene: Scene, right: GuardedRight, how: Any) -> None:
    """TRM-45. Nothing is written then, and `doctor` says so."""
    pods, deployments = KubePods(scene.client, clock=time.time), KubeDeployments(scene.client)
    assert scene.deployment.roll_out is not None
    begun = beginning(scene.deployment.roll_out, "n", NOW)
    uses: dict[str, Callable[[], Awaitable[object]]] = {
        DELETION_COSTS.policy: partial(pods.annotate, scene.pod, names.POD_DELETION_COST, "1"),
        PLACES.policy: partial(pods.nominate, scene.pod, "node-1"),
        MOVES.policy: partial(deployments.annotate, scene.deployment, begun),
    }
    inspection = KubeInspection(
        scene.client, need=Need(keeps_places=True, moves=True, deletion_costs=True), gated=(), node_classes=()
    )
    async with changed(scene, right, how):
        with pytest.raises(Forbidden, match=f"the admission policy {right.policy} does not refuse"):
            await uses[right.policy]()
        [said] = (await inspection.facts()).unproven
        assert right.policy in said and "it was accepted" in said
    assert (await scene.seen()).resource_version == scene.pod.resource_version
    assert (await inspection.facts()).unproven == ()


@pytest.mark.parametrize("right", [DELETION_COSTS, MOVES], ids=lambda right: right.policy)
async def test_who_may_edit_a_namespace_makes_no_policy_look_as_if_it_let_pass(
    scene: Scene, right: GuardedRight
) -> None:
    """TRM-45. Decisions count no pod of the cluster as movable while a change has passed: a tenant that writes what is
    tried on its own object, so that trying it changes nothing, must not bring that about."""
    tried, guard = Overheard(scene.client), Guard(scene.client, right)
    name = scene.deployment.name if right is MOVES else scene.pod.name
    assert await why_unproven(tried, right, "default", name) == ""
    tenant = "tenant-of-default"
    await allow_to_edit(scene.ground, tenant)
    path = f"{DEPLOYMENTS}/{name}" if right is MOVES else f"{PODS}/{name}"
    async with ApiClient(Path(scene.ground.environment_of(tenant)["KUBECONFIG"])) as client:

        async def written() -> bool:
            answer = await client.patch(path, tried.body)
            return answer.status == 200

        await scene.ground.until(written, 60, "the tenant has written what was tried")

    await guard.look(("default", name))
    assert guard.stands and await guard.insist("default", name)


class Overheard:
    """A client whose last body is known to all."""

    def __init__(self, client: Client) -> None:
        self._client, self.body = client, Json()

    async def call(self, request: Request) -> Answer:
        self.body = request.body
        return await self._client.call(request)


async def allow_to_edit(ground: Ground, user: str) -> None:
    """The ClusterRole `edit` in the namespace default, and nothing else."""
    group = "rbac.authorization.k8s.io"
    binding = {
        "metadata": {"name": user},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }
    answer = await ground.api.post(f"/apis/{group}/v1/namespaces/default/rolebindings", binding)
    assert answer.status in {201, 409}, answer.text


async def test_a_right_that_is_missing_proves_no_policy(scene: Scene) -> None:
    """RBAC's refusal of a pod that has the policy's name speaks of that name."""
    nobody = Client(ClusterAddress(kubeconfig=Path(scene.ground.environment_of("nobody")["KUBECONFIG"])))
    await nobody.open()
    try:
        for right in (DELETION_COSTS, PLACES, MOVES):
            why = await why_unproven(nobody, right, "default", right.policy)
            assert why is not None and "cannot patch" in why
    finally:
        await nobody.close()
    assert await why_unproven(scene.client, DELETION_COSTS, "default", "gone") is None
