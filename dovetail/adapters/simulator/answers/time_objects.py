"""The port TimeObjects over the simulated cluster."""

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
from dovetail.adapters.simulator.answers.patching import deleted_version, spec_patched, status_patched
from dovetail.adapters.simulator.api_server import objects
from dovetail.adapters.simulator.api_server.rejected import Rejected
from dovetail.adapters.simulator.calls import Calls, failure_of
from dovetail.model.nodes import Condition
from dovetail.model.own.policies import Freeze, Policy, PolicyStatus, TimeRules
from dovetail.model.own.rollout_approvals import Approval
from dovetail.model.own.rollouts import Intent, NewRollout, Rollout, RolloutStatus


class SimulatedTimeObjects:
    """DisruptionPolicy, Freeze and NodeRollout objects."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def read(self, _: str = "") -> TimeRules:
        policies = await self._calls.read(lambda c: list(objects.every(c, "DisruptionPolicy")))
        freezes = await self._calls.read(lambda c: list(objects.every(c, "Freeze")))
        rollouts = await self._calls.read(lambda c: list(objects.every(c, "NodeRollout")))
        return TimeRules(
            policies={p.name: p for p in (parsed(parse_policy, body) for body in policies)},
            freezes={f.name: f for f in (parsed(parse_freeze, body) for body in freezes)},
            rollouts={r.name: r for r in (parsed(parse_rollout, body) for body in rollouts)},
        )

    async def patch_policy(self, policy: Policy, status: PolicyStatus) -> Policy | None:
        body = await status_patched(self._calls, "DisruptionPolicy", policy, render_status(status))
        return None if body is None else parsed(parse_policy, body)

    async def patch_freeze(self, freeze: Freeze, conditions: tuple[Condition, ...]) -> Freeze | None:
        status = {"conditions": fields.conditions(conditions)}
        body = await status_patched(self._calls, "Freeze", freeze, status)
        return None if body is None else parsed(parse_freeze, body)

    async def patch_rollout(self, rollout: Rollout, status: RolloutStatus) -> Rollout | None:
        body = await status_patched(self._calls, "NodeRollout", rollout, render_rollout(rollout, status))
        return None if body is None else parsed(parse_rollout, body)

    async def create_rollout(self, new: NewRollout) -> None:
        subject = f"NodeRollout/{new.name}"
        try:
            await self._calls.cluster("create", subject, lambda cluster: cluster.create(render_new_rollout(new)))
        except Rejected as rejected:
            if rejected.reason != "AlreadyExists":
                raise failure_of(rejected, subject) from None

    async def delete_rollout(self, rollout: Rollout) -> None:
        await deleted_version(self._calls, "NodeRollout", rollout.name, rollout.uid)

    async def patch_intent(self, rollout: Rollout, intent: Intent) -> Rollout | None:
        body = await spec_patched(self._calls, "NodeRollout", rollout, {"intent": str(intent)})
        return None if body is None else parsed(parse_rollout, body)

    async def patch_approval(self, rollout: Rollout, approval: Approval) -> Rollout | None:
        body = await spec_patched(self._calls, "NodeRollout", rollout, {"approval": render_approval(approval)})
        return None if body is None else parsed(parse_rollout, body)
