"""Which rules of people keep nodes from beginning to leave, and which rules cannot be understood. Names of ours
alone."""

from collections.abc import Iterator
from typing import Final

from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.model.snapshot import Snapshot
from dovetail.rules.beginnings import hold_of, said_in
from dovetail.rules.said import Cause
from dovetail.telemetry.metrics.gauges import Sample

HELP: Final = {
    "beginnings_held": "1 while that rule keeps nodes of a NodePool from beginning to leave for the reason.",
    "policy_never_opens": "1 for a reason for which a DisruptionPolicy's windows let no node leave within 400 days.",
    "disruption_held_blind": "1 for a DisruptionPolicy that holds as nobody can tell whether its alerts fire.",
    "time_rule_not_understood": "1 for a DisruptionPolicy, Freeze or NodeRollout that holds as it is not understood.",
}


def time_rule_samples(snapshot: Snapshot) -> Iterator[Sample]:
    """The first rule that holds each pool for each reason, and whether each object is understood."""
    for pool in sorted(snapshot.pools):
        said = said_in(snapshot, pool)
        for reason in DisruptionReason:
            held = hold_of(said, Cause.of(reason))
            if held is not None:
                labels = (("rule", held.rule.lower()), ("reason", reason), ("pool", pool))
                yield Sample(name="beginnings_held", labels=labels, value=1.0)
    faults = [("DisruptionPolicy", each.name, each.fault) for each in snapshot.policies.values()]
    faults += [("Freeze", each.name, each.fault) for each in snapshot.freezes.values()]
    faults += [("NodeRollout", each.name, each.fault) for each in snapshot.rollouts.values()]
    for kind, name, fault in sorted(faults):
        yield Sample(name="time_rule_not_understood", labels=(("kind", kind), ("name", name)), value=float(bool(fault)))
    for policy in snapshot.policies.values():
        if policy.health is not None and policy.health.alerts is not None:
            blind = policy.health.why_blind(policy.status.alerts, snapshot.now)
            yield Sample(name="disruption_held_blind", labels=(("name", policy.name),), value=float(bool(blind)))
        for opening in () if policy.fault else policy.status.openings:
            never = not opening.open and opening.until is None
            of = (("name", policy.name), ("reason", opening.reason))
            yield Sample(name="policy_never_opens", labels=of, value=float(never))
