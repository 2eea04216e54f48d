"""DisruptionPolicies and Freezes, read live; their status, which is all of them that is ours, is written."""

from collections.abc import Callable
from typing import TypeVar

from dovetail.adapters.kube.failures import NotServed
from dovetail.adapters.kube.objects.collection import Collection
from dovetail.adapters.kube.paging import list_all
from dovetail.adapters.kube.requests import Caller
from dovetail.adapters.kubernetes_json.kinds import DISRUPTION_POLICY, FREEZE
from dovetail.adapters.kubernetes_json.parsing.errors import parsed
from dovetail.adapters.kubernetes_json.parsing.policies import parse_freeze, parse_policy
from dovetail.adapters.kubernetes_json.rendering import fields
from dovetail.adapters.kubernetes_json.rendering.policies import render_status
from dovetail.adapters.kubernetes_json.store import Kind
from dovetail.model.nodes import Condition
from dovetail.model.policies import Freeze, Policy, PolicyStatus, TimeRules

Named = TypeVar("Named", Policy, Freeze)


class KubeTimeObjects:
    """Both kinds on the API server. `is_absent`: whether the watch has found that a kind is not installed; then it is
    not asked for at every mark."""

    def __init__(self, client: Caller, is_absent: Callable[[str], bool]) -> None:
        self._client, self._is_absent = client, is_absent
        self._policies = Collection[Policy](client, DISRUPTION_POLICY.name, DISRUPTION_POLICY.path, parse_policy)
        self._freezes = Collection[Freeze](client, FREEZE.name, FREEZE.path, parse_freeze)

    async def read(self, _: str = "") -> TimeRules:
        return TimeRules(
            policies={each.name: each for each in await self._list(DISRUPTION_POLICY, self._policies)},
            freezes={each.name: each for each in await self._list(FREEZE, self._freezes)},
        )

    async def patch_policy(self, policy: Policy, status: PolicyStatus) -> Policy | None:
        return await self._policies.patch(policy, {"status": render_status(status)}, "status")

    async def patch_freeze(self, freeze: Freeze, conditions: tuple[Condition, ...]) -> Freeze | None:
        return await self._freezes.patch(freeze, {"status": {"conditions": fields.conditions(conditions)}}, "status")

    async def _list(self, kind: Kind, collection: Collection[Named]) -> list[Named]:
        if self._is_absent(kind.name):
            return []
        try:
            return [parsed(collection.parse, raw) async for raw in list_all(self._client, kind.path, kind.name)]
        except NotServed:
            return []
