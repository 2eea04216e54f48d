"""How far roll-outs are, and which of them need a person. Ours alone."""

from collections.abc import Iterator
from typing import Final

from dovetail.model.gates import GateResult
from dovetail.model.rollouts import BEGUN, REFUSED
from dovetail.model.snapshot import Snapshot
from dovetail.telemetry.metrics.gauges import Sample

HELP: Final = {
    "rollout_nodes": "Nodes of a NodePool whose change is rolled out, by what they are to it: target, leaving or old.",
    "rollout_state": "1 for the state in which a NodeRollout is that has begun and is not complete.",
    "rollout_step": "The number of the step that a NodeRollout is at, from 1.",
    "rollout_gate": "What a gate of a NodeRollout says: 1 passing, 0 unknown, -1 failing.",
    "rollout_stalled": "1 for a NodeRollout that waits for a person, by why.",
}
_GATES: Final = {GateResult.PASSING: 1.0, GateResult.UNKNOWN: 0.0, GateResult.FAILING: -1.0}


def rollout_samples(snapshot: Snapshot) -> Iterator[Sample]:
    """Of those that are under way; what is complete or waits for a change says nothing."""
    for name in sorted(snapshot.rollouts):
        rollout = snapshot.rollouts[name]
        status, of = rollout.status, (("rollout", name), ("pool", rollout.pool))
        for condition in status.conditions:
            if condition.type == "Stalled" and condition.status == "True":
                yield Sample(name="rollout_stalled", labels=(*of, ("reason", condition.reason)), value=1.0)
        if status.state not in BEGUN | REFUSED:
            continue
        yield Sample(name="rollout_state", labels=(*of, ("state", status.state)), value=1.0)
        steps = [step.name for step in rollout.steps]
        if status.step in steps:
            yield Sample(name="rollout_step", labels=of, value=float(steps.index(status.step) + 1))
        for gate in rollout.verdicts:
            yield Sample(name="rollout_gate", labels=(*of, ("gate", gate.name)), value=_GATES[gate.result])
        old = status.total - status.at_target - status.leaving
        for state, nodes in (("target", status.at_target), ("leaving", status.leaving), ("old", old)):
            yield Sample(name="rollout_nodes", labels=(*of, ("state", state)), value=float(nodes))
