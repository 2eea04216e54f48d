"""The port Inspection over the simulated world: nothing is forbidden, nothing is missing, and there is one clock."""

from collections.abc import Collection, Iterable

from dovetail.adapters.kubernetes_json.kinds import CLUSTER_KINDS
from dovetail.adapters.kubernetes_json.store import Kind
from dovetail.adapters.simulator.api_server import objects
from dovetail.adapters.simulator.calls import Calls
from dovetail.adapters.simulator.cloud.node_classes import WATCHED_CLASSES
from dovetail.model.values.json import Json
from dovetail.ports.inspection import ClusterFacts, RawObjects


class SimulatedInspection:
    """The file, looked at as a whole."""

    def __init__(self, calls: Calls, gated: Iterable[Kind]) -> None:
        self._calls = calls
        self._kinds = sorted({kind.name for kind in (*CLUSTER_KINDS, *WATCHED_CLASSES.values(), *gated)})

    async def facts(self) -> ClusterFacts:
        return ClusterFacts(address=str(self._calls.store.path), version=await self.version(), clock_ahead=0.0)

    async def version(self) -> str:
        return "embedded"

    async def servers(self) -> Collection[str]:
        return ()

    async def objects(self) -> RawObjects:
        return await self._calls.read(lambda c: {kind: list(objects.every(c, kind)) for kind in self._kinds})

    async def object(self, kind: str, name: str) -> Json | None:
        return await self._calls.read(lambda connection: objects.read(connection, kind, name))
