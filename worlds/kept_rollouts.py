"""NodeRollouts as the API server keeps them: what is not written is lost after the look that knew it."""

from typing import Any

from dovetail.adapters.kubernetes_json.parsing.rollouts import parse_rollout
from dovetail.adapters.kubernetes_json.rendering.policies import render_approval, render_new_rollout, render_rollout
from dovetail.model.own.rollouts import NewRollout, Rollout, RolloutPlan
from dovetail.model.values.json import Json
from dovetail.model.values.time import format_time


def whole(rollout: Rollout) -> Json:
    """The object, with its status."""
    plan = RolloutPlan(
        steps=rollout.steps,
        launches_stable=rollout.launches_stable,
        rolls_back=rollout.rolls_back,
        longest_stable=rollout.longest_stable,
        gates=rollout.gates,
        order=rollout.order,
        longest=rollout.longest,
        nodes_rule=rollout.nodes_rule,
        stands_for=rollout.stands_for,
    )
    made = render_new_rollout(
        NewRollout(name=rollout.name, pool=rollout.pool, pool_uid="uid-pool", policy=rollout.policy, plan=plan)
    )
    asked = {} if rollout.approval is None else {"approval": render_approval(rollout.approval)}
    server = {
        "uid": rollout.uid,
        "generation": rollout.generation,
        "resourceVersion": rollout.resource_version,
        "creationTimestamp": format_time(rollout.created),
    }
    return {
        **made,
        "metadata": {**made["metadata"], **server},
        "spec": {**made["spec"], "intent": str(rollout.intent), **asked},
        "status": without_none(render_rollout(rollout, rollout.status)),
    }


def without_none(found: Any) -> Any:
    """As it is after a merge patch."""
    if isinstance(found, dict):
        return {key: without_none(value) for key, value in found.items() if value is not None}
    return [without_none(each) for each in found] if isinstance(found, list) else found


def kept(rollout: Rollout) -> Rollout:
    """What another worker reads of it, whatever its version."""
    found = parse_rollout(whole(rollout))
    assert not found.fault, found.fault
    return found
