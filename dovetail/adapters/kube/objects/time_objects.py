"""DisruptionPolicies, Freezes and NodeRollouts, read live; their status, which alone is ours, is written, and what a
person orders."""

from collections.abc import Callable
from typing import Any, TypeVar

from dovetail.adapters.kube.discovery import is_absent
from dovetail.adapters.kube.failures import CONFLICT, NotServed
from dovetail.adapters.kube.objects.collection import Collection
from dovetail.adapters.kube.paging import list_all
from dovetail.adapters.kube.requests import Caller, Request
from dovetail.adapters.kubernetes_json.kinds import DISRUPTION_POLICY, FREEZE, NODE_ROLLOUT
from dovetail.adapters.kubernetes_json.parsing.errors import parsed
from dovetail.adapters.kubernetes_json.rendering import fields
from dovetail.adapters.kubernetes_json.rendering.policies import (
    render_approval,
    render_new_rollout,
    render_rollout,
    render_status,
)
from dovetail.adapters.kubernetes_json.store import Kind
from dovetail.model.nodes import Condition
from dovetail.model.own.policies import Freeze, Policy, PolicyStatus, TimeRules
from dovetail.model.own.rollout_approvals import Approval
from dovetail.model.own.rollouts import Intent, NewRollout, Rollout, RolloutStatus
from dovetail.model.values.json import Json
from dovetail.ports.failures import Unreachable
from dovetail.ports.objects import Versioned

Own = TypeVar("Own", bound=Versioned)


class KubeTimeObjects:
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

    async def read(self, _: str = "") -> TimeRules:
        policies, freezes, rollouts = [
            {each.name: each for each in await self._every(kind)} for kind in (DISRUPTION_POLICY, FREEZE, NODE_ROLLOUT)
        ]
        return TimeRules(policies=policies, freezes=freezes, rollouts=rollouts)

    async def patch_policy(self, policy: Policy, status: PolicyStatus) -> Policy | None:
        return await self._set(DISRUPTION_POLICY, policy, render_status(status))

    async def patch_freeze(self, freeze: Freeze, conditions: tuple[Condition, ...]) -> Freeze | None:
        return await self._set(FREEZE, freeze, {"conditions": fields.conditions(conditions)})

    async def patch_rollout(self, rollout: Rollout, status: RolloutStatus) -> Rollout | None:
        return await self._set(NODE_ROLLOUT, rollout, render_rollout(rollout, status))

    async def patch_intent(self, rollout: Rollout, intent: Intent) -> Rollout | None:
        return await self._ordered(rollout, {"intent": str(intent)})

    async def patch_approval(self, rollout: Rollout, approval: Approval) -> Rollout | None:
        return await self._ordered(rollout, {"approval": render_approval(approval)})

    async def _set(self, kind: Kind, value: Own, status: Json) -> Own | None:
        return await self._kinds[kind.name].patch(value, {"status": status}, "status")

    async def _ordered(self, rollout: Rollout, spec: Json) -> Rollout | None:
        return await self._kinds[NODE_ROLLOUT.name].patch(rollout, {"spec": spec})

    async def _every(self, kind: Kind) -> list[Any]:
        try:
            return [parsed(kind.parse, raw) async for raw in list_all(self._client, kind.path, kind.name)]
        except NotServed as failure:
            if self._was_listed(kind.name) or not await is_absent(self._client, kind.path):
                raise Unreachable(kind.name, f"it is not known which there are: {failure}") from failure
            return []
