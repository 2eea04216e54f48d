"""CapacityBuffers, PodTemplates and workloads as they are read (PLC-211, PLC-212)."""

from typing import Any

import pytest

from dovetail.adapters.kubernetes_json.cache import Cache
from dovetail.adapters.kubernetes_json.kinds import BUFFER_KINDS, CLUSTER_KINDS
from dovetail.adapters.kubernetes_json.parsing.buffers import (
    parse_capacity_buffer,
    parse_pod_template,
    parse_workload,
)
from dovetail.adapters.kubernetes_json.parsing.deployments import parse_deployment
from dovetail.adapters.kubernetes_json.parsing.errors import UnreadableObject
from dovetail.adapters.kubernetes_json.rendering.buffers import render_status
from dovetail.model.nodes import Condition
from dovetail.model.objects.buffers import BufferStatus, WorkloadRef
from dovetail.model.values.json import Json

CONTAINER: Json = {
    "name": "main",
    "resources": {"requests": {"cpu": "500m"}, "limits": {"cpu": "1", "memory": "1Gi"}},
    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
}
SPEC: Json = {
    "containers": [CONTAINER],
    "nodeName": "n1",
    "nodeSelector": {"a": "b"},
    "volumes": [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
    ],
}
TEMPLATE: Json = {"metadata": {"labels": {"app": "web"}}, "spec": SPEC}


def an_object(name: str = "web", **fields: Any) -> Json:
    meta = {"name": name, "namespace": "shop", "uid": "u", "resourceVersion": "7", "generation": 4}
    return {"metadata": meta, **fields}


def test_a_buffer_is_read_with_all_that_it_says() -> None:
    """PLC-211."""
    spec = {
        "scalableRef": {"apiGroup": "apps", "kind": "StatefulSet", "name": "db"},
        "replicas": 2,
        "percentage": 10,
        "limits": {"cpu": "4", "memory": "1Gi"},
    }
    found = parse_capacity_buffer(an_object(spec=spec))
    assert (found.key, found.generation, found.resource_version) == ("shop/web", 4, "7")
    assert (found.strategy, found.fault, found.deleting) == ("buffer.x-k8s.io/active-capacity", "", False)
    assert found.workload == WorkloadRef(group="apps", kind="StatefulSet", name="db")
    assert (found.replicas, found.percentage, found.limits) == (2, 10, {"cpu": 4 * 10**9, "memory": 2**30})


def test_a_status_comes_back_as_it_was_written() -> None:
    condition = Condition(type="Provisioning", status="True", reason="A", message="b", changed=1.0, generation=4)
    status = BufferStatus(template="t", template_generation=3, replicas=2, strategy="s", conditions=(condition,))
    assert parse_capacity_buffer(an_object(spec={}, status=render_status(status))).status == status


def test_fields_that_no_longer_hold_are_taken_away() -> None:
    """null removes a field in a merge patch."""
    assert render_status(BufferStatus()) == {
        "podTemplateRef": None,
        "podTemplateGeneration": None,
        "replicas": None,
        "provisioningStrategy": None,
        "conditions": [],
    }


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ({"podTemplateRef": {"name": "t"}, "replicas": "many"}, "spec.replicas: "),
        ({"podTemplateRef": {}}, "spec.podTemplateRef.name: "),
        ({"podTemplateRef": {"name": "t"}}, "spec: If podTemplateRef is set, replicas or limits must also be set"),
        ({"podTemplateRef": {"name": "t"}, "limits": {"cpu": "much"}}, "spec.limits.cpu: "),
    ],
)
def test_a_spec_that_cannot_be_used_is_a_buffer_that_says_why(spec: Any, fault: str) -> None:
    """PLC-211: its status says what is wrong."""
    assert parse_capacity_buffer(an_object(spec=spec)).fault.startswith(fault)


def test_what_is_no_buffer_at_all_is_left_out_by_name_and_field() -> None:
    with pytest.raises(UnreadableObject, match="CapacityBuffer shop/web: spec: "):
        parse_capacity_buffer(an_object(spec="none of your business"))


def test_a_template_s_pods_ask_for_what_admitted_pods_would_and_have_no_volumes() -> None:
    """PLC-212: limits stand for missing requests; PVC and ephemeral volumes are left out, and the node's name."""
    found = parse_pod_template(an_object(template=TEMPLATE))
    assert found.pod is not None and found.generation == 4
    assert found.pod.requests == {"cpu": 5 * 10**8, "memory": 2**30, "pods": 1}
    shape = found.pod.shape
    assert (shape.namespace, shape.labels, shape.node_selector) == ("shop", {"app": "web"}, (("a", "b"),))
    assert (shape.volumes, found.pod.node_name) == ((), "")


@pytest.mark.parametrize(("replicas", "count"), [({"replicas": 3}, 3), ({"replicas": 0}, 0), ({}, 1)])
def test_a_workload_is_read_with_its_replicas_and_its_pods(replicas: Json, count: int) -> None:
    """PLC-211."""
    body = an_object(spec={"template": TEMPLATE, "selector": {"matchLabels": {"app": "web"}}, **replicas})
    found, source = parse_deployment(body, moves=False, followed=True), parse_workload("StatefulSet", body)
    deployment = found.pods
    assert deployment is not None and deployment == source.pods
    assert (deployment.replicas, deployment.pod is None) == (count, False)
    assert (source.kind, source.selector is None) == ("StatefulSet", False)


@pytest.mark.parametrize(
    "template", [None, {}, {"spec": {}}, {"spec": {"containers": [{"name": "c", "resources": 5}]}}]
)
def test_a_template_that_cannot_be_read_says_so_and_hides_no_selector(template: Json | None) -> None:
    body = an_object(spec={"template": template, "selector": {"matchLabels": {"app": "web"}}})
    source = parse_workload("ReplicaSet", body)
    assert source.selector is not None and source.pods is not None
    assert source.pods.pod is None and source.pods.fault.startswith("template: ")
    assert parse_pod_template(an_object(template=template)).pod is None


def test_what_buffers_follow_is_watched_once() -> None:
    """Kinds of an open gate take the place of those of the same name."""
    cache = Cache((*CLUSTER_KINDS, *BUFFER_KINDS))
    names = [kind.name for kind in cache.kinds()]
    assert len(names) == len(set(names)) == len(CLUSTER_KINDS) + 3
    body = an_object(spec={"template": TEMPLATE})
    cache.replace("ReplicaSet", [body], 7)
    cache.replace("Deployment", [body], 7)
    snapshot = cache.snapshot(0.0)
    assert snapshot.selector_sources["ReplicaSet/shop/web"].pods == snapshot.deployments["shop/web"].pods
