"""The real control plane as a world: dovetail/adapters/kube on one side, the admin's plain HTTP on the other."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from dovetail.adapters.kube.adapter import KubeAdapter
from dovetail.adapters.kube.connection import ClusterAddress
from dovetail.model.values.json import Json
from dovetail.ports.objects import NodeClaims, NodePools, Nodes, Notices, Pods
from dovetail.ports.view import ClusterLookups, ClusterView
from testbed.plane import ApiClient

_PATHS = {
    "Pod": ("/api/v1", "pods"),
    "Node": ("/api/v1", "nodes"),
    "Event": ("/api/v1", "events"),
    "NodeClaim": ("/apis/karpenter.sh/v1", "nodeclaims"),
    "NodePool": ("/apis/karpenter.sh/v1", "nodepools"),
    "PodDisruptionBudget": ("/apis/policy/v1", "poddisruptionbudgets"),
    "VolumeAttachment": ("/apis/storage.k8s.io/v1", "volumeattachments"),
    "CustomResourceDefinition": ("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions"),
}


class RealWorld:
    """The ports of the adapter, and an admin."""

    def __init__(self, adapter: KubeAdapter, admin: ApiClient) -> None:
        self.view: ClusterView = adapter.view
        self.lookups: ClusterLookups = adapter.lookups
        self.claims: NodeClaims = adapter.claims
        self.nodes: Nodes = adapter.nodes
        self.pods: Pods = adapter.pods
        self.pools: NodePools = adapter.pools
        self.notices: Notices = adapter.notices
        self.admin = admin

    async def apply(self, body: Json) -> Json:
        meta = body["metadata"]
        collection = _collection(body["kind"], meta.get("namespace", ""))
        answer = await self.admin.post(collection, body)
        if answer.status == 409:
            answer = await self.admin.patch(f"{collection}/{meta['name']}", body)
        assert answer.status < 300, answer.text
        if "status" in body and body["kind"] != "Event":
            answer = await self.admin.patch(f"{collection}/{meta['name']}/status", {"status": body["status"]})
            assert answer.status < 300, answer.text
        return answer.body

    async def get(self, kind: str, key: str) -> Json | None:
        answer = await self.admin.get(_object(kind, key))
        assert answer.status in (200, 404), answer.text
        return answer.body if answer.status == 200 else None

    async def delete(self, kind: str, key: str) -> None:
        answer = await self.admin.delete(_object(kind, key))
        assert answer.status in (200, 202, 404), answer.text

    async def events_about(self, kind: str, name: str) -> list[Json]:
        answer = await self.admin.get(
            f"/api/v1/events?fieldSelector=involvedObject.kind={kind},involvedObject.name={name}"
        )
        items: list[Json] = answer.body["items"]
        return items


@asynccontextmanager
async def open_world(kubeconfig: Path) -> AsyncIterator[RealWorld]:
    """Connect to a running control plane that has the definitions of deploy/crds."""
    async with ApiClient(kubeconfig, user_agent="dovetail-tests") as admin:
        adapter = await KubeAdapter.connect(ClusterAddress(kubeconfig=kubeconfig), own_thread=True)
        try:
            await adapter.ready()
            yield RealWorld(adapter, admin)
        finally:
            await adapter.close()


def _collection(kind: str, namespace: str) -> str:
    root, plural = _PATHS[kind]
    return f"{root}/namespaces/{namespace}/{plural}" if namespace else f"{root}/{plural}"


def _object(kind: str, key: str) -> str:
    namespace, _, name = key.rpartition("/")
    return f"{_collection(kind, namespace)}/{name}"
