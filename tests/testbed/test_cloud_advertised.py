"""A node has the devices that its NodeClaim's status promises, as the recorded clusters' nodes had."""

from typing import cast

import pytest

from testbed.cloud.json_object import Json
from testbed.cloud.kubelets.advertised import add, advertised
from testbed.cloud.kubelets.clients import Cluster, UnreachableError

INSTANCE: Json = {"id": "i-1", "providerID": "aws:///a/i-1", "tags": {"karpenter.sh/nodeclaim": "one"}}
CAPACITY = {"cpu": "2", "memory": "8Gi", "eks.amazonaws.com/nitro-sandbox": "4"}


def cluster(**claims: Json) -> Cluster:
    """An API server that has these NodeClaims."""

    class Answers:
        def ask(self, method: str, path: str) -> tuple[int, Json]:
            found = claims.get(path.rpartition("/")[2])
            return (404, {}) if found is None or method != "GET" else (200, found)

    return cast(Cluster, Answers())


def claim(provider_id: str, **metadata: str) -> Json:
    return {"metadata": metadata, "status": {"providerID": provider_id, "capacity": CAPACITY}}


def test_a_node_advertises_its_claim_s_devices_and_counts_the_rest_itself() -> None:
    node: Json = {"status": {"capacity": {"cpu": "2"}, "allocatable": {"cpu": "1900m"}}}

    add(node, advertised(cluster(one=claim("aws:///a/i-1")), INSTANCE))

    devices = {"eks.amazonaws.com/nitro-sandbox": "4"}
    assert node["status"] == {"capacity": {"cpu": "2", **devices}, "allocatable": {"cpu": "1900m", **devices}}


def test_a_node_waits_until_its_claim_names_the_instance() -> None:
    with pytest.raises(UnreachableError, match="waiting"):
        advertised(cluster(one=claim("")), INSTANCE)


def test_an_instance_without_a_claim_or_whose_claim_leaves_joins_as_it_is() -> None:
    leaving = claim("", deletionTimestamp="2026-01-01T00:00:00Z")

    assert advertised(cluster(), INSTANCE) == advertised(cluster(one=leaving), INSTANCE) == {}
    assert advertised(cluster(), {**INSTANCE, "tags": {}}) == {}
