"""The cluster's UID on its instances: two clusters of one name in one account leave each other's alone."""

import time
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from dovetail.adapters.aws.adapter import AwsAdapter
from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.launch.frozen_launch import read_launch
from dovetail.adapters.aws.upkeep.cluster_tag import ClusterTag
from dovetail.adapters.aws.upkeep.tagging import Tagging
from dovetail.model.nodes import NodeClaim
from dovetail.ports.cloud import Prepared
from dovetail.ports.failures import Refused
from testbed.cloud.server import CloudServer
from tests.adapters.aws.conftest import Stage
from tests.adapters.aws.test_tagging import Claims
from worlds.aws import a_claim_of_ec2, open_adapter

UID = "0b5c8a4e-ours"
TAG = "dovetail.sh/cluster-uid"


@pytest.fixture
async def ours(stage: Stage, aws_server: CloudServer, aws_calls: Calls) -> AsyncIterator[Stage]:
    """The stage of a worker that knows its cluster's UID; `stage` is one that does not, as Karpenter is."""
    adapter: AwsAdapter = open_adapter(aws_server, stage.classes, aws_calls, cluster_uid=UID)
    yield replace(stage, adapter=adapter, _upkeep=None)
    await adapter.close()


def tags_of(fleet: dict[str, object], kind: str) -> dict[str, str]:
    specifications = fleet["input"]["TagSpecifications"]  # type: ignore[index]
    (found,) = [each["Tags"] for each in specifications if each["ResourceType"] == kind]
    return {tag["Key"]: tag["Value"] for tag in found}


async def adopted(stage: Stage) -> NodeClaim:
    """A claim whose instance was launched without the tag."""
    await stage.with_class()
    claim = a_claim_of_ec2(name="default-a")
    instance = await stage.launched(claim)
    return replace(claim, provider_id=instance.provider_id, node_name="node-a")


def tagging(stage: Stage, claims: Claims) -> ClusterTag:
    return ClusterTag(stage.adapter.calls, stage.adapter.inventory, claims, clock=time.time)  # type: ignore[arg-type]


async def test_a_launch_tags_instance_volume_and_fleet_and_its_template_keeps_its_name(ours: Stage) -> None:
    await ours.with_class()
    claim = a_claim_of_ec2(name="default-a")
    without = open_adapter(ours.server, ours.classes, ours.adapter.calls)
    before = await without.cloud.prepare(claim)

    prepared = await ours.adapter.cloud.prepare(claim)
    await ours.launched(claim)

    (fleet,) = [each for each in ours.calls("CreateFleet") if not each["input"].get("DryRun")]
    assert [tags_of(fleet, kind).get(TAG) for kind in ("instance", "volume", "fleet")] == [UID, UID, UID]
    made = [each for each in ours.calls("CreateLaunchTemplate") if not each["input"].get("DryRun")]
    assert made and UID not in str(made)
    assert isinstance(prepared, Prepared) and isinstance(before, Prepared)
    names = [[group.template for group in read_launch(each.request).groups] for each in (prepared, before)]
    assert names[0] == names[1]
    await without.close()


async def test_a_launch_that_was_frozen_without_the_tag_is_repeated_without_it(stage: Stage, ours: Stage) -> None:
    """An upgrade between a call and its retry: EC2 would refuse the token with one tag more."""
    await stage.with_class()
    claim = a_claim_of_ec2(name="default-a")
    prepared = await stage.adapter.cloud.prepare(claim)
    assert isinstance(prepared, Prepared)

    first = await stage.adapter.cloud.launch(claim, prepared.request, "token")
    again = await ours.adapter.cloud.launch(claim, prepared.request, "token")

    assert first.kind == again.kind == "instance"
    assert first.provider_id == again.provider_id


async def test_an_adopted_instance_gets_the_tag_once(stage: Stage, ours: Stage) -> None:
    claim, claims = await adopted(stage), Claims()
    task = tagging(ours, claims)

    await task.keep([claim])
    await task.keep([claim])
    await task.keep([replace(claim, annotations={TAG: UID})])

    (call,) = ours.calls("CreateTags")
    assert call["input"]["Tags"] == [{"Key": TAG, "Value": UID}]
    assert claims.written == [("default-a", {TAG: UID})]


async def test_what_was_launched_with_the_tag_is_not_asked_for(ours: Stage) -> None:
    await ours.with_class()
    claim, claims = a_claim_of_ec2(name="default-a"), Claims()
    prepared = await ours.adapter.cloud.prepare(claim)
    assert isinstance(prepared, Prepared)
    launched = {"dovetail.sh/launch-request": prepared.request}
    before = len(ours.calls("DescribeInstances"))

    await tagging(ours, claims).keep([replace(claim, provider_id="aws:///us-west-2a/i-1", annotations=launched)])

    assert (ours.calls("CreateTags"), claims.written) == ([], [])
    assert len(ours.calls("DescribeInstances")) == before


async def test_an_instance_of_another_cluster_of_this_name_is_never_touched(stage: Stage, ours: Stage) -> None:
    claim, claims = await adopted(stage), Claims()
    ours.server.control("PATCH", "instances/first", {"tags": {TAG: "theirs"}})

    await tagging(ours, claims).keep([claim])
    names = Tagging(ours.adapter.calls, ours.adapter.inventory, "dovetail", claims, clock=time.time)  # type: ignore[arg-type]
    await names.keep([claim])

    assert await ours.adapter.cloud.list_instances() == ()  # so it is no orphan either
    assert await ours.adapter.cloud.find(claim_uid=claim.uid) is None  # nor taken for a launch of ours
    assert await ours.adapter.cloud.find(provider_id=claim.provider_id) is not None  # but it is not gone
    with pytest.raises(Refused, match="of the cluster with the UID theirs, and this one's is 0b5c8a4e-ours"):
        await ours.adapter.cloud.terminate(claim.provider_id)
    assert (ours.calls("CreateTags"), ours.calls("TerminateInstances"), claims.written) == ([], [], [])


async def test_an_instance_that_does_not_say_is_ours_by_the_other_tags(stage: Stage, ours: Stage) -> None:
    claim = await adopted(stage)

    listed = [each.provider_id for each in await ours.adapter.cloud.list_instances()]

    assert listed == [claim.provider_id]
    assert await ours.adapter.cloud.terminate(claim.provider_id) == "terminating"
