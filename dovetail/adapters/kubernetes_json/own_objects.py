"""The port TimeObjects over whatever keeps DisruptionPolicies, Freezes and NodeRollouts. Only their status is ours, and
what a person orders."""

from abc import ABC, abstractmethod
from typing import Any, TypeVar

from dovetail.adapters.kubernetes_json.kinds import DISRUPTION_POLICY, FREEZE, NODE_ROLLOUT
from dovetail.adapters.kubernetes_json.rendering import fields
from dovetail.adapters.kubernetes_json.rendering.policies import render_approval, render_rollout, render_status
from dovetail.adapters.kubernetes_json.store import Kind
from dovetail.model.nodes import Condition
from dovetail.model.own.policies import Freeze, Policy, PolicyStatus, TimeRules
from dovetail.model.own.rollout_approvals import Approval
from dovetail.model.own.rollouts import Intent, Rollout, RolloutStatus
from dovetail.model.values.json import Json
from dovetail.ports.objects import Versioned

Own = TypeVar("Own", bound=Versioned)


class OwnObjects(ABC):
    @abstractmethod
    async def _every(self, kind: Kind) -> list[Any]:
        """All objects of a kind, read."""

    @abstractmethod
    async def _patched(self, kind: Kind, value: Own, part: Json, subresource: str = "") -> Own | None:
        """The object with a part patched at the version of `value`; None if it is gone."""

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
        return await self._patched(kind, value, {"status": status}, "status")

    async def _ordered(self, rollout: Rollout, spec: Json) -> Rollout | None:
        return await self._patched(NODE_ROLLOUT, rollout, {"spec": spec})
