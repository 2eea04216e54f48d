"""The port Inspection on a real API server: what is there, what we may do, what time it is, and everything."""

import pytest

from dovetail.adapters.kube.client import Client
from dovetail.adapters.kube.connection import ClusterAddress
from dovetail.adapters.kube.inspection import KubeInspection
from dovetail.adapters.kubernetes_json.kinds import CLUSTER_KINDS
from testbed.plane import ApiClient, PlaneState
from tests.cluster.serving_kinds import server

__all__ = ["server"]
pytestmark = pytest.mark.cluster


async def test_an_admin_lacks_no_right_and_the_clocks_of_one_machine_agree(plane: PlaneState) -> None:
    client = Client(ClusterAddress(kubeconfig=plane.kubeconfig))
    await client.open()
    try:
        facts = await KubeInspection(client).facts()
    finally:
        await client.close()

    assert facts.missing_rights == ()
    assert abs(facts.clock_ahead) <= facts.clock_error + 0.1
    assert facts.version.startswith("v1.")


async def test_every_kind_is_recorded_as_json_once_it_is_served(plane: PlaneState, server: ApiClient) -> None:
    client = Client(ClusterAddress(kubeconfig=plane.kubeconfig))
    await client.open()
    try:
        inspection = KubeInspection(client)
        missing = (await inspection.facts()).missing_kinds
        objects = await inspection.objects()
    finally:
        await client.close()

    assert missing == ()
    assert {kind.name for kind in CLUSTER_KINDS} == set(objects)
    assert {n["metadata"]["name"] for n in objects["Namespace"]} >= {"default", "kube-system"}
