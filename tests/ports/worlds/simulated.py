"""The simulated world under the contracts of the ports: the adapter, and what acts on the world from outside.

Its player runs on a thread, but not as the kubelet of Nodes that tests make: the real control plane of these
tests has none either.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from dovetail.adapters.simulator.api_server.rejected import Rejected
from dovetail.adapters.simulator.settings import WorldSettings
from dovetail.model.values.json import Json
from dovetail.ports.objects import NodeClaims, NodePools, Nodes, Notices, Pods
from dovetail.ports.view import ClusterLookups, ClusterView
from dovetail.wiring.simulated import SimulatedAdapter
from testbed.simulated_world import SimulatedWorld


class SimulatedWorldUnderTest:
    """The ports of the adapter, and kubectl."""

    def __init__(self, adapter: SimulatedAdapter, outside: SimulatedWorld) -> None:
        self.view: ClusterView = adapter.view
        self.lookups: ClusterLookups = adapter.lookups
        self.claims: NodeClaims = adapter.claims
        self.nodes: Nodes = adapter.nodes
        self.pods: Pods = adapter.pods
        self.pools: NodePools = adapter.pools
        self.notices: Notices = adapter.notices
        self.outside = outside

    async def apply(self, body: Json) -> Json:
        return self.outside.apply(body)

    async def get(self, kind: str, key: str) -> Json | None:
        return self.outside.get(kind, key)

    async def delete(self, kind: str, key: str) -> None:
        try:
            self.outside.delete(kind, key)
        except Rejected as rejected:
            if rejected.code != 404:
                raise

    async def events_about(self, kind: str, name: str) -> list[Json]:
        about = [e for e in self.outside.objects("Event") if e["involvedObject"]["kind"] == kind]
        return [e for e in about if e["involvedObject"]["name"] == name]


@asynccontextmanager
async def open_world(file: Path) -> AsyncIterator[SimulatedWorldUnderTest]:
    """Make a world in a new file and let it move."""
    outside = SimulatedWorld.create(file, WorldSettings(foreign_kubelets=False))
    adapter = SimulatedAdapter.open(file, "dovetail/test")
    try:
        with outside.playing():
            yield SimulatedWorldUnderTest(adapter, outside)
    finally:
        adapter.close()
        outside.close()
