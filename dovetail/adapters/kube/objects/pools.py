"""NodePools, read live and changed. Only metadata (hash annotations) and status are ours; the spec is a person's."""

from dovetail.adapters.kube.objects.collection import Collection
from dovetail.adapters.kube.requests import Caller
from dovetail.adapters.kubernetes_json.parsing.pools import parse_node_pool
from dovetail.adapters.kubernetes_json.rendering import fields
from dovetail.adapters.kubernetes_json.rendering.pools import render_status
from dovetail.adapters.kubernetes_json.written_kinds import NODE_POOL
from dovetail.model.pools import NodePool
from dovetail.ports.failures import Refused
from dovetail.ports.objects import MetadataChange, PoolStatus


class KubeNodePools:
    def __init__(self, client: Caller) -> None:
        self._pools = Collection[NodePool](client, NODE_POOL.name, NODE_POOL.path, parse_node_pool)

    async def read(self, name: str) -> NodePool | None:
        return await self._pools.read(name)

    async def patch(self, pool: NodePool, change: MetadataChange) -> NodePool | None:
        if change.add_owner is not None:
            raise Refused(f"NodePool/{pool.name}", "a NodePool is not given an owner")
        return await self._pools.patch(pool, {"metadata": fields.metadata(change, [])})

    async def patch_status(self, pool: NodePool, status: PoolStatus) -> NodePool | None:
        return await self._pools.patch(pool, {"status": render_status(pool, status)}, "status")
