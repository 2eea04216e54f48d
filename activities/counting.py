"""What the steps of a node's life count, under Karpenter's names (M-1).

Asked by those steps. Everything goes through the meter of the running activity, which the worker exports; outside of
one (in tests of a single step, in what-if runs) nothing is counted. Counted on the write that persists the transition,
at most once each: a worker that dies in between loses a count and never doubles one (D-5, D-13).
"""

from collections.abc import Mapping
from typing import Final

from temporalio import activity

from core.model import names
from core.model.nodes import Node, NodeClaim

PREFIX: Final = "karpenter_"


def count(name: str, labels: Mapping[str, str]) -> None:
    """One more."""
    if activity.in_activity():
        activity.metric_meter().create_counter(PREFIX + name).add(1, dict(labels))


def observe(name: str, seconds: float, labels: Mapping[str, str]) -> None:
    """One duration."""
    if activity.in_activity():
        meter = activity.metric_meter()
        meter.create_histogram_float(PREFIX + name, unit="s").record(max(0.0, seconds), dict(labels))


def disrupted(claim: NodeClaim, reason: str) -> None:
    """nodeclaims_disrupted_total."""
    labels = {**_pool(claim.labels), "capacity_type": claim.labels.get(names.CAPACITY_TYPE, "")}
    mode = {"termination_mode": _mode(claim), "consolidation_policy": ""}
    count("nodeclaims_disrupted_total", {"reason": reason, **labels, **mode})


def node_created(claim: NodeClaim) -> None:
    """nodes_created_total: registered."""
    count("nodes_created_total", {**_pool(claim.labels), "zone": claim.labels.get(names.ZONE, "")})


def node_terminated(node: Node, now: float) -> None:
    """Its finalizer is off (T-11)."""
    pool = _pool(node.labels)
    count("nodes_terminated_total", {**pool, "zone": node.labels.get(names.ZONE, "")})
    observe("nodes_termination_duration_seconds", now - (node.deleting_since or now), pool)
    observe("nodes_lifetime_duration_seconds", now - node.created, pool)


def node_drained(claim: NodeClaim) -> None:
    """nodes_drained_total: the condition has become True (T-19)."""
    count("nodes_drained_total", _pool(claim.labels))


def claim_terminated(claim: NodeClaim, now: float) -> None:
    """Its finalizer is off (L-55)."""
    pool = _pool(claim.labels)
    place = {"capacity_type": claim.labels.get(names.CAPACITY_TYPE, ""), "zone": claim.labels.get(names.ZONE, "")}
    count("nodeclaims_terminated_total", {**pool, **place})
    observe("nodeclaims_termination_duration_seconds", now - (claim.deleting_since or now), pool)


def instance_terminated(pool: str, seconds: float) -> None:
    """From the first call to its end (L-53)."""
    observe("nodeclaims_instance_termination_duration_seconds", seconds, {"nodepool": pool})


def eviction_answered(code: int) -> None:
    """pods_eviction_requests_total; an accepted one is 200 whatever HTTP says (T-26)."""
    count("pods_eviction_requests_total", {"code": "200" if code in (200, 201) else str(code)})


def pod_drained(reason: str) -> None:
    """pods_drained_total: evicted, or deleted by force."""
    count("pods_drained_total", {"reason": reason})


def _pool(labels: Mapping[str, str]) -> dict[str, str]:
    return {"nodepool": labels.get(names.NODE_POOL, "")}


def _mode(claim: NodeClaim) -> str:
    """M-2."""
    if claim.termination_grace is None:
        return "graceful"
    return "forceful" if claim.termination_grace <= 0 else "eventual"
