"""The cloud kwok on a real control plane: the adapter as the worker wires it, and a person with kubectl."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from dovetail.adapters.kube.adapter import KubeAdapter
from dovetail.adapters.kube.connection import ClusterAddress
from dovetail.adapters.kube.raw import KubeRawObjects
from dovetail.adapters.kubernetes_json.kinds import raw_kind
from dovetail.adapters.kubernetes_json.parsing.pools import parse_node_pool
from dovetail.adapters.kwok import names as own
from dovetail.adapters.kwok.catalogues import KwokCatalogues
from dovetail.adapters.kwok.cloud import KwokCloud, KwokCloudParts
from dovetail.adapters.kwok.instance_types import default_types
from dovetail.adapters.kwok.instances import SELECTOR
from dovetail.adapters.kwok.node_class import KwokClasses, KwokShortages
from dovetail.model import names
from dovetail.model.nodes import NodeClaim, NodeClassRef
from dovetail.model.pods import Expression
from dovetail.model.pools import NodePool
from dovetail.model.values.json import Json
from dovetail.ports.cloud import Catalogues, Cloud, Instance
from testbed.plane import ApiClient, AuditLog, PlaneState
from tests.ports.objects import a_new_claim
from tests.ports.worlds.contract import eventually, unique

CLASSES = "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses"
NODES = "/api/v1/nodes"
RAW_CLASS = raw_kind(own.KIND, CLASSES)
FORGOTTEN_SECONDS = 181.0  # shortages are, after so long


class RealKwokCloudWorld:
    """What is sold out stands on every class, as if a cloud ran dry; the clock of shortages alone is moved by hand."""

    def __init__(self, adapter: KubeAdapter, admin: ApiClient, audit: AuditLog) -> None:
        self._adapter, self._admin, self._audit, self._later = adapter, admin, audit, 0.0
        classes = KwokClasses(lambda: adapter.raw_objects(own.KIND))
        shortages = KwokShortages(lambda: time.time() + self._later)
        objects = KubeRawObjects(adapter.client, "Node", NODES)
        self.catalogues: Catalogues = KwokCatalogues(classes, default_types(), shortages)
        self.cloud: Cloud = KwokCloud(
            KwokCloudParts(
                classes=classes, types=default_types(), shortages=shortages, objects=objects, nodes=adapter.nodes
            )
        )

    async def node_class(self, name: str) -> NodeClassRef:
        body = {"apiVersion": f"{own.GROUP}/v1alpha1", "kind": own.KIND, "metadata": {"name": name}, "spec": {}}
        answer = await self._admin.post(CLASSES, body)
        assert answer.status == 201, answer.text
        await self._seen(name, lambda raw: raw is not None)
        return NodeClassRef(group=own.GROUP, kind=own.KIND, name=name)

    async def claim(self, node_class: NodeClassRef) -> NodeClaim:
        new = a_new_claim(
            unique("claim"),
            finalizers=(),
            node_class=node_class,
            requirements=(Expression(key=names.OS, operator="In", values=("linux",)),),
            requests={"cpu": 10**9, "memory": 2**30, "pods": 3},
        )
        return await self._adapter.claims.create(new)

    async def pool(self, node_class: NodeClassRef) -> NodePool:
        reference = {"group": node_class.group, "kind": node_class.kind, "name": node_class.name}
        spec = {"template": {"spec": {"nodeClassRef": reference, "requirements": []}}}
        body = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": unique("pool")}, "spec": spec}
        answer = await self._admin.post("/apis/karpenter.sh/v1/nodepools", body)
        assert answer.status == 201, answer.text
        return parse_node_pool(answer.body)

    async def change_class(self, node_class: NodeClassRef) -> None:
        await self._change(node_class.name, {"spec": {"maxPods": 50}})

    async def remove_class(self, node_class: NodeClassRef) -> None:
        answer = await self._admin.delete(f"{CLASSES}/{node_class.name}")
        assert answer.status == 200, answer.text
        await self._seen(node_class.name, lambda raw: raw is None)

    async def make_class_unready(self, node_class: NodeClassRef) -> None:
        changed = "2026-01-01T00:00:00Z"
        unready = {
            "type": "Ready",
            "status": "False",
            "reason": "MadeSo",
            "message": "made so",
            "lastTransitionTime": changed,
        }
        await self._change(node_class.name, {"status": {"conditions": [unready]}}, "/status")

    async def make_short(self, instance: Instance | None) -> None:
        pattern = "*"
        if instance is not None:
            keys = (names.INSTANCE_TYPE, names.ZONE, names.CAPACITY_TYPE)
            pattern = "/".join(instance.labels[key] for key in keys)
        await self._sell_out(pattern)

    async def end_shortages(self) -> None:
        await self._sell_out(None)
        self._later += FORGOTTEN_SECONDS

    async def foreign_instance(self) -> str:
        """A node of kind's, which kwok plays."""
        foreign = unique("node")
        provider_id = f"kind://docker/kind/{foreign}"
        labels = {own.PLAYED: own.FAKE}
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": foreign, "labels": labels}}
        answer = await self._admin.post(NODES, {**body, "spec": {"providerID": provider_id}})
        assert answer.status == 201, answer.text
        return provider_id

    async def launches(self) -> int:
        """By the API server's own account: the adapter's user agent is `dovetail/…`."""
        ours = [each for each in self._audit.entries() if each.user_agent.startswith("dovetail/")]
        return sum((each.verb, each.resource, each.code) == ("create", "nodes", 201) for each in ours)

    async def clear(self) -> None:
        """The session's other tests find no node of these."""
        for raw in (await self._admin.get(f"{NODES}?labelSelector={SELECTOR}")).body["items"]:
            await self._admin.delete(f"{NODES}/{raw['metadata']['name']}")

    async def _sell_out(self, pattern: str | None) -> None:
        for raw in (await self._admin.get(CLASSES)).body["items"]:
            await self._change(raw["metadata"]["name"], {"metadata": {"annotations": {own.SOLD_OUT: pattern}}})

    async def _change(self, name: str, change: Json, subresource: str = "") -> None:
        answer = await self._admin.patch(f"{CLASSES}/{name}{subresource}", change)
        assert answer.status == 200, answer.text
        version = answer.body["metadata"]["resourceVersion"]
        await self._seen(name, lambda raw: raw is not None and raw["metadata"]["resourceVersion"] == version)

    async def _seen(self, name: str, right: Callable[[Json | None], bool]) -> None:
        assert await eventually(lambda: right(self._adapter.raw_objects(own.KIND).get(name)))


@asynccontextmanager
async def open_cloud(plane: PlaneState) -> AsyncIterator[RealKwokCloudWorld]:
    """Connect to a running control plane that has the definitions of deploy/crds."""
    async with ApiClient(plane.kubeconfig, user_agent="dovetail-tests") as admin:
        adapter = await KubeAdapter.connect(ClusterAddress(kubeconfig=plane.kubeconfig), node_classes=(RAW_CLASS,))
        world = RealKwokCloudWorld(adapter, admin, AuditLog(plane.audit_log))
        try:
            await adapter.ready()
            yield world
        finally:
            await world.clear()
            await adapter.close()
