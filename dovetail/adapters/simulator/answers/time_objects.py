"""The port TimeObjects over the simulated cluster."""

from typing import Any

from dovetail.adapters.kubernetes_json.kinds import NODE_ROLLOUT
from dovetail.adapters.kubernetes_json.own_objects import Own, OwnObjects
from dovetail.adapters.kubernetes_json.parsing.errors import parsed
from dovetail.adapters.kubernetes_json.rendering.policies import render_new_rollout
from dovetail.adapters.kubernetes_json.store import Kind
from dovetail.adapters.simulator.answers.patching import deleted_version, part_patched
from dovetail.adapters.simulator.api_server import objects
from dovetail.adapters.simulator.api_server.rejected import Rejected
from dovetail.adapters.simulator.calls import Calls, failure_of
from dovetail.model.own.rollouts import NewRollout, Rollout
from dovetail.model.values.json import Json


class SimulatedTimeObjects(OwnObjects):
    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def create_rollout(self, new: NewRollout) -> None:
        subject = f"{NODE_ROLLOUT.name}/{new.name}"
        try:
            await self._calls.cluster("create", subject, lambda cluster: cluster.create(render_new_rollout(new)))
        except Rejected as rejected:
            if rejected.reason != "AlreadyExists":
                raise failure_of(rejected, subject) from None

    async def delete_rollout(self, rollout: Rollout) -> None:
        await deleted_version(self._calls, NODE_ROLLOUT.name, rollout.name, rollout.uid)

    async def _every(self, kind: Kind) -> list[Any]:
        bodies = await self._calls.read(lambda cluster: list(objects.every(cluster, kind.name)))
        return [parsed(kind.parse, body) for body in bodies]

    async def _patched(self, kind: Kind, value: Own, part: Json, subresource: str = "") -> Own | None:
        body = await part_patched(self._calls, kind.name, value, part, subresource)
        return None if body is None else parsed(kind.parse, body)
