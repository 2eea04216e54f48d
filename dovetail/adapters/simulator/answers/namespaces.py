"""The port Namespaces over the simulated cluster."""

from dovetail.adapters.kubernetes_json.parsing.errors import parsed
from dovetail.adapters.kubernetes_json.parsing.workloads import parse_namespace
from dovetail.adapters.simulator.answers.patching import patched
from dovetail.adapters.simulator.api_server import objects
from dovetail.adapters.simulator.calls import Calls
from dovetail.model.objects.workloads import Namespace
from dovetail.ports.objects import MetadataChange


class SimulatedNamespaces:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def read(self, name: str) -> Namespace | None:
        body = await self._calls.read(lambda connection: objects.read(connection, "Namespace", name))
        return None if body is None else parsed(parse_namespace, body)

    async def patch(self, namespace: Namespace, change: MetadataChange) -> Namespace | None:
        body = await patched(self._calls, "Namespace", namespace, change)
        return None if body is None else parsed(parse_namespace, body)
