"""The port Inspection over the embedded world: nothing is forbidden, nothing is missing, and there is one clock."""

from collections.abc import Iterable

from adapters.embedded import objects
from adapters.embedded.calls import Calls
from adapters.embedded.node_classes import WATCHED_CLASSES
from adapters.kube.kinds import CLUSTER_KINDS
from adapters.kube.store import Kind
from ports.inspection import ClusterFacts, RawObjects


class EmbeddedInspection:
    """The file, looked at as a whole."""

    def __init__(self, calls: Calls, gated: Iterable[Kind] = ()) -> None:
        self._calls = calls
        self._kinds = sorted({kind.name for kind in (*CLUSTER_KINDS, *WATCHED_CLASSES.values(), *gated)})

    async def facts(self) -> ClusterFacts:
        return ClusterFacts(address=str(self._calls.store.path), version="embedded", clock_ahead=0.0)

    async def objects(self) -> RawObjects:
        return await self._calls.read(lambda c: {kind: list(objects.every(c, kind)) for kind in self._kinds})
