"""The port NodePools over the simulated cluster."""

from dovetail.adapters.kubernetes_json.parsing.errors import parsed
from dovetail.adapters.kubernetes_json.parsing.pools import parse_node_pool
from dovetail.adapters.kubernetes_json.rendering.pools import render_status
from dovetail.adapters.simulator.answers.patching import patched, status_patched
from dovetail.adapters.simulator.api_server import objects
from dovetail.adapters.simulator.calls import Calls
from dovetail.model.pools import NodePool
from dovetail.ports.objects import MetadataChange, PoolStatus


class SimulatedNodePools:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def read(self, name: str) -> NodePool | None:
        body = await self._calls.read(lambda connection: objects.read(connection, "NodePool", name))
        return None if body is None else parsed(parse_node_pool, body)

    async def patch(self, pool: NodePool, change: MetadataChange) -> NodePool | None:
        body = await patched(self._calls, "NodePool", pool, change)
        return None if body is None else parsed(parse_node_pool, body)

    async def patch_status(self, pool: NodePool, status: PoolStatus) -> NodePool | None:
        body = await status_patched(self._calls, "NodePool", pool, render_status(pool, status))
        return None if body is None else parsed(parse_node_pool, body)
