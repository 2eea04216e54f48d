"""A world may declare the catalogue of its cloud and the NodeClasses that it understands."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dovetail.adapters.simulator.cloud.node_classes import EC2_HASH, EC2_HASH_VERSION
from dovetail.model import names
from dovetail.model.nodes import NodeClaim, NodeClassRef
from dovetail.model.pods import Expression
from dovetail.ports.cloud import Instance, Prepared
from dovetail.wiring.simulated import SimulatedAdapter
from testbed.simulated_world import SimulatedWorld
from tests.adapters.simulator.conftest import Clock, Stage
from tests.adapters.simulator.manifests import a_deployment, a_new_claim
from worlds.disruption import a_claim
from worlds.manifests import node_manifest

EC2 = NodeClassRef(group="karpenter.k8s.aws", kind="EC2NodeClass", name="default")
STAMPED = {EC2_HASH: "1", EC2_HASH_VERSION: "v6"}

CATALOGUE: dict[str, Any] = {
    "region": "us-west-2",
    "scheme": "aws",
    "nodeClasses": [[EC2.group, EC2.kind]],
    "zones": {"us-west-2a": {"topology.k8s.aws/zone-id": "usw2-az1"}, "us-west-2b": {}},
    "types": [
        {
            "name": "m5.large",
            "labels": {names.INSTANCE_TYPE: "m5.large", names.ARCH: "amd64", names.OS: "linux"},
            "capacity": {"cpu": "2", "memory": "8Gi", "pods": "29"},
            "overhead": {"cpu": "70m"},
            "price": 0.096,
        }
    ],
}


def an_ec2_class(**annotations: str) -> dict[str, Any]:
    return {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": "default", "uid": "class-1", "annotations": annotations},
        "spec": {"role": "r", "amiSelectorTerms": [{"alias": "al2023@latest"}]},
        "status": {
            "amis": [{"id": "ami-1", "requirements": []}],
            "subnets": [{"id": "subnet-1", "zone": "us-west-2a"}],
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


@pytest.fixture
def ec2(tmp_path: Path, clock: Clock) -> Any:
    file = tmp_path / "ec2.sqlite"
    world = SimulatedWorld.create(file, clock=clock)
    world.declare_catalogue(CATALOGUE)
    world.put_raw(an_ec2_class(**STAMPED))
    adapter = SimulatedAdapter.open(file, "dovetail/test", clock)
    yield adapter
    adapter.close()
    world.close()


async def launched(adapter: SimulatedAdapter) -> tuple[NodeClaim, Instance]:
    claim = await adapter.claims.create(
        a_new_claim(
            node_class=EC2, requests={}, requirements=(Expression(key=names.ARCH, operator="Exists", values=()),)
        )
    )
    prepared = await adapter.cloud.prepare(claim)
    assert isinstance(prepared, Prepared)
    instance = await adapter.cloud.launch(claim, prepared.request, "token")
    assert isinstance(instance, Instance)
    return claim, instance


async def test_a_world_sells_what_it_declares(ec2: SimulatedAdapter) -> None:
    """The class's subnets leave one zone; spot is the cheaper offering."""
    _, instance = await launched(ec2)

    assert instance.provider_id.startswith("aws:///us-west-2a/i-")
    assert instance.labels == {
        names.INSTANCE_TYPE: "m5.large",
        names.ARCH: "amd64",
        names.OS: "linux",
        names.ZONE: "us-west-2a",
        "topology.k8s.aws/zone-id": "usw2-az1",
        names.REGION: "us-west-2",
        names.CAPACITY_TYPE: "spot",
    }
    assert (instance.image_id, dict(instance.annotations)) == ("ami-1", STAMPED)
    assert instance.allocatable["cpu"] == 1_930_000_000


async def test_only_the_declared_node_classes_are_understood(ec2: SimulatedAdapter, adapter: SimulatedAdapter) -> None:
    assert ec2.catalogues.supported_classes() == {(EC2.group, EC2.kind)}
    assert adapter.catalogues.supported_classes() == {("dovetail.sh", "EmbeddedNodeClass")}


@pytest.mark.parametrize(
    ("annotations", "image", "reason"),
    [
        (STAMPED, "ami-1", ""),
        ({**STAMPED, EC2_HASH: "2"}, "ami-1", "NodeClassDrift"),
        ({**STAMPED, EC2_HASH: "2", EC2_HASH_VERSION: "v5"}, "ami-1", ""),
        ({}, "ami-1", ""),
        (STAMPED, "ami-2", "ImageDrift"),
    ],
)
async def test_drift_compares_the_hash_that_stands_on_the_class(
    ec2: SimulatedAdapter, annotations: dict[str, str], image: str, reason: str
) -> None:
    """AWS-115: both carry hash and version, the versions are equal, the hashes differ."""
    claim = replace(a_claim(), node_class=EC2, annotations=annotations, image_id=image)

    assert await ec2.catalogues.drift(claim) == reason


def test_a_replica_set_is_known_by_its_template_whatever_its_hash_is(stage: Stage) -> None:
    """A Deployment taken over keeps its pods, although another algorithm gave its ReplicaSet the hash."""
    stage.world.apply(node_manifest())
    deployment = stage.world.apply(a_deployment(2))
    stage.settle()
    (made,) = stage.world.objects("ReplicaSet")
    strange = {**made, "spec": {**made["spec"], "template": {**made["spec"]["template"]}}}
    labels = {"app": "web", "pod-template-hash": "7df666d985"}
    strange["metadata"] = {**made["metadata"], "labels": labels}
    strange["spec"]["template"]["metadata"] = {"labels": labels}
    stage.world.put_raw(strange)
    before = [pod["metadata"]["uid"] for pod in stage.world.objects("Pod")]

    stage.pass_time(10)

    assert len(stage.world.objects("ReplicaSet")) == 1
    assert [pod["metadata"]["uid"] for pod in stage.world.objects("Pod")] == before
    assert deployment["metadata"]["name"] == "web"


async def test_a_node_that_is_ready_and_still_tainted_loses_the_taint(stage: Stage, adapter: SimulatedAdapter) -> None:
    """A recorded cluster may hold the moment when the kubelet has reported Ready and the taint is still there."""
    claim = await adapter.claims.create(a_new_claim())
    prepared = await adapter.cloud.prepare(claim)
    assert isinstance(prepared, Prepared)
    await adapter.cloud.launch(claim, prepared.request, "token")
    stage.pass_time(3)
    (node,) = stage.world.objects("Node")
    taints = [*node["spec"]["taints"], {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
    stage.world.put_raw({**node, "spec": {**node["spec"], "taints": taints}})

    stage.settle()

    (after,) = stage.world.objects("Node")
    assert after["spec"]["taints"] == node["spec"]["taints"]
