"""What the panels of Karpenter's two dashboards ask Prometheus, as its guide for v1 has them.

Data for the test that asks a Prometheus beside two workers. A variable of the dashboards stands as `$name`, as there.
"""

from typing import Final, NamedTuple


class Asked(NamedTuple):
    """One expression of a panel. `empty`: why it finds nothing here; most find something."""

    expression: str
    empty: str = ""


# As a person leaves them who changes nothing: everything of each kind.
VARIABLES: Final = {
    "$__rate_interval": "1m",
    "$__range": "1h",
    "$distribution_filter": "nodepool",
    "$controller": "disruption",
    "$instance_type": ".*",
    "$capacity_type": ".*",
    "$nodepool": ".*",
    "$arch": ".*",
    "$zone": ".*",
}

_BEFORE_V1: Final = "Karpenter itself prints karpenter_nodepools_… since v1, and its panel is empty there too"
_AS_FLOATS: Final = "Prometheus 3 keeps the quantiles 0 and 1 as 0.0 and 1.0, whoever prints them"
_OF_NODES: Final = "the node exporter's, which is none of Karpenter's metrics"
_CHOSEN: Final = 'arch=~"$arch",capacity_type=~"$capacity_type",instance_type=~"$instance_type",nodepool=~"$nodepool"'
_IN_ZONES: Final = f'{_CHOSEN},zone=~"$zone"'
_OF_ANY_CAPACITY: Final = _IN_ZONES.replace('capacity_type=~"$capacity_type",', "")
_SPOT: Final = _IN_ZONES.replace('=~"$capacity_type"', '="spot"')


def _used(resource: str) -> str:
    """What the pods of each node request, as a share of what it offers."""
    chosen = f'{{resource_type="{resource}",{_IN_ZONES}}}'
    return (
        f"((karpenter_nodes_total_daemon_requests{chosen} or karpenter_nodes_allocatable*0)"
        f" + (karpenter_nodes_total_pod_requests{chosen} or karpenter_nodes_allocatable*0))"
        f" / karpenter_nodes_allocatable{chosen}"
    )


def _rate_and_total(name: str) -> tuple[Asked, Asked]:
    chosen = f'{name}{{nodepool=~"$nodepool"}}'
    return (
        Asked(f"sum(rate({chosen}[$__rate_interval])) by(cluster,nodepool)"),
        Asked(f"sum by(cluster,nodepool) ({chosen})"),
    )


CAPACITY: Final = (
    *_rate_and_total("karpenter_nodes_created_total"),
    *_rate_and_total("karpenter_nodes_terminated_total"),
    Asked("sum by(reason)(karpenter_voluntary_disruption_eligible_nodes)"),
    *_rate_and_total("karpenter_nodeclaims_disrupted_total"),
    Asked(
        "sum(rate(karpenter_voluntary_disruption_decisions_total[$__rate_interval]))"
        " by(cluster,nodepool,consolidation_type,decision)"
    ),
    Asked("sum by(consolidation_type,decision)(karpenter_voluntary_disruption_decisions_total)"),
    Asked(f"sum by ($distribution_filter)(karpenter_pods_state{{{_CHOSEN}}})"),
    Asked("sum by(phase)(karpenter_pods_state)"),
    *(
        Asked(
            f'karpenter_nodepool_usage{{resource_type="{resource}"}}'
            f' / karpenter_nodepool_limit{{resource_type="{resource}"}}',
            empty=_BEFORE_V1,
        )
        for resource in ("cpu", "memory")
    ),
    Asked('count by (nodepool)(karpenter_nodes_allocatable{nodepool!="N/A",resource_type="cpu"})'),
    Asked('sum by (nodepool)(karpenter_nodes_allocatable{nodepool!="N/A",resource_type="cpu"})'),
    Asked('sum by (nodepool)(karpenter_nodes_allocatable{nodepool!="N/A",resource_type="memory"})'),
    Asked(
        f"(count(karpenter_nodes_allocatable{{{_SPOT}}}) or vector(0))"
        f" / count(karpenter_nodes_allocatable{{{_OF_ANY_CAPACITY}}})"
    ),
    Asked(_used("cpu")),
    Asked(_used("memory")),
    Asked(
        f'karpenter_nodes_total_daemon_requests{{resource_type="pods",{_IN_ZONES}}}'
        f' + karpenter_nodes_total_pod_requests{{resource_type="pods",{_IN_ZONES}}}'
    ),
    Asked(
        "label_replace(sum by (node)(node_time_seconds) - sum by (node)(node_boot_time_seconds),"
        ' "node_name", "$1", "node", "(.+)")',
        empty=_OF_NODES,
    ),
)
_QUANTILES: Final = ("0", "0.5", "0.9", "0.99", "1")
_WHOLE: Final = {"0": "0.0", "1": "1.0"}


def _of_quantiles(name: str, form: str = "{}") -> tuple[Asked, ...]:
    """For each quantile, and as Prometheus 3 has it to be asked for the least and the largest."""
    spelled = [(each, _AS_FLOATS if each in _WHOLE else "") for each in _QUANTILES]
    spelled += [(each, "") for each in _WHOLE.values()]
    return tuple(Asked(form.format(f'{name}{{quantile="{each}"}}'), empty) for each, empty in spelled)


PERFORMANCE: Final = (
    *_of_quantiles("karpenter_nodes_termination_duration_seconds"),
    *_of_quantiles("karpenter_pods_startup_duration_seconds", "max({})"),
    *(
        Asked(
            f"histogram_quantile({each},"
            ' rate(controller_runtime_reconcile_time_seconds_bucket{controller="$controller"}[10m]))'
        )
        for each in _QUANTILES
    ),
    Asked('sum(rate(controller_runtime_reconcile_total{job="karpenter"}[10m])) by (controller)'),
)


def asked(expression: str) -> str:
    """The expression as a browser would send it."""
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    return expression
