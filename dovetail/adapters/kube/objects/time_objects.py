"""DisruptionPolicies, Freezes and NodeRollouts, read live; their status, which alone is ours, is written."""

from collections.abc import Callable
from typing import Any

from dovetail.adapters.kube.discovery import is_absent
from dovetail.adapters.kube.failures import CONFLICT, NotServed
from dovetail.adapters.kube.objects.collection import Collection
from dovetail.adapters.kube.paging import list_all
from dovetail.adapters.kube.requests import Caller, Request
from dovetail.adapters.kubernetes_json.kinds import DISRUPTION_POLICY, FREEZE, NODE_ROLLOUT
from dovetail.adapters.kubernetes_json.own_objects import Own, OwnObjects
from dovetail.adapters.kubernetes_json.parsing.errors import parsed
from dovetail.adapters.kubernetes_json.rendering.policies import render_new_rollout
from dovetail.adapters.kubernetes_json.store import Kind
from dovetail.model.own.rollouts import NewRollout, Rollout
from dovetail.model.values.json import Json
from dovetail.ports.failures import Unreachable


class KubeTimeObjects(OwnObjects):
    """All three kinds on the API server. `was_listed`: whether the watch has found a kind installed; then a 404 does
    not mean that there is none of it."""

    def __init__(self, client: Caller, was_listed: Callable[[str], bool]) -> None:
        self._client, self._was_listed = client, was_listed
        kinds = (DISRUPTION_POLICY, FREEZE, NODE_ROLLOUT)
        self._kinds = {kind.name: Collection[Any](client, kind.name, kind.path, kind.parse) for kind in kinds}

    async def create_rollout(self, new: NewRollout) -> None:
        body, there = render_new_rollout(new), frozenset({CONFLICT})
        subject = f"{NODE_ROLLOUT.name}/{new.name}"
        request = Request(method="POST", path=NODE_ROLLOUT.path, subject=subject, body=body, expected=there)
        await self._client.call(request)

    async def delete_rollout(self, rollout: Rollout) -> None:
        await self._kinds[NODE_ROLLOUT.name].delete(rollout.name, rollout.uid)

    async def _patched(self, kind: Kind, value: Own, part: Json, subresource: str = "") -> Own | None:
        return await self._kinds[kind.name].patch(value, part, subresource)

    async def _every(self, kind: Kind) -> list[Any]:
        try:
            return [parsed(kind.parse, raw) async for raw in list_all(self._client, kind.path, kind.name)]
        except NotServed as failure:
            if self._was_listed(kind.name) or not await is_absent(self._client, kind.path):
                raise Unreachable(kind.name, f"it is not known which there are: {failure}") from failure
            return []
