"""Metrics as Prometheus reads them: Karpenter's names and labels, nothing added."""

import re

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from dovetail.model import names
from dovetail.model.snapshot import Snapshot
from dovetail.telemetry.metrics.exposition import counted, measured
from dovetail.telemetry.metrics.gauges import Sample
from dovetail.telemetry.metrics.karpenters import catalogue as meters
from dovetail.telemetry.metrics.karpenters.cluster_lines import ClusterLines
from tests.lifecycle.objects import DAEMON, a_joined_claim, a_joined_node, a_new_pool, a_web_pod
from tests.metrics.shown import shown


def test_a_counter_keeps_its_name_and_labels() -> None:
    reader = InMemoryMetricReader()
    meter = MeterProvider(metric_readers=[reader]).get_meter("test")
    meter.create_counter("karpenter_nodes_created_total", description="Nodes created.").add(
        2, {"zone": "a", "nodepool": 'x"y'}
    )

    assert list(counted(reader.get_metrics_data())) == [
        "# HELP karpenter_nodes_created_total Nodes created.",
        "# TYPE karpenter_nodes_created_total counter",
        'karpenter_nodes_created_total{nodepool="x\\"y",zone="a"} 2',
    ]


def test_a_histogram_has_cumulative_buckets() -> None:
    reader = InMemoryMetricReader()
    meter = MeterProvider(metric_readers=[reader]).get_meter("test")
    made = meter.create_histogram("karpenter_h", description="H.", explicit_bucket_boundaries_advisory=[1, 2])
    for seconds in (0.5, 1.5, 9.0):
        made.record(seconds, {"nodepool": "p"})

    assert list(counted(reader.get_metrics_data()))[2:] == [
        'karpenter_h_bucket{nodepool="p",le="1"} 1',
        'karpenter_h_bucket{nodepool="p",le="2"} 2',
        'karpenter_h_bucket{nodepool="p",le="+Inf"} 3',
        'karpenter_h_sum{nodepool="p"} 11',
        'karpenter_h_count{nodepool="p"} 3',
    ]


def test_durations_have_upstreams_buckets() -> None:
    """Each duration has as many buckets as Karpenter's, from the same first to the same last (MET-1, MET-3)."""
    bounds = {name: (len(edges), edges[0], edges[-1]) for name, (_, edges) in meters.HISTOGRAMS.items()}

    assert bounds["nodeclaims_termination_duration_seconds"] == (12, 1.0, 2048.0)
    assert bounds["nodeclaims_instance_termination_duration_seconds"] == (11, 1.0, 1024.0)
    assert bounds["nodes_lifetime_duration_seconds"] == (21, 900.0, 2592000.0)
    assert bounds["cloudprovider_duration_seconds"] == (45, 0.005, 600.0)


def test_a_nodes_gauges_show_what_its_pods_request() -> None:
    """MET-3: cpu in cores; MET-4: a series for each resource."""
    node = a_joined_node(
        labels={names.NODE_POOL: "pool"}, allocatable={"cpu": 3 * 10**9}, capacity={"cpu": 4 * 10**9}, created=500.0
    )
    pods = [
        a_web_pod("one", node_name=node.name, requests={"cpu": 10**9}),
        a_web_pod("agent", node_name=node.name, requests={"cpu": 5 * 10**8}, owners=(DAEMON,)),
    ]
    snapshot = Snapshot(
        now=1000.0,
        nodes={node.name: node},
        claims={"c": a_joined_claim()},
        pods={pod.uid: pod for pod in pods},
        pools={"pool": a_new_pool(limits={"cpu": 8 * 10**9})},
    )

    found = {(sample.name, dict(sample.labels).get("resource_type", "")): sample for sample in shown(snapshot)}

    assert found[("nodes_allocatable", "cpu")].value == 3.0
    assert found[("nodes_total_pod_requests", "cpu")].value == 1.0
    assert found[("nodes_total_daemon_requests", "cpu")].value == 0.5
    assert found[("nodes_system_overhead", "cpu")].value == 1.0
    assert found[("nodes_current_lifetime_seconds", "")].value == 500.0
    assert found[("cluster_utilization_percent", "cpu")].value == 50.0
    assert found[("nodepools_limit", "cpu")].value == 8.0
    assert found[("nodepools_usage", "cpu")].value == 4.0
    assert (found[("cluster_state_node_count", "")].value, found[("cluster_state_synced", "")].value) == (1.0, 1.0)
    labels = dict(found[("nodes_allocatable", "cpu")].labels)
    assert (labels["managed"], labels["nodepool"], labels["node_name"]) == ("true", "pool", node.name)


def test_a_pods_gauge_says_whose_it_is_and_how_it_stands() -> None:
    """MET-1: the owner by kind and name."""
    node = a_joined_node(labels={names.NODE_POOL: "pool", names.ZONE: "zone-a"})
    pods = {
        "a": a_web_pod("a", node_name=node.name, ready=True),
        "b": a_web_pod("b", node_name="", phase="Pending", owners=()),
    }
    snapshot = Snapshot(now=1.0, nodes={node.name: node}, claims={"c": a_joined_claim()}, pods=pods)

    said_of = {dict(each.labels)["name"]: dict(each.labels) for each in shown(snapshot) if each.name == "pods_state"}
    one, other = said_of["a"], said_of["b"]

    said = ("name", "namespace", "owner", "node", "scheduled", "phase", "ready", "nodepool", "zone", "managed")
    assert [one[label] for label in said] == [
        *("a", "apps", "ReplicaSet/web", node.name, "true", "Running", "true"),
        *("pool", "zone-a", "true"),
    ]
    assert [other[label] for label in said] == ["b", "apps", "", "", "false", "Pending", "false", "", "", "false"]


def test_every_gauge_has_its_help() -> None:
    snapshot = Snapshot(now=1.0, nodes={"n": a_joined_node("n")}, pods={"p": a_web_pod()}, pools={"pool": a_new_pool()})

    lines = b"".join(ClusterLines().blocks(snapshot)).decode().splitlines()

    helped = {line.split()[2] for line in lines if line.startswith("# HELP")}
    assert {re.split("[{ ]", line)[0] for line in lines if not line.startswith("#")} == helped
    assert "karpenter_pods_state" in helped
    assert list(measured([Sample(name="build_info", value=1.0)]))[-1] == "karpenter_build_info 1"


def test_resources_that_a_node_has_not_are_left_out_where_they_are_very_many() -> None:
    node = a_joined_node(allocatable={"cpu": 3 * 10**9}, capacity={"cpu": 4 * 10**9})
    asked = {f"example.com/r{i}": 0 for i in range(10_000)}
    pod = a_web_pod("many", node_name=node.name, requests={"cpu": 10**9, **asked})
    snapshot = Snapshot(now=1000.0, nodes={node.name: node}, pods={pod.uid: pod})

    found = [dict(sample.labels)["resource_type"] for sample in shown(snapshot) if "pod_requests" in sample.name]
    assert found == ["cpu"]
