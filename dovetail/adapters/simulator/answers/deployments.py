"""The port Deployments over the simulated cluster."""

from dovetail.adapters.kubernetes_json.kinds import MOVE_KINDS
from dovetail.adapters.kubernetes_json.parsing.errors import parsed
from dovetail.adapters.kubernetes_json.rendering.deployments import render_move
from dovetail.adapters.simulator.answers.patching import body_patched
from dovetail.adapters.simulator.api_server import objects
from dovetail.adapters.simulator.calls import Calls
from dovetail.model.objects.workloads import Deployment
from dovetail.model.places.move_changes import MoveChange
from dovetail.model.values.json import Json


class SimulatedDeployments:
    """Deployments; this world's own reading of the policy refuses any other change by a worker."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def read(self, deployment: Deployment) -> Deployment | None:
        body = await self._calls.read(lambda connection: objects.read(connection, "Deployment", deployment.key))
        found = _parsed(body)
        return found if found is not None and found.uid == deployment.uid else None

    async def annotate(self, deployment: Deployment, change: MoveChange) -> Deployment | None:
        return _parsed(await body_patched(self._calls, "Deployment", deployment, render_move(change)))


def _parsed(body: Json | None) -> Deployment | None:
    return None if body is None else parsed(MOVE_KINDS[0].parse, body)
