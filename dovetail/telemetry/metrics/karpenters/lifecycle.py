"""What the steps of a node's life count, under Karpenter's names (MET-1).

Counted with the write that persists the transition, at most once each: a worker that dies in between loses a count but
never doubles one (DUR-5, DUR-13).
"""

from collections.abc import Mapping
from typing import Final

from temporalio import activity

from dovetail.messages.orders import DeleteClaim
from dovetail.model import names
from dovetail.model.nodes import Node, NodeClaim
from dovetail.telemetry.metrics.karpenters.catalogue import count, observe

# The orders that upstream counts as disruptions; deleting a surplus claim, or one whose node was deleted, does not.
_DISRUPTING: Final = frozenset({"expired", "garbage_collected", "unhealthy"})


def claim_created(claim: NodeClaim, reason: str) -> None:
    relaxed = claim.annotations.get(names.MIN_VALUES_RELAXED, "false")
    count("nodeclaims_created_total", {"reason": reason, **_pool(claim.labels), "min_values_relaxed": relaxed})


def ordered(claim: NodeClaim, order: DeleteClaim) -> None:
    """A claim deleted by the Caretaker, and the pods that this disturbs (GCR-5, GCR-16, LIF-63)."""
    if order.reason not in _DISRUPTING:
        return
    disrupted(claim, order.reason)
    if order.pods:
        count("pods_disruption_initiated_total", _disruption(claim, order.reason), order.pods)
    if order.condition:
        unhealthy(claim, order.condition, claim.termination_mode)


def unhealthy(claim: NodeClaim, condition: str, mode: str) -> None:
    """A claim was deleted because of its node's condition (GCR-16)."""
    place = {"capacity_type": claim.labels.get(names.CAPACITY_TYPE, ""), "image_id": claim.image_id}
    name = "".join(f"_{c.lower()}" if c.isupper() else c for c in condition).lstrip("_")
    labels = {"condition": name, **_pool(claim.labels), **place, "termination_mode": mode}
    count("nodeclaims_unhealthy_disrupted_total", labels)


def disrupted(claim: NodeClaim, reason: str) -> None:
    """A claim was given up or deleted for that reason."""
    count("nodeclaims_disrupted_total", _disruption(claim, reason))


def rebooted(result: str, seconds: float, since_issued: float | None = None) -> None:
    """A reboot for repair has ended (GCR-19), so long after it was asked for and, if the node is back, issued."""
    count("nodes_reboots_total", {"result": result})
    observe("nodes_reboot_duration_seconds", seconds, {"result": result})
    if since_issued is not None:
        observe("nodes_reboot_recovery_duration_seconds", since_issued, {})


def _disruption(claim: NodeClaim, reason: str) -> dict[str, str]:
    labels = {**_pool(claim.labels), "capacity_type": claim.labels.get(names.CAPACITY_TYPE, "")}
    return {"reason": reason, **labels, "termination_mode": claim.termination_mode, "consolidation_policy": ""}


def node_created(claim: NodeClaim) -> None:
    count("nodes_created_total", {**_pool(claim.labels), "zone": claim.labels.get(names.ZONE, "")})


def node_terminated(node: Node, now: float) -> None:
    """The node's finalizer is removed (TRM-11)."""
    pool = _pool(node.labels)
    count("nodes_terminated_total", {**pool, "zone": node.labels.get(names.ZONE, "")})
    observe("nodes_termination_duration_seconds", now - (node.deleting_since or now), pool)
    observe("nodes_lifetime_duration_seconds", now - node.created, pool)


def node_drained(claim: NodeClaim) -> None:
    """The condition Drained has become True (TRM-19)."""
    count("nodes_drained_total", _pool(claim.labels))


def claim_terminated(claim: NodeClaim, now: float) -> None:
    """The claim's finalizer is removed (LIF-55)."""
    pool = _pool(claim.labels)
    place = {"capacity_type": claim.labels.get(names.CAPACITY_TYPE, ""), "zone": claim.labels.get(names.ZONE, "")}
    count("nodeclaims_terminated_total", {**pool, **place})
    observe("nodeclaims_termination_duration_seconds", now - (claim.deleting_since or now), pool)


def instance_terminated(claim: NodeClaim, now: float) -> None:
    """How long the instance took from the first call to terminate it to its end (LIF-53)."""
    began = claim.condition(names.INSTANCE_TERMINATING)
    if began is not None:
        observe("nodeclaims_instance_termination_duration_seconds", now - began.changed, _pool(claim.labels))


def eviction_answered(code: int) -> None:
    """An eviction was answered; an accepted one is counted as 200 whatever HTTP says (TRM-26)."""
    count("pods_eviction_requests_total", {"code": "200" if code in (200, 201) else str(code)})


def pod_drained(reason: str) -> None:
    """A pod was evicted, or deleted by force."""
    count("pods_drained_total", {"reason": reason})


def _pool(labels: Mapping[str, str]) -> dict[str, str]:
    return {"nodepool": labels.get(names.NODE_POOL, "")}


def is_first_attempt() -> bool:
    """Whether this is the first attempt, because what a step does twice counts once. True outside a worker, as in a
    test."""
    return not activity.in_activity() or activity.info().attempt == 1
