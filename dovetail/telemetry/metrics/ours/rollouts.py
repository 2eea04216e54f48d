"""How far roll-outs are, which need a person, and how they end. Names of ours alone."""

from collections.abc import Iterator
from typing import Final

from opentelemetry import metrics

from dovetail.model.own.gates import GateResult
from dovetail.model.own.rollouts import BEGUN, REFUSED
from dovetail.model.snapshot import Snapshot
from dovetail.telemetry.metrics.gauges import Sample
from dovetail.telemetry.metrics.instruments import OWN_PREFIX, Instruments

HELP: Final = {
    "rollout_nodes": "Nodes of a NodePool whose change is rolled out, by what they are to it: target, leaving or old.",
    "rollout_state": "1 for the state in which a NodeRollout is that has begun and is not complete.",
    "rollout_state_seconds": "How long such a NodeRollout has been in its state.",
    "rollout_step": "The number of the step that a NodeRollout is at, from 1.",
    "rollout_gate": "What a gate of a NodeRollout says: 1 passing, 0 unknown, -1 failing.",
    "rollout_stalled": "1 for a NodeRollout that waits for a person, by why.",
}
INSTRUMENTS: Final = Instruments(
    meter=metrics.get_meter("dovetail.rollouts"),
    counters={
        "rollouts_total": "Changes whose roll-out ended, by NodePool and result: Complete, Failed, or Superseded by "
        "another change."
    },
    histograms={},
    prefix=OWN_PREFIX,
)
_GATES: Final = {GateResult.PASSING: 1.0, GateResult.UNKNOWN: 0.0, GateResult.FAILING: -1.0}


def rollout_samples(snapshot: Snapshot) -> Iterator[Sample]:
    """The samples of roll-outs under way; a complete one, or one that waits for a change, has none."""
    for name in sorted(snapshot.rollouts):
        rollout = snapshot.rollouts[name]
        status, of = rollout.status, (("rollout", name), ("pool", rollout.pool))
        for condition in status.conditions:
            if condition.type == "Stalled" and condition.status == "True":
                yield Sample(name="rollout_stalled", labels=(*of, ("reason", condition.reason)), value=1.0)
        if status.state not in BEGUN | REFUSED:
            continue
        at = (*of, ("state", status.state))
        yield Sample(name="rollout_state", labels=at, value=1.0)
        yield Sample(name="rollout_state_seconds", labels=at, value=max(0.0, snapshot.now - status.since))
        steps = [step.name for step in rollout.steps]
        if status.step in steps:
            yield Sample(name="rollout_step", labels=of, value=float(steps.index(status.step) + 1))
        for gate in rollout.verdicts:
            yield Sample(name="rollout_gate", labels=(*of, ("gate", gate.name)), value=_GATES[gate.result])
        old = status.total - status.at_target - status.leaving
        for state, nodes in (("target", status.at_target), ("leaving", status.leaving), ("old", old)):
            yield Sample(name="rollout_nodes", labels=(*of, ("state", state)), value=float(nodes))


def ended(pool: str, result: str) -> None:
    """The roll-out of a change of that NodePool has ended, by its status."""
    INSTRUMENTS.count("rollouts_total", {"pool": pool, "result": result})
