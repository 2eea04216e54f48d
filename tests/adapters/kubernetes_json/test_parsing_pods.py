"""Pods and workloads from raw JSON: what is shared, what is read, and which fault is named."""

from typing import Any

import pytest

from dovetail.adapters.kubernetes_json.parsing.errors import UnreadableObject
from dovetail.adapters.kubernetes_json.parsing.pods import parse_pod
from dovetail.adapters.kubernetes_json.parsing.workloads import (
    parse_daemon_set,
    parse_storage_class,
    parse_volume,
)
from dovetail.model import names
from dovetail.model.pods import HostPort, Pod
from dovetail.model.scheduling.host_ports import ports_conflict
from dovetail.model.values.json import Json
from dovetail.placement.buffers.virtual_pods import is_virtual


def _pod(name: str = "p", **spec: Any) -> Json:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}}}
    return {
        "metadata": {"name": name, "namespace": "shop", "uid": name, "labels": {"app": "x"}},
        "spec": {"containers": [container], **spec},
    }


def test_pods_that_are_alike_share_their_shape_and_their_requests() -> None:
    """The token volume that every pod has under a name of its own does not make them differ."""
    one = parse_pod(_pod("a", volumes=[{"name": "kube-api-access-1", "projected": {}}]))
    other = parse_pod(_pod("b", volumes=[{"name": "kube-api-access-2", "projected": {}}]))

    assert (one.shape is other.shape, one.requests is other.requests) == (True, True)


def test_replicas_that_were_resized_or_taken_over_do_not_share_what_differs() -> None:
    """PLC-73. The same workload as the pod beside it, but for what the status and the owners say."""
    plain, resized, refused, orphan = _pod(), _pod(), _pod(), _pod()
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r"}
    for raw in (plain, resized, refused):
        raw["metadata"]["ownerReferences"] = [owner]
    actual = [{"name": "c", "resources": {"requests": {"cpu": "50m"}}}]
    pending = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
    resized["status"] = {"containerStatuses": actual}
    refused["status"] = {"containerStatuses": actual, "conditions": pending}
    pods = [parse_pod(raw) for raw in (plain, resized, refused, orphan)]

    assert [pod.requests["cpu"] // 10**6 for pod in pods] == [100, 100, 50, 100]
    assert [len(pod.owners) for pod in pods] == [1, 1, 1, 0]
    assert len({pod.shape for pod in pods}) == 1


def test_a_pod_that_says_nothing_is_read_in_every_field() -> None:
    pod = parse_pod({"metadata": {"name": "p"}, "spec": {"containers": []}})

    assert pod == Pod(name="p", uid="", shape=pod.shape, requests={"pods": 1})


def test_a_pod_of_the_api_is_never_a_virtual_one_whatever_it_says() -> None:
    """Anybody may write the annotation; room for such a pod would be planned again and again."""
    raw = _pod()
    raw["metadata"]["annotations"] = {names.FAKE_POD: "true", names.BUFFER_NAME: "b", names.DO_NOT_DISRUPT: "true"}

    pod = parse_pod(raw)

    assert (is_virtual(pod), pod.do_not_disrupt) == (False, "true")


def test_host_ports_of_init_containers_are_not_counted() -> None:
    """PLC-82: not even of those that run beside the containers."""
    port = {"containerPort": 1, "hostPort": 80}
    raw = _pod(initContainers=[{"name": "sidecar", "restartPolicy": "Always", "ports": [port]}])

    assert parse_pod(raw).shape.host_ports == ()


def test_host_ports_are_compared_as_addresses() -> None:
    """PLC-82: however they are spelled. An IPv4 address within IPv6 is itself; all that are no address are alike."""

    def port(address: str) -> HostPort:
        raw = _pod()
        raw["spec"]["containers"][0]["ports"] = [{"containerPort": 1, "hostPort": 80, "hostIP": address}]
        return parse_pod(raw).shape.host_ports[0]

    same = [("2001:db8::1", "2001:0db8:0:0::1"), ("::ffff:10.0.0.1", "10.0.0.1"), ("", "::1"), ("0:0::0", "10.0.0.1")]
    same += [("not one", "fe80::1%eth0"), ("010.0.0.1", "10.0.0.256")]
    assert [ports_conflict(port(a), port(b)) for a, b in same] == [True] * len(same)
    assert not ports_conflict(port("2001:db8::1"), port("2001:db8::2"))
    assert not ports_conflict(port("not one"), port("10.0.0.1"))


def test_requests_count_cpu_in_nanocores_and_one_pod() -> None:
    """PLC-74, PLC-77."""
    assert parse_pod(_pod()).requests == {"cpu": 100_000_000, "memory": 2**30, "pods": 1}


def test_a_resized_container_asks_for_the_larger_of_its_spec_and_its_status() -> None:
    """PLC-73."""
    raw = _pod()
    raw["status"] = {"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}

    assert parse_pod(raw).requests["cpu"] == 2 * 10**9


def test_an_ephemeral_volume_is_kept_by_its_own_name() -> None:
    """Its claim is named after the pod, which is no part of the shape."""
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "fast"}}}}

    use = parse_pod(_pod(volumes=[volume])).shape.volumes[0]

    assert (use.claim_name, use.ephemeral, use.storage_class) == ("scratch", True, "fast")


def test_any_reason_unschedulable_makes_a_pod_unschedulable_whatever_its_status() -> None:
    """PLC-20."""
    raw = _pod()
    raw["status"] = {"conditions": [{"type": "PodScheduled", "status": "True", "reason": "Unschedulable"}]}

    assert parse_pod(raw).unschedulable


@pytest.mark.parametrize(
    ("containers", "ready", "failing"),
    [
        ([{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}], "False", True),
        ([{"state": {"running": {}}}, {"state": {"waiting": {"reason": "ImagePullBackOff"}}}], "False", True),
        ([{"state": {"running": {}}, "restartCount": 2}], "False", True),
        ([{"state": {"running": {}}, "restartCount": 1}], "False", False),  # it may have waited for another
        ([{"state": {"running": {}}, "restartCount": 7}], "True", False),
        ([{"state": {"waiting": {"reason": "ContainerCreating"}}}], "False", False),
        ([{}], "Unknown", False),
    ],
)
def test_a_pod_fails_that_is_not_ready_and_whose_containers_do_not_start(
    containers: list[Json], ready: str, failing: bool
) -> None:
    raw = _pod()
    for kind in ("containerStatuses", "initContainerStatuses"):
        raw["status"] = {
            kind: [{"name": "c", **each} for each in containers],
            "conditions": [{"type": "Ready", "status": ready}],
        }
        assert parse_pod(raw).failing == failing


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"spec": {}}, "spec"),
        ({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "much"}}}]}}, "spec resources"),
        (
            {"spec": {"containers": [], "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z"}]}},
            "spec (affinity, tolerations, spread, ports, volumes)",
        ),
        ({"status": {"startTime": "yesterday"}}, "status"),
    ],
)
def test_a_pod_that_cannot_be_read_is_named_with_the_field(change: Json, field: str) -> None:
    """One bad object must not hide the others."""
    with pytest.raises(UnreadableObject) as caught:
        parse_pod({**_pod(), **change})

    assert (caught.value.kind, caught.value.name, caught.value.field) == ("Pod", "shop/p", field)


def test_a_daemon_sets_pod_asks_for_its_limits_where_it_has_no_requests() -> None:
    """PLC-75."""
    container = {"name": "c", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}}
    raw = {"metadata": {"name": "d"}, "spec": {"template": {"spec": {"containers": [container]}}}}

    assert parse_daemon_set(raw).pod.requests == {"cpu": 500_000_000, "memory": 2**30, "pods": 1}


def test_in_tree_volumes_count_for_the_driver_that_took_them_over() -> None:
    """PLC-27."""
    volume = {"metadata": {"name": "v"}, "spec": {"awsElasticBlockStore": {"volumeID": "vol-1"}}}
    storage = {"metadata": {"name": "s"}, "provisioner": "kubernetes.io/aws-ebs"}

    assert (parse_volume(volume).driver, parse_storage_class(storage).provisioner) == ("ebs.csi.aws.com",) * 2
