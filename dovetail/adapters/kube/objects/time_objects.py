"""DisruptionPolicies, Freezes and NodeRollouts, read live; their status, which alone is ours, is written."""

from collections.abc import Callable
from typing import TypeVar

from dovetail.adapters.kube.discovery import is_absent
from dovetail.adapters.kube.failures import CONFLICT, NotServed
from dovetail.adapters.kube.objects.collection import Collection
from dovetail.adapters.kube.paging import list_all
from dovetail.adapters.kube.requests import Caller, Request
from dovetail.adapters.kubernetes_json.kinds import DISRUPTION_POLICY, FREEZE, NODE_ROLLOUT
from dovetail.adapters.kubernetes_json.parsing.errors import parsed
from dovetail.adapters.kubernetes_json.parsing.policies import parse_freeze, parse_policy
from dovetail.adapters.kubernetes_json.parsing.rollouts import parse_rollout
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
from dovetail.ports.failures import Unreachable

Named = TypeVar("Named", Policy, Freeze, Rollout)


class KubeTimeObjects:
    """All three kinds on the API server. `was_listed`: whether the watch has found a kind installed; then a 404 does
    not mean that there is none of it."""

    def __init__(self, client: Caller, was_listed: Callable[[str], bool]) -> None:
        self._client, self._was_listed = client, was_listed
        self._policies = Collection[Policy](client, DISRUPTION_POLICY.name, DISRUPTION_POLICY.path, parse_policy)
        self._freezes = Collection[Freeze](client, FREEZE.name, FREEZE.path, parse_freeze)
        self._rollouts = Collection[Rollout](client, NODE_ROLLOUT.name, NODE_ROLLOUT.path, parse_rollout)

    async def read(self, _: str = "") -> TimeRules:
        return TimeRules(
            policies={each.name: each for each in await self._list(DISRUPTION_POLICY, self._policies)},
            freezes={each.name: each for each in await self._list(FREEZE, self._freezes)},
            rollouts={each.name: each for each in await self._list(NODE_ROLLOUT, self._rollouts)},
        )

    async def patch_policy(self, policy: Policy, status: PolicyStatus) -> Policy | None:
        return await self._policies.patch(policy, {"status": render_status(status)}, "status")

    async def patch_freeze(self, freeze: Freeze, conditions: tuple[Condition, ...]) -> Freeze | None:
        return await self._freezes.patch(freeze, {"status": {"conditions": fields.conditions(conditions)}}, "status")

    async def patch_rollout(self, rollout: Rollout, status: RolloutStatus) -> Rollout | None:
        return await self._rollouts.patch(rollout, {"status": render_rollout(rollout, status)}, "status")

    async def create_rollout(self, new: NewRollout) -> None:
        body, there = render_new_rollout(new), frozenset({CONFLICT})
        subject = f"{NODE_ROLLOUT.name}/{new.name}"
        request = Request(method="POST", path=NODE_ROLLOUT.path, subject=subject, body=body, expected=there)
        await self._client.call(request)

    async def delete_rollout(self, rollout: Rollout) -> None:
        await self._rollouts.delete(rollout.name, rollout.uid)

    async def patch_intent(self, rollout: Rollout, intent: Intent) -> Rollout | None:
        return await self._rollouts.patch(rollout, {"spec": {"intent": str(intent)}})

    async def patch_approval(self, rollout: Rollout, approval: Approval) -> Rollout | None:
        return await self._rollouts.patch(rollout, {"spec": {"approval": render_approval(approval)}})

    async def _list(self, kind: Kind, collection: Collection[Named]) -> list[Named]:
        try:
            return [parsed(collection.parse, raw) async for raw in list_all(self._client, kind.path, kind.name)]
        except NotServed as failure:
            if self._was_listed(kind.name) or not await is_absent(self._client, kind.path):
                raise Unreachable(kind.name, f"it is not known which there are: {failure}") from failure
            return []
