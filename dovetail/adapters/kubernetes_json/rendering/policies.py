"""The statuses of DisruptionPolicies and NodeRollouts as written, and new NodeRollouts."""

from dovetail.adapters.kubernetes_json.rendering import fields
from dovetail.adapters.kubernetes_json.rendering.declared import written
from dovetail.model import names
from dovetail.model.own.policies import PolicyStatus
from dovetail.model.own.rollout_approvals import Approval
from dovetail.model.own.rollouts import NODES, NewRollout, NodesGate, Rollout, RolloutStatus, RolloutStrategy
from dovetail.model.values.json import Json


def render_status(status: PolicyStatus) -> Json:
    body = written(PolicyStatus, status)
    for key in ("name", "failed") if status.alerts is not None else ():
        del body["alerts"][key]
    return body


def render_new_rollout(new: NewRollout) -> Json:
    """The whole object; it is deleted with its NodePool, and does not block that deletion."""
    owner = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": new.pool, "uid": new.pool_uid}
    annotations = {names.POLICY: new.policy}
    return {
        "apiVersion": "dovetail.sh/v1alpha1",
        "kind": "NodeRollout",
        "metadata": {"name": new.name, "annotations": annotations, "ownerReferences": [owner]},
        "spec": {"nodePool": new.pool, **written(RolloutStrategy, new.plan, whole=True)},
    }


def render_approval(approval: Approval) -> Json:
    """As it stands in a spec."""
    return written(Approval, approval)


def render_rollout(rollout: Rollout, status: RolloutStatus) -> Json:
    """The whole status; null removes what a patch would otherwise leave. Of one that cannot be read everything else is
    left as it stands, so that nothing of it is forgotten."""
    said = {"observedGeneration": rollout.generation, "conditions": fields.conditions(status.conditions)}
    if status.fault:
        return said
    body = written(RolloutStatus, status)
    body["nodes"]["old"] = status.total - status.at_target - status.leaving
    body["gates"] = [{"name": NODES, **written(NodesGate, status.gate, whole=True)}, *(body["gates"] or ())]
    return {**body, **said, "stable": body["stable"] if status.stable.since else None}
