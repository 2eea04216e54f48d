"""The status of a DisruptionPolicy and of a NodeRollout as they are written."""

from dovetail.adapters.kubernetes_json.rendering import fields
from dovetail.model.health import HealthState
from dovetail.model.json import Json
from dovetail.model.policies import Opening, PolicyStatus, TakenRate
from dovetail.model.rollouts import NodesGate, Rollout, RolloutStatus
from dovetail.model.time import format_time


def render_status(status: PolicyStatus) -> Json:
    """The whole status."""
    return {
        "nodePools": list(status.pools),
        "openings": [_opening(each) for each in status.openings],
        "rates": [_taken(each) for each in status.rates] or None,
        "health": None if status.health is None else _health(status.health),
        "conditions": fields.conditions(status.conditions),
    }


def render_rollout(rollout: Rollout, status: RolloutStatus) -> Json:
    """The whole status; null takes away what a patch would else leave."""
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
        "target": {"nodePoolHash": status.target, "begun": format_time(begun)},
        "nodes": {"total": status.total, "target": status.at_target, "leaving": status.leaving, "old": old},
        "gates": [_gate(status.gate)],
        "conditions": fields.conditions(status.conditions),
    }


def _gate(gate: NodesGate) -> Json:
    since = {} if gate.since is None else {"since": format_time(gate.since)}
    return {"name": "nodes", "result": str(gate.result), **since, **({"message": gate.message} if gate.message else {})}


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
