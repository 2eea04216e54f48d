"""Karpenter's metrics, as its reference page (v1.x) lists them, and what there is of each here.

Data for docs/reference/metrics.md and for the test that compares it with what is published: a name that says "same" or
"different" is one that a worker prints, a name that says "not here" is one that it does not.
"""

from typing import Final, NamedTuple


class Upstream(NamedTuple):
    """One metric of Karpenter's. `here`: same, `different: how`, or `not here: why`."""

    name: str
    type: str
    labels: str
    here: str


_SAME: Final = "same"
_PLACE: Final = "node_name nodepool zone region instance_type arch os capacity_type phase managed resource_type"
_CONDITION: Final = "type status reason"
_UNHEALTHY: Final = "nodepool capacity_type image_id termination_mode"
_DISRUPTED: Final = "reason nodepool capacity_type termination_mode consolidation_policy"
_REASON: Final = "decision reason consolidation_type"

_KARPENTER: Final = (
    ("build_info", "gauge", "version goversion goarch commit", "different: `goversion` and `commit` are empty"),
    ("nodeclaims_created_total", "counter", "reason nodepool min_values_relaxed", _SAME),
    ("nodeclaims_disrupted_total", "counter", _DISRUPTED, _SAME),
    ("nodeclaims_terminated_total", "counter", "nodepool capacity_type zone", _SAME),
    ("nodeclaims_unhealthy_disrupted_total", "counter", f"condition {_UNHEALTHY}", _SAME),
    ("nodeclaims_termination_duration_seconds", "histogram", "nodepool", _SAME),
    ("nodeclaims_instance_termination_duration_seconds", "histogram", "nodepool", _SAME),
    ("nodes_allocatable", "gauge", _PLACE, "different: `phase` is empty"),
    ("nodes_total_pod_requests", "gauge", _PLACE, "different: `phase` is empty"),
    ("nodes_total_pod_limits", "gauge", _PLACE, "not here: limits of pods take part in no decision and are not read"),
    ("nodes_total_daemon_requests", "gauge", _PLACE, "different: `phase` is empty"),
    (
        "nodes_total_daemon_limits",
        "gauge",
        _PLACE,
        "not here: limits of pods take part in no decision and are not read",
    ),
    ("nodes_system_overhead", "gauge", _PLACE, "different: `phase` is empty"),
    ("nodes_current_lifetime_seconds", "gauge", _PLACE.rpartition(" ")[0], "different: `phase` is empty"),
    ("nodes_created_total", "counter", "nodepool zone", _SAME),
    ("nodes_terminated_total", "counter", "nodepool zone", _SAME),
    ("nodes_drained_total", "counter", "nodepool", _SAME),
    ("nodes_eviction_requests_total", "counter", "code", "not here: the older name of `pods_eviction_requests_total`"),
    ("nodes_reboots_total", "counter", "result", _SAME),
    ("nodes_reboot_duration_seconds", "histogram", "result", _SAME),
    ("nodes_reboot_recovery_duration_seconds", "histogram", "", _SAME),
    ("nodes_termination_duration_seconds", "summary", "nodepool quantile", _SAME),
    ("nodes_lifetime_duration_seconds", "histogram", "nodepool", _SAME),
    ("pods_state", "gauge", "name namespace owner node nodepool zone phase ready scheduled managed", _SAME),
    ("pods_startup_duration_seconds", "summary", "quantile", _SAME),
    ("pods_bound_duration_seconds", "histogram", "dynamic_resources", _SAME),
    ("pods_unstarted_time_seconds", "gauge", "name namespace", _SAME),
    ("pods_unbound_time_seconds", "gauge", "name namespace dynamic_resources", _SAME),
    ("pods_scheduling_decision_duration_seconds", "histogram", "", _SAME),
    (
        "pods_provisioning_bound_duration_seconds",
        "histogram",
        "dynamic_resources",
        "different: of two workers one counts, and only the pods that it has placed itself",
    ),
    (
        "pods_provisioning_startup_duration_seconds",
        "histogram",
        "",
        "different: of two workers one counts, and only the pods that it has placed itself",
    ),
    ("pods_provisioning_unbound_time_seconds", "gauge", "name namespace dynamic_resources", _SAME),
    ("pods_provisioning_unstarted_time_seconds", "gauge", "name namespace", _SAME),
    ("pods_provisioning_scheduling_undecided_time_seconds", "gauge", "name namespace", _SAME),
    ("pods_eviction_requests_total", "counter", "code", _SAME),
    ("pods_drained_total", "counter", "reason", _SAME),
    ("pods_disruption_initiated_total", "counter", _DISRUPTED, _SAME),
    ("voluntary_disruption_decisions_total", "counter", _REASON, _SAME),
    ("voluntary_disruption_decisions_by_nodepool_total", "counter", f"nodepool {_REASON}", _SAME),
    ("voluntary_disruption_eligible_nodes", "gauge", "reason", _SAME),
    ("voluntary_disruption_queue_failures_total", "counter", _REASON, _SAME),
    ("voluntary_disruption_consolidation_timeouts_total", "counter", "consolidation_type", _SAME),
    ("voluntary_disruption_failed_validations_total", "counter", "consolidation_type", _SAME),
    (
        "voluntary_disruption_decision_evaluation_duration_seconds",
        "histogram",
        "reason consolidation_type",
        _SAME,
    ),
    ("consolidation_moves_total", "counter", "decision nodepool policy", _SAME),
    (
        "voluntary_disruption_terminate_first_decisions_total",
        "counter",
        "nodepool reason terminate_first_reason",
        _SAME,
    ),
    ("consolidation_score", "histogram", "decision nodepool policy", _SAME),
    ("scheduler_scheduling_duration_seconds", "histogram", "controller", _SAME),
    ("scheduler_queue_depth", "gauge", "controller scheduling_id", "different: without `scheduling_id`"),
    ("scheduler_unfinished_work_seconds", "gauge", "controller scheduling_id", "different: without `scheduling_id`"),
    ("scheduler_ignored_pods_count", "gauge", "", _SAME),
    ("scheduler_unschedulable_pods_count", "gauge", "controller", _SAME),
    ("scheduler_pending_pods_by_effective_zone_count", "gauge", "controller zone", _SAME),
    ("nodepools_limit", "gauge", "nodepool resource_type", _SAME),
    ("nodepools_usage", "gauge", "nodepool resource_type", _SAME),
    ("nodepools_allowed_disruptions", "gauge", "nodepool reason", _SAME),
    ("nodepools_nodes_consuming_budgets", "gauge", "nodepool reason", _SAME),
    ("nodepools_cost_total", "gauge", "nodepool", "different: at the prices of the scrape"),
    ("nodepools_cost_tracker_errors_total", "counter", "nodepool", _SAME),
    ("cluster_utilization_percent", "gauge", "resource_type", _SAME),
    ("cluster_state_node_count", "gauge", "", _SAME),
    ("cluster_state_synced", "gauge", "", _SAME),
    (
        "cluster_state_unsynced_time_seconds",
        "gauge",
        "",
        "different: measured from the first scrape that found it so",
    ),
    ("interruption_received_messages_total", "counter", "message_type", _SAME),
    ("interruption_deleted_messages_total", "counter", "", _SAME),
    ("interruption_message_queue_duration_seconds", "histogram", "", _SAME),
    ("interruption_instance_status_unhealthy_total", "counter", "category", _SAME),
    (
        "cloudprovider_duration_seconds",
        "histogram",
        "controller method provider",
        "different: Create, Delete, Get, List, Reboot",
    ),
    (
        "cloudprovider_errors_total",
        "counter",
        "controller method provider error nodepool",
        "different: Create, Delete, Get, List, Reboot; `nodepool` is empty but for Create",
    ),
    ("cloudprovider_instance_type_cpu_cores", "gauge", "instance_type", _SAME),
    ("cloudprovider_instance_type_memory_bytes", "gauge", "instance_type", _SAME),
    ("cloudprovider_instance_type_offering_available", "gauge", "instance_type capacity_type zone", _SAME),
    ("cloudprovider_instance_type_offering_price_estimate", "gauge", "instance_type capacity_type zone", _SAME),
    ("cloudprovider_instance_launch_failures_total", "counter", "zone zone_id capacity_type reason", _SAME),
    ("cloudprovider_instance_termination_failures_total", "counter", "zone zone_id", _SAME),
    ("cloudprovider_batcher_batch_time_seconds", "histogram", "batcher", "different: nothing is joined for fleets"),
    ("cloudprovider_batcher_batch_size", "histogram", "batcher", "different: nothing is joined for fleets"),
    ("ec2nodeclasses_userdata_bytes", "gauge", "nodeclass", _SAME),
)
_LIBRARIES: Final = (
    ("controller_runtime_reconcile_total", "counter", "controller result", "different: steps and rounds"),
    ("controller_runtime_reconcile_errors_total", "counter", "controller", "different: attempts of steps"),
    ("controller_runtime_terminal_reconcile_errors_total", "counter", "controller", "different: attempts of steps"),
    ("controller_runtime_reconcile_panics_total", "counter", "controller", "different: always 0"),
    (
        "controller_runtime_reconcile_time_seconds",
        "histogram",
        "controller",
        "different: steps that act, and rounds of planning; waits are not timed",
    ),
    ("controller_runtime_active_workers", "gauge", "controller", "different: steps that run"),
    (
        "controller_runtime_max_concurrent_reconciles",
        "gauge",
        "controller",
        "not here: steps of all controllers share the slots of their queue (`temporal_worker_task_slots_available`)",
    ),
    (
        "workqueue_depth",
        "gauge",
        "name controller",
        "not here: the queue is on Temporal's server; its own metric is `approximate_backlog_count`",
    ),
    ("workqueue_adds_total", "counter", "name controller", "different: attempts that this worker was handed"),
    ("workqueue_retries_total", "counter", "name controller", "different: attempts beyond the first"),
    ("workqueue_queue_duration_seconds", "histogram", "name controller", "different: until a worker took the attempt"),
    ("workqueue_work_duration_seconds", "histogram", "name controller", "different: steps that act"),
    ("workqueue_unfinished_work_seconds", "gauge", "name controller", "different: steps that act"),
    ("workqueue_longest_running_processor_seconds", "gauge", "name controller", "different: steps that act"),
    ("client_go_request_total", "counter", "code method", "different: watches are not counted"),
    (
        "client_go_request_duration_seconds",
        "histogram",
        "verb group version kind subresource",
        "different: `kind` is its plural; watches are not counted",
    ),
    ("aws_sdk_go_request_total", "counter", "service action code", "different: `code` is AWS's own, or 200"),
    ("aws_sdk_go_request_duration_seconds", "histogram", "service action", _SAME),
    ("aws_sdk_go_request_retry_count", "histogram", "service action", "different: of calls that were answered"),
    ("aws_sdk_go_request_attempt_total", "counter", "service action code", "different: of calls that were answered"),
    (
        "aws_sdk_go_request_attempt_duration_seconds",
        "histogram",
        "service action",
        "not here: the library does not tell how long each attempt took",
    ),
    (
        "leader_election_master_status",
        "gauge",
        "name",
        "different: 1 for the worker that speaks for the cluster; all of them work",
    ),
    ("leader_election_slowpath_total", "counter", "name", "not here: there is no lease"),
)


def _conditions() -> tuple[Upstream, ...]:
    found = []
    for infix in ("", "node_", "nodeclaim_", "nodepool_", "ec2nodeclass_"):
        who = "group kind" if not infix else "labels of the kind"
        for name, kind, labels in (
            ("status_condition_count", "gauge", f"namespace name {_CONDITION}"),
            ("status_condition_current_status_seconds", "gauge", f"namespace name {_CONDITION}"),
            ("status_condition_transition_seconds", "histogram", "type status"),
            ("status_condition_transitions_total", "counter", _CONDITION),
            ("termination_current_time_seconds", "gauge", "namespace name"),
            ("termination_duration_seconds", "histogram", ""),
        ):
            found.append(Upstream(f"operator_{infix}{name}", kind, f"{labels} ({who})".strip(), _SAME))
    return tuple(found)


UPSTREAM: Final = (
    *(Upstream(f"karpenter_{name}", kind, labels, here) for name, kind, labels, here in _KARPENTER),
    *_conditions(),
    *(Upstream(*each) for each in _LIBRARIES),
)
