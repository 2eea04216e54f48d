"""The statuses of DisruptionPolicies and NodeRollouts as written, and new NodeRollouts."""

from dovetail.adapters.kubernetes_json.rendering import fields
from dovetail.model import names
from dovetail.model.own.gates import AlertsRule, AskedGate, GateVerdict
from dovetail.model.own.health import HealthState
from dovetail.model.own.policies import Opening, PolicyStatus, TakenRate
from dovetail.model.own.rollout_approvals import Answered, Approval, Awaits
from dovetail.model.own.rollouts import (
    NODES,
    NewRollout,
    NodesGate,
    Passage,
    Rollout,
    RolloutFailure,
    RolloutStatus,
    RolloutStep,
)
from dovetail.model.own.stable_images import StableImages
from dovetail.model.values.json import Json
from dovetail.model.values.time import format_time


def render_status(status: PolicyStatus) -> Json:
    return {
        "nodePools": list(status.pools),
        "openings": [_opening(each) for each in status.openings],
        "rates": [_taken(each) for each in status.rates] or None,
        "health": None if status.health is None else _health(status.health),
        "alerts": None if status.alerts is None else _said(status.alerts),
        "conditions": fields.conditions(status.conditions),
    }


def render_new_rollout(new: NewRollout) -> Json:
    """The whole object; it is deleted with its NodePool, and does not block that deletion."""
    owner = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": new.pool, "uid": new.pool_uid}
    annotations = {names.POLICY: new.policy}
    return {
        "apiVersion": "dovetail.sh/v1alpha1",
        "kind": "NodeRollout",
        "metadata": {"name": new.name, "annotations": annotations, "ownerReferences": [owner]},
        "spec": {
            "nodePool": new.pool,
            "steps": [_step(step) for step in new.plan.steps],
            "newLaunches": "Stable" if new.plan.launches_stable else "Target",
            "onFailure": "RollBack" if new.plan.rolls_back else "Pause",
            "maxStableAge": fields.duration(new.plan.longest_stable),
            "order": str(new.plan.order),
            **({} if not new.plan.gates else {"gates": [_rule(gate) for gate in new.plan.gates]}),
            **({} if new.plan.longest is None else {"maxDuration": fields.duration(new.plan.longest)}),
        },
    }


def _rule(gate: AskedGate) -> Json:
    if gate.query is None:
        alerts = gate.alerts or AlertsRule()
        return {"name": gate.name, "alerts": {"firing": alerts.firing, **_if_any("ignore", alerts.ignore)}}
    bounds = {"min": gate.query.least, "max": gate.query.most}
    asked = {"expr": gate.query.expression, "failures": gate.failures, "every": fields.duration(gate.every)}
    return {
        "name": gate.name,
        "query": {**asked, **{key: repr(bound) for key, bound in bounds.items() if bound is not None}},
    }


def _if_any(key: str, text: str) -> Json:
    return {key: text} if text else {}


def _said(verdict: GateVerdict) -> Json:
    """A verdict, except its name."""
    since, asked = verdict.since, verdict.asked
    return {
        "result": str(verdict.result),
        "since": None if since is None else format_time(since),
        "asked": format_time(asked) if asked else None,
        "message": verdict.message or None,
    }


def _verdict(verdict: GateVerdict) -> Json:
    said = {"name": verdict.name, **_said(verdict), "failed": verdict.failed or None}
    return {key: value for key, value in said.items() if value is not None}  # an item of a list is written whole


def _passage(passage: Passage) -> Json:
    ended = {} if passage.ended is None else {"ended": format_time(passage.ended)}
    said = {**_if_any("result", passage.result), **_if_any("message", passage.message)}
    return {"step": passage.step, "began": format_time(passage.began), **ended, **said}


def _step(step: RolloutStep) -> Json:
    asks = {} if step.approve is None else {"approve": {"expiresAfter": fields.duration(step.approve)}}
    return {"name": step.name, "to": step.to, "soak": fields.duration(step.soak), **asks}


def render_approval(approval: Approval) -> Json:
    """As it stands in a spec."""
    at = format_time(approval.at)
    return {"step": approval.step, "digest": approval.digest, "by": approval.by, "at": at}


def _answered(answered: Answered) -> Json:
    return {**render_approval(answered.approval), "refused": answered.refused or None}


def _awaits(awaits: Awaits) -> Json:
    since, expires = format_time(awaits.since), format_time(awaits.expires)
    said = {"digest": awaits.digest, "since": since, "expires": expires, "shows": awaits.shows}
    return {**said, "generation": awaits.generation}


def render_rollout(rollout: Rollout, status: RolloutStatus) -> Json:
    """The whole status; null removes what a patch would otherwise leave."""
    until, begun = status.until, status.begun
    old = status.total - status.at_target - status.leaving
    return {
        "observedGeneration": rollout.generation,
        "step": {
            "name": status.step,
            "state": str(status.state),
            "since": format_time(status.since),
            "until": None if until is None else format_time(until),
        },
        "target": {"nodePoolHash": status.target, "begun": format_time(begun), "launches": status.makes or None},
        "nodes": {"total": status.total, "target": status.at_target, "leaving": status.leaving, "old": old},
        "gates": [_gate(status.gate), *map(_verdict, status.asked)],
        "history": [_passage(each) for each in status.history] or None,
        "stable": _stable(status.stable),
        "failure": _failure(status.failure),
        "promotedBefore": status.promoted_before or None,
        "awaits": None if status.awaits is None else _awaits(status.awaits),
        "answered": None if status.answered is None else _answered(status.answered),
        "conditions": fields.conditions(status.conditions),
    }


def _stable(stable: StableImages) -> Json | None:
    if not stable.since:
        return None
    images = [{"id": each.id, "instanceTypes": list(each.types)} for each in stable.images]
    return {"since": format_time(stable.since), "images": images, "whyNot": stable.why_not or None}


def _failure(failure: RolloutFailure | None) -> Json | None:
    return None if failure is None else {"generation": failure.generation, "message": failure.message}


def _gate(gate: NodesGate) -> Json:
    since = {} if gate.since is None else {"since": format_time(gate.since)}
    if gate.asked:
        since["asked"] = format_time(gate.asked)
    return {"name": NODES, "result": str(gate.result), **since, **({"message": gate.message} if gate.message else {})}


def _health(health: HealthState) -> Json:
    until = None if health.until is None else format_time(health.until)
    since = format_time(health.since)
    return {"state": str(health.result), "since": since, "until": until, "message": health.message}


def _taken(rate: TakenRate) -> Json:
    until = {} if rate.until is None else {"until": format_time(rate.until)}
    return {"nodePool": rate.pool, "rate": rate.rate, "begun": rate.begun, "allowed": rate.allowed, **until}


def _opening(opening: Opening) -> Json:
    until = {} if opening.until is None else {"until": format_time(opening.until)}
    return {"reason": opening.reason, "open": opening.open, **until, **({"why": opening.why} if opening.why else {})}
