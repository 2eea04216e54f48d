"""What decisions about disruption count, under Karpenter's names.

A decision counts once its mark is written, not when it is proposed. A reason is in lower case or as in the API,
depending on the metric, as upstream does (DIS-192).
"""

from collections.abc import Iterable

from dovetail.disruption.choose import METHODS, Decision
from dovetail.disruption.commands import Move
from dovetail.disruption.revalidate import Invalid, SecondLook
from dovetail.disruption.rounds import Method
from dovetail.messages.plans import DisruptionCommand, Target, decision_of
from dovetail.model.nodes import NodeClaim, termination_mode
from dovetail.model.reasons.disruption_reasons import Invalidity
from dovetail.telemetry.metrics.duties import DISRUPTION
from dovetail.telemetry.metrics.karpenters.catalogue import count, gauge, observe
from dovetail.telemetry.metrics.karpenters.lifecycle import unhealthy
from dovetail.telemetry.metrics.karpenters.reconciles import round_ended
from dovetail.telemetry.metrics.ours.outcomes import saving

_METHODS = {method.name: method for method in METHODS}
_WORDS = {True: "approved", False: "rejected"}
_TIMEOUTS = "voluntary_disruption_consolidation_timeouts_total"


def begin() -> None:
    """Let this counter exist before it counts: dashboards need its zero."""
    for kind in ("multi", "single"):
        count(_TIMEOUTS, {"consolidation_type": kind}, 0)


def decided(decision: Decision, seconds: float) -> None:
    """How long a decision took, and how many nodes each reason could have taken; budgets are published by the
    scrape."""
    round_ended(DISRUPTION, seconds)
    if decision.decided_by:
        observe("voluntary_disruption_decision_evaluation_duration_seconds", seconds, _kind(decision.decided_by))
    eligible: dict[str, int] = {}
    for method, number in decision.eligible:
        reason = _METHODS[method].reason.label
        eligible[reason] = eligible.get(reason, 0) + number  # DIQ-3: both kinds of drift together
    for reason, number in eligible.items():
        gauge("voluntary_disruption_eligible_nodes").set(number, {"reason": reason})
    for move in decision.moves:
        _moved(move)
    for method in decision.timed_out:
        count(_TIMEOUTS, {"consolidation_type": _METHODS[method].kind})


def _moved(move: Move) -> None:
    """DIS-126: the decision about the whole command is counted, the pool's own is weighed."""
    labels = {"nodepool": move.pool, "policy": move.policy}
    count("consolidation_moves_total", {**labels, "decision": _WORDS[move.approved]})
    if move.score is not None:
        observe("consolidation_score", move.score, {**labels, "decision": _WORDS[move.pool_approves]})


def looked_again(look: SecondLook, method: str) -> None:
    """DIS-134 to DIS-136: nodes that failed the second look; a simulation with another result does not count."""
    validity = look.validity
    if isinstance(validity, Invalid) and validity.reason not in (Invalidity.SCHEDULING, Invalidity.UNKNOWN):
        labels = {"consolidation_type": _METHODS[method].kind}
        count("voluntary_disruption_failed_validations_total", labels, validity.candidates)


def started(command: DisruptionCommand, marked: Iterable[Target]) -> None:
    """DIS-143: a command whose marks are written is counted, and once more for each of its pools."""
    labels = {"decision": decision_of(command), **_kind(command.method)}
    count("voluntary_disruption_decisions_total", labels)
    saving(command.reason.lower(), command.savings)
    for pool in sorted({target.pool for target in marked}):
        count("voluntary_disruption_decisions_by_nodepool_total", {"nodepool": pool, **labels})
        if command.terminates_first:
            first = {"nodepool": pool, "reason": labels["reason"], "terminate_first_reason": command.terminates_first}
            count("voluntary_disruption_terminate_first_decisions_total", first)


def failed(method: str, replacements: int) -> None:
    """DIS-157: replacements that never became ready; the label is the type of consolidation (DIQ-2)."""
    labels = {"decision": "replace" if replacements else "delete", **_kind(method)}
    count("voluntary_disruption_queue_failures_total", labels, replacements)


def disrupted(target: Target, reason: str, claim: NodeClaim | None) -> None:
    """DIS-151: a claim deleted by a plan, and the pods that this disturbs."""
    labels = {
        "reason": reason.lower(),
        "nodepool": target.pool,
        "capacity_type": target.capacity_type,
        "consolidation_policy": target.policy,
        "termination_mode": target.mode,
    }
    count("nodeclaims_disrupted_total", labels)
    if target.pods:
        count("pods_disruption_initiated_total", labels, len(target.pods))
    if target.condition and claim is not None:
        unhealthy(claim, target.condition, termination_mode(target.grace))


def _kind(name: str) -> dict[str, str]:
    method: Method | None = _METHODS.get(name)
    if method is None:
        return {"reason": "", "consolidation_type": ""}
    return {"reason": method.reason.label, "consolidation_type": method.kind}
