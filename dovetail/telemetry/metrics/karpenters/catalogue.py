"""Karpenter's metrics by name: what each counts, in words, and the buckets of its durations (MET-1, MET-3).

Karpenter's names have only Karpenter's labels: a dashboard that sums over a label of our own would count twice.
"""

from collections.abc import Mapping
from typing import Final

from opentelemetry import metrics

from dovetail.telemetry.metrics.duties import DISRUPTION, ORDERS, PROVISIONING
from dovetail.telemetry.metrics.instruments import OWN_PREFIX, PREFIX, Gauge, Instruments
from dovetail.telemetry.metrics.summaries import Summaries

_DOUBLING_TO_1024: Final = tuple(2.0**power for power in range(11))
_DOUBLING_TO_2048: Final = tuple(2.0**power for power in range(12))
_LIFETIMES: Final = tuple(
    60.0 * minutes
    for minutes in (
        *(15, 30, 45, 60, 120, 180, 240, 360, 480, 600, 720, 1080, 1440, 2160, 2880, 4320, 7200, 10080),
        *(14400, 20160, 43200),
    )
)
_REBOOTS: Final = tuple(10.0 * 2**power for power in range(8))
# MET-3: from 5 ms to 10 minutes.
_LONG: Final = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5),
    *(1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0),
    *(120.0, 150.0, 300.0, 450.0, 600.0),
)

COUNTERS: Final = {
    "nodeclaims_created_total": "NodeClaims created, by reason and owning NodePool.",
    "nodeclaims_terminated_total": "NodeClaims terminated, by owning NodePool.",
    "nodes_reboots_total": "Reboots of instances for repair, by result: succeeded, provider_error, recovery_timeout.",
    "nodeclaims_disrupted_total": "NodeClaims disrupted, by reason and owning NodePool.",
    "nodeclaims_unhealthy_disrupted_total": "NodeClaims disrupted because their node was unhealthy, by condition.",
    "pods_disruption_initiated_total": "Pods on nodes whose disruption was begun, by reason and owning NodePool.",
    "nodes_created_total": "Nodes created, by owning NodePool.",
    "nodes_terminated_total": "Nodes terminated, by owning NodePool.",
    "nodes_drained_total": "Nodes drained, by owning NodePool.",
    "pods_eviction_requests_total": "Eviction requests, by the code of their answer.",
    "pods_drained_total": "Pods evicted or deleted because their node leaves, by reason.",
    "voluntary_disruption_decisions_total": "Disruption decisions carried out, by decision and reason.",
    "voluntary_disruption_decisions_by_nodepool_total": "The same, for each NodePool whose nodes they take.",
    "voluntary_disruption_terminate_first_decisions_total": "Of these, those whose node leaves before its replacement.",
    "voluntary_disruption_consolidation_timeouts_total": "Searches for a consolidation that ran out of time.",
    "voluntary_disruption_failed_validations_total": "Nodes of decisions that did not survive the second look.",
    "voluntary_disruption_queue_failures_total": "Replacements that never came up, by decision and reason.",
    "consolidation_moves_total": "Consolidations worked out, by decision, owning NodePool and policy.",
    "nodepools_cost_tracker_errors_total": "Looks at a NodePool's cost that failed for want of prices.",
    "cloudprovider_errors_total": "Errors of calls to the cloud, by method.",
}
HISTOGRAMS: Final[dict[str, tuple[str, tuple[float, ...]]]] = {
    "nodeclaims_termination_duration_seconds": (
        "Seconds from a NodeClaim's deletion to the end of its finalizer.",
        _DOUBLING_TO_2048,
    ),
    "nodeclaims_instance_termination_duration_seconds": (
        "Seconds from the first call to terminate an instance to its end.",
        _DOUBLING_TO_1024,
    ),
    "nodes_reboot_duration_seconds": ("Seconds from a reboot's request to its outcome, by result.", _REBOOTS),
    "nodes_reboot_recovery_duration_seconds": ("Seconds from the cloud's answer until the node was back.", _REBOOTS),
    "scheduler_scheduling_duration_seconds": ("Seconds that one round of placing pods took.", _LONG),
    "pods_scheduling_decision_duration_seconds": (
        "Seconds from when a pod was first seen pending to the first decision about it.",
        _LONG,
    ),
    "pods_bound_duration_seconds": ("Seconds from a pod's creation until it was bound to a node.", _LONG),
    "pods_provisioning_bound_duration_seconds": (
        "Seconds from when room was first found for a pod until it was bound to a node.",
        _LONG,
    ),
    "pods_provisioning_startup_duration_seconds": (
        "Seconds from when room was first found for a pod until it was ready.",
        _LONG,
    ),
    "nodes_lifetime_duration_seconds": ("Seconds from a Node's creation to its end.", _LIFETIMES),
    "voluntary_disruption_decision_evaluation_duration_seconds": (
        "Seconds of deciding, by the last method that had candidates.",
        _LONG,
    ),
    "consolidation_score": (
        "What a policy that weighs consolidations makes of one, by decision, NodePool and policy.",
        (0.1, 0.25, 0.33, 0.5, 1.0, 2.0, 5.0, 10.0),
    ),
    "cloudprovider_duration_seconds": ("Seconds of calls to the cloud, by method.", _LONG),
}

# Summaries upstream; for each we also have a histogram that can be summed, `dovetail_` and the same name.
SUMMARIES: Final = {
    "nodes_termination_duration_seconds": "Seconds from a Node's deletion to the end of its finalizer.",
    "pods_startup_duration_seconds": "Seconds from a pod's creation until it was ready.",
}

GAUGES: Final = {
    "voluntary_disruption_eligible_nodes": "Nodes that could be disrupted for that reason, budgets aside.",
    "scheduler_unschedulable_pods_count": "Pods that found no place in the last round.",
    "scheduler_pending_pods_by_effective_zone_count": (
        "Pending pods of the last round by the one zone that they are bound to, flexible where there are several, none."
    ),
    "scheduler_ignored_pods_count": "Pods that took no part in the last round, because what they ask for is not valid.",
}

# The loop whose worker publishes a gauge of its last round: what another worker found an hour ago is outdated.
GAUGE_LOOPS: Final = {
    "karpenter_voluntary_disruption_eligible_nodes": DISRUPTION,
    "karpenter_scheduler_unschedulable_pods_count": PROVISIONING,
    "karpenter_scheduler_pending_pods_by_effective_zone_count": PROVISIONING,
    "karpenter_scheduler_ignored_pods_count": PROVISIONING,
    "dovetail_pods_without_further_claims": PROVISIONING,
    "dovetail_plans_held": DISRUPTION,
    "dovetail_instances_without_claim": ORDERS,
}

# The meter is a placeholder until the worker installs the SDK.
INSTRUMENTS = Instruments(meter=metrics.get_meter("dovetail"), counters=COUNTERS, histograms=HISTOGRAMS, gauges=GAUGES)
BESIDE = Instruments(
    meter=metrics.get_meter("dovetail.beside"),
    counters={},
    histograms={name: (words, _LONG) for name, words in SUMMARIES.items()},
    prefix=OWN_PREFIX,
)
QUANTILES = Summaries(SUMMARIES, PREFIX)


def count(name: str, labels: Mapping[str, str], number: int = 1) -> None:
    """Add to the counter of that name, without its prefix."""
    INSTRUMENTS.count(name, labels, number)


def observe(name: str, amount: float, labels: Mapping[str, str]) -> None:
    """Add one observation to the histogram or the summary of that name, without its prefix."""
    if name in SUMMARIES:
        QUANTILES.observe(name, amount, labels)
        BESIDE.observe(name, amount, labels)
    else:
        INSTRUMENTS.observe(name, amount, labels)


def gauge(name: str) -> Gauge:
    """The gauge of that name, without its prefix."""
    return INSTRUMENTS.gauge(name)
