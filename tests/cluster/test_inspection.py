"""The port Inspection on a real API server: what is there, what we may do, what time it is, and everything."""

from typing import Any

import pytest

from dovetail.adapters.kube.client import Client
from dovetail.adapters.kube.connection import ClusterAddress
from dovetail.adapters.kube.inspection import KubeInspection, Need
from dovetail.adapters.kubernetes_json.kinds import CLUSTER_KINDS
from testbed.plane import ApiClient, PlaneState
from tests.cluster.serving_kinds import server
from tests.waiting import until_answered

__all__ = ["server"]
pytestmark = pytest.mark.cluster


async def test_an_admin_lacks_no_right_and_the_clocks_of_one_machine_agree(plane: PlaneState) -> None:
    client = Client(ClusterAddress(kubeconfig=plane.kubeconfig))
    await client.open()
    try:
        facts = await KubeInspection(client, gated=(), need=Need(), node_classes=()).facts()
    finally:
        await client.close()

    assert facts.missing_rights == ()
    assert abs(facts.clock_ahead) <= facts.clock_error + 0.1
    assert facts.version.startswith("v1.")


async def test_every_kind_is_recorded_as_json_once_it_is_served(plane: PlaneState, server: ApiClient) -> None:
    client = Client(ClusterAddress(kubeconfig=plane.kubeconfig))
    await client.open()
    try:
        inspection = KubeInspection(client, gated=(), need=Need(), node_classes=())
        missing = (await inspection.facts()).missing_kinds
        objects = await inspection.objects()
    finally:
        await client.close()

    assert missing == ()
    assert {kind.name for kind in CLUSTER_KINDS} == set(objects)
    assert {n["metadata"]["name"] for n in objects["Namespace"]} >= {"default", "kube-system"}


OLD_KIND = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "provisioners.karpenter.sh"},
    "spec": {
        "group": "karpenter.sh",
        "scope": "Cluster",
        "names": {"kind": "Provisioner", "plural": "provisioners", "singular": "provisioner"},
        "versions": [
            {
                "name": "v1alpha5",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


async def is_made(server: ApiClient, path: str, body: dict[str, Any]) -> bool:
    """A kind is served a moment after its definition stands."""
    return (await server.post(path, body)).status == 201


async def test_what_is_left_of_karpenter_before_v1_is_named_where_there_is_any(
    plane: PlaneState, server: ApiClient
) -> None:
    kinds, kind = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/apis/karpenter.sh/v1alpha5/provisioners"
    maps = "/api/v1/namespaces/kube-system/configmaps"
    client = Client(ClusterAddress(kubeconfig=plane.kubeconfig))
    await client.open()
    try:
        inspection = KubeInspection(client, gated=(), need=Need(), node_classes=())
        before = (await inspection.facts()).left_behind
        assert (await server.post(kinds, OLD_KIND)).status == 201
        body = {"apiVersion": "karpenter.sh/v1alpha5", "kind": "Provisioner", "metadata": {"name": "default"}}
        await until_answered(lambda: is_made(server, kind, body), words="the kind is served")
        settings = {"metadata": {"name": "karpenter-global-settings"}, "data": {"aws.clusterName": "c"}}
        assert (await server.post(maps, settings)).status == 201
        after = (await inspection.facts()).left_behind
    finally:
        await server.delete(f"{kinds}/provisioners.karpenter.sh")
        await server.delete(f"{maps}/karpenter-global-settings")
        await client.close()

    assert before == ()
    assert after == ("Provisioner default", "ConfigMap kube-system/karpenter-global-settings")
