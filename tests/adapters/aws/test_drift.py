"""Drift: what of an instance is no longer what its class asks for."""

from dataclasses import replace

import pytest

from dovetail.adapters.aws.settings import ClusterFacts
from dovetail.model.nodes import NodeClaim
from testbed.cloud.server import CloudServer
from tests.adapters.aws.conftest import Stage
from worlds.aws import ClassStore, a_claim_of_ec2, open_adapter


async def launched(stage: Stage) -> NodeClaim:
    """A claim as it stands after its launch."""
    await stage.with_class()
    claim = a_claim_of_ec2()
    instance = await stage.launched(claim)
    return replace(
        claim,
        provider_id=instance.provider_id,
        image_id=instance.image_id,
        labels={**claim.labels, **instance.labels},
        annotations=instance.annotations,
    )


async def drift(stage: Stage, claim: NodeClaim) -> str:
    stage.adapter.inventory._listed_at = float("-inf")  # as after two minutes
    return await stage.adapter.catalogues.drift(claim)


async def test_a_fresh_instance_does_not_drift(stage: Stage) -> None:
    assert await drift(stage, await launched(stage)) == ""


async def test_a_change_of_the_spec_is_drift_of_the_class(stage: Stage) -> None:
    """AWS-115, AWS-116."""
    claim = await launched(stage)

    await stage.with_class(tags={"team": "blue"})

    assert await drift(stage, claim) == "NodeClassDrift"


async def test_what_eks_answers_at_the_first_launch_is_no_drift(aws_server: CloudServer) -> None:
    """AWS-116: the hash covers the CA bundle, so one that is learned late would replace every node."""
    aws_server.control("POST", "reset")
    classes = ClassStore()
    adapter = open_adapter(aws_server, classes, cluster=ClusterFacts(version="1.36"))
    stage = Stage(server=aws_server, classes=classes, adapter=adapter, since=0)

    claim = await launched(stage)

    assert (await adapter.cluster.for_launch(with_cidr=True)).ca_bundle, "EKS has answered"
    assert await drift(stage, claim) == ""
    await stage.with_class()
    assert await drift(stage, claim) == ""
    await adapter.close()


async def test_a_claim_of_another_hash_version_does_not_drift(stage: Stage) -> None:
    """AWS-115: taken over from an older Karpenter, nothing is replaced."""
    claim = await launched(stage)
    older = {**claim.annotations, "karpenter.k8s.aws/ec2nodeclass-hash-version": "v5"}

    await stage.with_class(tags={"team": "blue"})

    assert await drift(stage, replace(claim, annotations=older)) == ""


async def test_a_newer_image_under_the_same_alias_is_drift(stage: Stage) -> None:
    """AWS-117."""
    claim = await launched(stage)
    path = "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/standard/recommended/image_id"
    stage.patch(ssm={path: "ami-0a12023e"})

    await stage.with_class(amiSelectorTerms=[{"id": "ami-0a12023e"}], amiFamily="AL2023")

    assert await drift(stage, claim) == "AMIDrift"


async def test_a_type_that_no_image_of_its_class_fits_any_more_is_drift(stage: Stage) -> None:
    """AWS-117: from x86 to arm64, nothing could be launched in the node's place; it would stay unpatched for ever."""
    claim = await launched(stage)

    await stage.with_class(amiSelectorTerms=[{"id": "ami-0a12023b"}], amiFamily="AL2023")

    assert await drift(stage, claim) == "AMIDrift"


async def test_a_type_that_the_region_no_longer_knows_is_not_judged_by_its_image(stage: Stage) -> None:
    """AWS-117, AWS-176: that is DIS-174's to say, after an hour; a list that lacks a type for a moment replaces
    nothing."""
    claim = await launched(stage)
    unknown = replace(claim, labels={**claim.labels, "node.kubernetes.io/instance-type": "m1.gone"})

    await stage.with_class(amiSelectorTerms=[{"id": "ami-0a12023b"}], amiFamily="AL2023")

    assert await drift(stage, unknown) == ""


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"securityGroupSelectorTerms": [{"id": "sg-01"}]}, "SecurityGroupDrift"),
        ({"subnetSelectorTerms": [{"id": "subnet-0b"}]}, "SubnetDrift"),
    ],
)
async def test_selectors_are_no_drift_of_the_class_but_what_they_select_is(
    stage: Stage, change: dict[str, object], reason: str
) -> None:
    """AWS-114, AWS-118."""
    claim = await launched(stage)

    await stage.with_class(**change)

    assert await drift(stage, claim) == reason


async def test_a_class_without_images_left_hides_no_other_drift(stage: Stage) -> None:
    """AWS-176, better than upstream."""
    claim = await launched(stage)

    await stage.with_class(
        amiSelectorTerms=[{"alias": "windows2025@latest"}],
        subnetSelectorTerms=[{"id": "subnet-0b"}],
    )
    same_hash = stage.classes.objects["default"]["metadata"]["annotations"]["karpenter.k8s.aws/ec2nodeclass-hash"]
    claim = replace(claim, annotations={**claim.annotations, "karpenter.k8s.aws/ec2nodeclass-hash": same_hash})

    assert await drift(stage, claim) == "SubnetDrift"


async def test_an_id_that_is_none_of_ec2s_is_looked_up_nowhere(stage: Stage) -> None:
    claim = replace(await launched(stage), provider_id="Provider:///AZ/i-01234567890123456")
    before = len(stage.calls("DescribeInstances"))

    assert await drift(stage, claim) == ""
    assert not any(call["input"].get("InstanceIds") for call in stage.calls("DescribeInstances")[before:])


async def test_drift_of_many_claims_costs_one_list(stage: Stage) -> None:
    claim = await launched(stage)
    before = len(stage.calls("DescribeInstances"))

    for _ in range(10):
        await stage.adapter.catalogues.drift(claim)

    assert len(stage.calls("DescribeInstances")) - before == 1
