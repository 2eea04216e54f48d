"""Launches over HTTP: what is launched, what is remembered, and that nothing is launched twice."""

import asyncio
from dataclasses import replace
from itertools import product

import pytest

from dovetail.adapters.aws.catalogue.shortages import Shortage
from dovetail.adapters.aws.launch.fleet_answers import outcome, read_errors, shortages_of
from dovetail.adapters.aws.launch.refusal_reasons import reason_for
from dovetail.adapters.aws.upkeep import node_classes
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.claim_memory import BACK, STABLE, Pin
from dovetail.model.own.stable_images import StableImage
from dovetail.model.values.hashing import is_other
from dovetail.model.values.resources import parse_resources
from dovetail.ports.cloud import ClassNotReady, Instance, LaunchRefused, NoCapacity, Prepared
from dovetail.ports.failures import Misconfigured, Refused, Retryable, Throttled, Unauthenticated, Unreachable
from tests.adapters.aws.conftest import Stage
from worlds.aws import REFERENCE, a_claim_of_ec2, amd64, any_kind, family, on_demand, one_of, open_adapter
from worlds.made_claims import launched_by

M5_LARGE = one_of("node.kubernetes.io/instance-type", "m5.large")


@pytest.fixture
async def ready(stage: Stage) -> Stage:
    await stage.with_class()
    stage.since = stage.server.control("GET", "ledger/last")
    return stage


async def test_a_launch_takes_the_cheapest_instance_with_all_its_tags(ready: Stage) -> None:
    """AWS-7, AWS-88, AWS-183: the claim's name and UID are in the call itself."""
    claim = a_claim_of_ec2(name="default-abcde")

    instance = await ready.launched(claim)

    assert instance.provider_id == "aws:///us-west-2a/i-00000000000000001"
    (call,) = ready.calls("CreateFleet")
    tags = {s["ResourceType"]: {t["Key"]: t["Value"] for t in s["Tags"]} for s in call["input"]["TagSpecifications"]}
    shared = {
        "kubernetes.io/cluster/dovetail": "owned",
        "karpenter.sh/nodepool": "default",
        "eks:eks-cluster-name": "dovetail",
        "karpenter.k8s.aws/ec2nodeclass": "default",
    }
    assert tags["volume"] == tags["fleet"] == shared
    assert tags["instance"] == {
        **shared,
        "karpenter.sh/nodeclaim": "default-abcde",
        "dovetail.sh/claim-uid": claim.uid,
    }


async def test_the_claim_gets_what_upstream_s_claim_says(ready: Stage) -> None:
    """AWS-94 and AWS-62, as recorded: labels, sizes and annotations of an m5.large."""
    instance = await ready.launched(a_claim_of_ec2())

    assert instance.labels == {
        "karpenter.k8s.aws/instance-capability-flex": "false",
        "karpenter.k8s.aws/instance-category": "m",
        "karpenter.k8s.aws/instance-cpu": "2",
        "karpenter.k8s.aws/instance-cpu-manufacturer": "intel",
        "karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz": "3100",
        "karpenter.k8s.aws/instance-ebs-bandwidth": "4750",
        "karpenter.k8s.aws/instance-encryption-in-transit-supported": "false",
        "karpenter.k8s.aws/instance-family": "m5",
        "karpenter.k8s.aws/instance-generation": "5",
        "karpenter.k8s.aws/instance-hypervisor": "nitro",
        "karpenter.k8s.aws/instance-memory": "8192",
        "karpenter.k8s.aws/instance-network-bandwidth": "750",
        "karpenter.k8s.aws/instance-size": "large",
        "karpenter.k8s.aws/instance-tenancy": "default",
        "karpenter.k8s.aws/nitro-sandbox": "false",
        "karpenter.sh/capacity-type": "on-demand",
        "karpenter.sh/nodepool": "default",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "m5.large",
        "topology.k8s.aws/zone-id": "usw2-az1",
        "topology.kubernetes.io/region": "us-west-2",
        "topology.kubernetes.io/zone": "us-west-2a",
    }
    mib = 2**20
    assert instance.capacity == {
        "cpu": 2 * 10**9,
        "memory": 7577 * mib,
        "pods": 29,
        "ephemeral-storage": 20 * 2**30,
        "vpc.amazonaws.com/pod-eni": 9,
    }
    assert instance.allocatable == {
        "cpu": 1930 * 10**6,
        "memory": 6903 * mib,
        "pods": 29,
        "ephemeral-storage": 17 * 2**30,
        "vpc.amazonaws.com/pod-eni": 9,
    }
    assert sorted(instance.annotations) == [
        "karpenter.k8s.aws/ec2nodeclass-hash",
        "karpenter.k8s.aws/ec2nodeclass-hash-version",
        "karpenter.k8s.aws/instance-profile-name",
    ]


async def test_the_same_token_never_launches_a_second_instance(ready: Stage) -> None:
    claim = a_claim_of_ec2()

    answers = [await ready.launch(claim, token="t" * 64) for _ in range(3)]

    assert {answer.provider_id for answer in answers} == {answers[0].provider_id}
    assert len(ready.server.instances()) == 1


async def test_another_process_repeats_the_very_same_call(ready: Stage) -> None:
    """The request frozen on the claim is all that a retry elsewhere has."""
    claim = a_claim_of_ec2()
    prepared = await ready.adapter.cloud.prepare(claim)
    assert isinstance(prepared, Prepared)
    other = open_adapter(ready.server, ready.classes)

    first = await ready.adapter.cloud.launch(claim, prepared.request, "t" * 64)
    second = await other.cloud.launch(claim, prepared.request, "t" * 64)
    await other.close()

    assert isinstance(first, Instance)
    assert isinstance(second, Instance)
    assert first.provider_id == second.provider_id
    calls = ready.calls("CreateFleet")
    assert calls[0]["input"] == calls[1]["input"]


async def test_a_frozen_request_holds_no_user_data(ready: Stage) -> None:
    await ready.with_class(userData="#!/bin/bash\necho secret\n")

    prepared = await ready.adapter.cloud.prepare(a_claim_of_ec2())

    assert isinstance(prepared, Prepared)
    assert "secret" not in prepared.request
    assert len(prepared.request) < 4096


@pytest.mark.parametrize(("answer", "times"), [("drop", 3), ("truncate", 1)])
async def test_an_answer_that_is_lost_after_the_effect_is_found_again(ready: Stage, answer: str, times: int) -> None:
    """Faults after the effect: the retry under the same token gets the same instance."""
    claim = a_claim_of_ec2()
    ready.patch(fail=[{"op": "CreateFleet", "when": "after", "answer": answer, "times": times}])

    with pytest.raises(Retryable):
        await ready.launch(claim, token="t" * 64)
    instance = await ready.launch(claim, token="t" * 64)

    assert isinstance(instance, Instance)
    assert [each["id"] for each in ready.server.instances()] == [instance.provider_id.rpartition("/")[2]]


async def test_throttling_is_raised_and_launches_nothing(ready: Stage) -> None:
    ready.patch(fail=[{"op": "CreateFleet", "code": "RequestLimitExceeded", "status": 503, "times": 3}])

    with pytest.raises(Throttled) as throttled:
        await ready.launch(a_claim_of_ec2())

    assert throttled.value.reason == "RequestLimitExceeded"
    assert ready.server.instances() == []


async def test_an_internal_error_says_nothing_certain_and_is_raised(ready: Stage) -> None:
    ready.patch(fail=[{"op": "CreateFleet", "code": "InternalError", "status": 500, "times": 3}])

    with pytest.raises(Unreachable):
        await ready.launch(a_claim_of_ec2())


async def test_a_refused_call_is_a_reason_for_the_claim(ready: Stage) -> None:
    """AWS-90: never "no capacity"."""
    ready.patch(fail=[{"op": "CreateFleet", "code": "UnauthorizedOperation", "status": 403}])

    answer = await ready.launch(a_claim_of_ec2())

    assert isinstance(answer, LaunchRefused)
    assert answer.reason == "Unauthorized"


async def test_a_pool_without_capacity_is_left_out_for_three_minutes(ready: Stage) -> None:
    """AWS-72, AWS-89: the fleet's errors count although an instance was launched."""
    ready.patch(ice=[{"instanceType": "m5.large"}])

    instance = await ready.launched(a_claim_of_ec2(M5_LARGE_OR_XLARGE, on_demand(), amd64()))
    await ready.launched(a_claim_of_ec2(M5_LARGE_OR_XLARGE, on_demand(), amd64()))

    assert instance.labels["node.kubernetes.io/instance-type"] == "m5.xlarge"
    offered = [_types(call) for call in ready.calls("CreateFleet")]
    assert offered == [{"m5.large", "m5.xlarge"}, {"m5.xlarge"}]


M5_LARGE_OR_XLARGE = one_of("node.kubernetes.io/instance-type", "m5.large", "m5.xlarge")


def _types(call: dict[str, object]) -> set[str]:
    configs = call["input"]["LaunchTemplateConfigs"]  # type: ignore[index]
    return {override["InstanceType"] for config in configs for override in config["Overrides"]}


async def test_when_everything_is_short_there_is_no_capacity_and_no_further_call(ready: Stage) -> None:
    ready.patch(ice=[{}])

    first = await ready.launch(a_claim_of_ec2(M5_LARGE, on_demand()))
    second = await ready.launch(a_claim_of_ec2(M5_LARGE, on_demand()))

    assert isinstance(first, NoCapacity)
    assert isinstance(second, NoCapacity)
    assert len(ready.calls("CreateFleet")) == 1


@pytest.mark.parametrize("code", ["InsufficientInstanceCapacity", "SpotMaxPriceTooLow"])
async def test_spot_that_is_short_falls_back_to_on_demand_with_the_next_claim(ready: Stage, code: str) -> None:
    """AWS-89, AWS-151."""
    ready.patch(ice=[{"capacityType": "spot", "code": code}])

    first = await ready.launch(a_claim_of_ec2(M5_LARGE, any_kind()))
    second = await ready.launched(a_claim_of_ec2(M5_LARGE, any_kind()))

    assert isinstance(first, NoCapacity)
    assert second.labels["karpenter.sh/capacity-type"] == "on-demand"


async def test_a_full_subnet_on_spot_does_not_block_on_demand(ready: Stage) -> None:
    """AWS-89, better than upstream: the shortage is of the capacity type that met it."""
    ready.patch(ice=[{"capacityType": "spot", "code": "InsufficientFreeAddressesInSubnet"}])

    first = await ready.launch(a_claim_of_ec2(M5_LARGE, any_kind()))
    second = await ready.launched(a_claim_of_ec2(M5_LARGE, any_kind()))

    assert isinstance(first, NoCapacity)
    assert second.labels["karpenter.sh/capacity-type"] == "on-demand"


async def test_a_subnet_without_free_addresses_is_not_offered(ready: Stage) -> None:
    subnets = ready.server.control("GET", "world")["subnets"]
    ready.patch(subnets=[{**s, "free": 0} if s["id"] == "subnet-0a" else s for s in subnets])
    await ready.with_class(tags={"look": "again"})

    instance = await ready.launched(a_claim_of_ec2())

    assert instance.labels["topology.kubernetes.io/zone"] == "us-west-2b"
    places = {
        override["SubnetId"]
        for config in ready.calls("CreateFleet")[-1]["input"]["LaunchTemplateConfigs"]
        for override in config["Overrides"]
    }
    assert places == {"subnet-0b", "subnet-0c"}


async def test_one_short_and_one_refused_is_no_shortage(ready: Stage) -> None:
    """AWS-90: the claim stays and is tried again without the short pool."""
    ready.patch(
        ice=[{"zone": "us-west-2a"}, {"code": "UnauthorizedOperation"}],
    )

    answer = await ready.launch(a_claim_of_ec2(M5_LARGE, on_demand()))

    assert isinstance(answer, LaunchRefused)
    assert answer.reason == "Unauthorized"


async def test_an_answer_with_neither_instances_nor_errors_is_no_shortage(ready: Stage) -> None:
    """AWS-90: the claim stays; what the answer may have kept back is found by its next try."""
    ready.patch(fail=[{"op": "CreateFleet", "answer": "half"}])
    claim = a_claim_of_ec2(M5_LARGE, on_demand())

    answer = await ready.launch(claim)

    assert answer == LaunchRefused(
        reason="LaunchFailed", message="creating instance, with fleet error(s), none, and no instance"
    )
    assert isinstance(await ready.adapter.cloud.find(claim_uid=claim.uid), Instance)


@pytest.mark.parametrize("zone", ["", "us-west-2a"])
def test_an_error_that_names_neither_type_nor_zone_is_no_shortage_of_everything(zone: str) -> None:
    """AWS-89."""
    overrides = {"InstanceType": "m5.large", "AvailabilityZone": zone} if zone else {}
    said = {"ErrorCode": "UnfulfillableCapacity", "LaunchTemplateAndOverrides": {"Overrides": overrides}}

    found = shortages_of(read_errors({"Errors": [said]}), "on-demand", "")

    assert [(each.instance_type, each.zone) for each in found] == ([("m5.large", zone)] if zone else [])


def test_a_shortage_of_which_nothing_is_remembered_is_a_reason_for_the_claim() -> None:
    """AWS-90: the next claim would be launched into the same, without end."""
    said = {"ErrorCode": "ReservationCapacityExceeded", "ErrorMessage": "full"}
    errors = read_errors({"Errors": [said]})

    assert isinstance(outcome(errors, remembered=True), NoCapacity)
    refused = outcome(errors, remembered=False)

    assert isinstance(refused, LaunchRefused)
    assert refused.message.endswith("ReservationCapacityExceeded: full")


async def test_a_template_deleted_behind_our_back_is_made_again(ready: Stage) -> None:
    """AWS-91."""
    first = a_claim_of_ec2(M5_LARGE, on_demand())
    await ready.launched(first)
    (made,) = ready.calls("CreateLaunchTemplate")
    name = made["input"]["LaunchTemplateName"]
    await ready.adapter.calls.call("ec2", "DeleteLaunchTemplate", LaunchTemplateName=name)

    await ready.launched(a_claim_of_ec2(M5_LARGE, on_demand()))

    assert [call["input"]["LaunchTemplateName"] for call in ready.calls("CreateLaunchTemplate")] == [name, name]


@pytest.mark.parametrize("code", ["InvalidLaunchTemplateName.NotFoundException", "InvalidLaunchTemplateId.NotFound"])
async def test_a_template_that_the_errors_of_a_fleet_call_missing_is_looked_for_again(ready: Stage, code: str) -> None:
    """AWS-85: EC2 may take the call and name the template in what came of it. Each launch prolongs what is known."""
    await ready.launched(a_claim_of_ec2())
    known = len(ready.calls("DescribeLaunchTemplates"))
    ready.patch(ice=[{"code": code, "message": "The specified launch template does not exist"}])
    refused = await ready.launch(a_claim_of_ec2())
    ready.patch(ice=[])

    await ready.launched(a_claim_of_ec2())

    assert isinstance(refused, LaunchRefused)
    assert (refused.reason, len(ready.calls("DescribeLaunchTemplates"))) == ("LaunchTemplateNotFound", 2 * known)


async def test_equal_launches_share_one_template_and_cost_one_call_each(ready: Stage) -> None:
    await ready.launched(a_claim_of_ec2(M5_LARGE, on_demand()))
    before = len(ready.server.calls(since=ready.since))

    await asyncio.gather(*[ready.launched(a_claim_of_ec2(M5_LARGE, on_demand())) for _ in range(10)])

    assert len(ready.server.calls(since=ready.since)) - before == 10
    assert len(ready.calls("CreateLaunchTemplate")) == 1


async def test_spot_dearer_than_on_demand_is_left_out(ready: Stage) -> None:
    """AWS-80."""
    ready.patch(spotPrices={"m5.large": {"us-west-2a": 0.5, "us-west-2b": 0.5, "us-west-2c": 0.5}})
    await ready.adapter.offerings.sources.region_types.region()
    from dovetail.adapters.aws.catalogue.prices import PriceRefresh

    await PriceRefresh(ready.adapter.calls, ready.adapter.offerings.sources.prices, ready.adapter.settings).refresh()

    instance = await ready.launched(a_claim_of_ec2(M5_LARGE, any_kind()))

    assert instance.labels["karpenter.sh/capacity-type"] == "on-demand"


async def test_arm_and_amd_types_get_a_template_each(ready: Stage) -> None:
    """AWS-83."""
    await ready.launched(
        a_claim_of_ec2(one_of("node.kubernetes.io/instance-type", "m5.large", "m6g.large"), on_demand())
    )

    images = {call["input"]["LaunchTemplateData"]["ImageId"] for call in ready.calls("CreateLaunchTemplate")}
    assert images == {"ami-0a12023a", "ami-0a12023b"}


async def test_a_claim_of_a_class_that_is_not_ready_is_not_launched(stage: Stage) -> None:
    """AWS-75."""
    missing = await stage.launch(a_claim_of_ec2())
    stage.classes.apply()
    unknown = await stage.launch(a_claim_of_ec2())
    await stage.with_class(subnetSelectorTerms=[{"id": "subnet-none"}])
    refused = await stage.launch(a_claim_of_ec2())

    assert isinstance(missing, NoCapacity)
    assert [(each.reason, each.message) for each in missing.warnings] == [
        ("FailedResolvingNodeClass", "Failed resolving NodeClass: EC2NodeClass default does not exist")
    ]
    assert isinstance(unknown, LaunchRefused)
    assert unknown.reason == "NodeClassReadinessUnknown"
    assert isinstance(refused, ClassNotReady)


async def test_a_claim_of_a_class_that_is_leaving_finds_no_capacity_and_says_why(ready: Stage) -> None:
    """AWS-75: as for one that is missing; also where it goes between the two halves of a launch."""
    claim = a_claim_of_ec2()
    prepared = await ready.adapter.cloud.prepare(claim)
    assert isinstance(prepared, Prepared)
    ready.classes.delete()
    leaving = await ready.launch(claim)
    ready.classes.objects.clear()
    gone = await ready.adapter.cloud.launch(claim, prepared.request, "t" * 64)

    for answer, why in ((leaving, "is being deleted"), (gone, "does not exist")):
        assert isinstance(answer, NoCapacity)
        assert answer.message == f"resolving node class, EC2NodeClass default {why}"
        assert [each.reason for each in answer.warnings] == ["FailedResolvingNodeClass"]
    assert ready.calls("CreateFleet") == []


def test_a_fleet_that_is_refused_for_want_of_rights_says_so_whichever_code_it_has() -> None:
    """AWS-90: in an answer `AuthFailure` is no word about our credentials, with which the call went through."""
    assert reason_for([("AuthFailure", "Not authorized for the subnet")]) == "Unauthorized"
    assert reason_for([("AuthFailure", "Not authorized for images: [ami-1]")]) == "AMIAuthorizationFailure"


@pytest.mark.parametrize(
    ("code", "text", "reason"),
    [
        (
            "InvalidParameterValue",
            "Value (p) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name",
            "InstanceProfileNameInvalid",
        ),
        ("InvalidParameterValue", "Value (7) for parameter groupId is invalid", "LaunchFailed"),
        ("AuthFailure", "Not authorized for images: [ami-1]", "AMIAuthorizationFailure"),
        ("InvalidLaunchTemplateId.NotFound", "The launch template lt-1 does not exist", "LaunchTemplateNotFound"),
        ("InvalidUserData.Malformed", "User data is limited to 16384 bytes", "UserDataSizeLimitExceeded"),
        ("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data", "LaunchFailed"),
        ("InvalidAMIID.NotFound", "The image id '[ami-1]' does not exist", "InvalidAMIID"),
        # Words of another error's text decide nothing.
        ("UnauthorizedOperation", "iamInstanceProfile.name is invalid", "Unauthorized"),
        ("Something", "User data is limited to 16384 bytes", "LaunchFailed"),
    ],
)
async def test_a_reason_follows_from_the_code_and_under_a_general_code_from_the_text(
    ready: Stage, code: str, text: str, reason: str
) -> None:
    """AWS-90, alike for a refused call, for a fleet's error and for a refused template."""
    ready.patch(fail=[{"op": "CreateFleet", "code": code, "message": text, "status": 400, "times": 1}])
    called = await ready.launch(a_claim_of_ec2())
    ready.patch(fail=[], ice=[{"code": code, "message": text}])
    inline = await ready.launch(a_claim_of_ec2())

    assert isinstance(called, LaunchRefused)
    assert isinstance(inline, LaunchRefused)
    assert (called.reason, inline.reason) == (reason, reason)
    assert text in called.message and text in inline.message


async def test_credentials_that_are_not_valid_are_no_refusal_of_an_image(ready: Stage) -> None:
    """AuthFailure is EC2's code for both; this one mends itself when credentials are renewed."""
    text = "AWS was not able to validate the provided access credentials"
    ready.patch(fail=[{"op": "CreateFleet", "code": "AuthFailure", "message": text, "status": 401, "times": 1}])

    with pytest.raises(Unauthenticated):
        await ready.launch(a_claim_of_ec2())


async def test_claims_that_are_launched_at_once_ask_for_a_new_template_once(stage: Stage) -> None:
    """A plan's claims are started together; the calls are slow enough for them all to meet."""
    await stage.with_class()
    stage.patch(fail=[{"op": op, "delay": 0.3} for op in ("DescribeLaunchTemplates", "CreateLaunchTemplate")])
    since = stage.server.control("GET", "ledger/last")

    # One comes while the first asks, and one while it makes the template.
    launches = [asyncio.ensure_future(stage.launched(a_claim_of_ec2(M5_LARGE, on_demand()))) for _ in range(5)]
    await asyncio.sleep(0.45)
    launches.append(asyncio.ensure_future(stage.launched(a_claim_of_ec2(M5_LARGE, on_demand()))))
    launched = await asyncio.gather(*launches)

    assert len({each.provider_id for each in launched}) == 6
    assert len(stage.server.calls("DescribeLaunchTemplates", since)) == 1
    assert len(stage.server.calls("CreateLaunchTemplate", since)) == 1


@pytest.mark.parametrize("family", ["AL2", "AL2023"])
async def test_the_class_s_own_max_pods_stands_beside_its_pods_per_core(stage: Stage, family: str) -> None:
    """AWS-56: the kubelet takes the smaller of the two, and the claim shows it."""
    image = {"AL2": [{"id": "ami-0c0570a1"}], "AL2023": [{"alias": "al2023@latest"}]}[family]
    kubelet = {"maxPods": 30, "podsPerCore": 8}
    await stage.with_class(amiFamily=family, amiSelectorTerms=image, kubelet=kubelet)

    instance = await stage.launched(a_claim_of_ec2(M5_LARGE, on_demand(), amd64()))

    text = stage.calls("CreateLaunchTemplate")[-1]["input"]["LaunchTemplateData"]["UserData"]
    written = ("--max-pods=30", "--pods-per-core=8") if family == "AL2" else ("maxPods: 30", "podsPerCore: 8")
    assert all(each in text for each in written), text
    assert instance.capacity["pods"] == 16


async def test_a_request_of_an_older_class_whose_template_is_missing_is_made_anew(ready: Stage) -> None:
    claim = a_claim_of_ec2()
    prepared = await ready.adapter.cloud.prepare(claim)
    assert isinstance(prepared, Prepared)
    await ready.with_class(userData="#!/bin/bash\necho changed\n")

    answer = await ready.adapter.cloud.launch(claim, prepared.request, "t" * 64)

    assert isinstance(answer, LaunchRefused)
    assert answer.reason == "LaunchTemplateNotFound"
    assert ready.server.instances() == []


async def test_an_instance_is_found_by_its_claim_and_by_its_id_until_it_is_gone(ready: Stage) -> None:
    """AWS-101, AWS-102, AWS-106."""
    claim = a_claim_of_ec2()
    launched = await ready.launched(claim)
    cloud = ready.adapter.cloud

    by_claim = await cloud.find(claim_uid=claim.uid)
    by_id = await cloud.find(provider_id=launched.provider_id)
    assert by_claim is not None
    assert by_id is not None
    assert by_claim.provider_id == by_id.provider_id == launched.provider_id
    assert replace(by_id, launched=0, annotations={}, state="pending") == replace(launched, launched=0, annotations={})
    assert [each.provider_id for each in await cloud.list_instances()] == [launched.provider_id]

    assert await cloud.terminate(launched.provider_id) == "terminating"
    terminating = await cloud.find(provider_id=launched.provider_id)
    assert terminating is not None
    assert terminating.state == "terminating"
    identity = launched.provider_id.rpartition("/")[2]
    ready.server.control("PATCH", f"instances/{identity}", {"state": "terminated"})
    assert await cloud.terminate(launched.provider_id) == "gone"
    assert await cloud.find(claim_uid=claim.uid) is None
    assert await cloud.list_instances() == ()
    assert len(ready.calls("TerminateInstances")) == 1


async def test_look_ups_by_claim_that_come_together_share_a_call(ready: Stage) -> None:
    """Each launch begins with one: a thousand calls would be more than an account may make."""
    claims = [a_claim_of_ec2() for _ in range(3)]
    instances = [await ready.launched(claim) for claim in claims]
    ready.since = ready.server.control("GET", "ledger/last")

    uids = [*(claim.uid for claim in claims), "of nobody"]
    found = await asyncio.gather(*[ready.adapter.cloud.find(claim_uid=uid) for uid in uids])

    assert [each and each.provider_id for each in found] == [*(each.provider_id for each in instances), None]
    assert len(ready.calls("DescribeInstances")) == 1


async def test_look_ups_that_come_together_share_a_call_and_one_unknown_id_spoils_none(ready: Stage) -> None:
    """AWS-92, AWS-93."""
    launched = await asyncio.gather(*[ready.launched(a_claim_of_ec2(M5_LARGE, on_demand())) for _ in range(4)])
    ids = [*(each.provider_id for each in launched), "aws:///us-west-2a/i-0ffffffffffffffff"]
    before = len(ready.calls("DescribeInstances"))

    found = await asyncio.gather(*[ready.adapter.cloud.find(provider_id=each) for each in ids])

    assert [each.provider_id if each else None for each in found] == [*ids[:4], None]
    # For all, then for all as a filter, and the one that was in neither answer alone.
    asked = [call["input"].get("InstanceIds", []) for call in ready.calls("DescribeInstances")[before:]]
    assert [len(each) for each in asked] == [5, 0, 1]


async def test_a_class_that_is_gone_does_not_blind_the_list(ready: Stage) -> None:
    """AWS-177, better than upstream."""
    launched = await ready.launched(a_claim_of_ec2())
    ready.classes.objects.clear()

    (listed,) = await ready.adapter.cloud.list_instances()

    assert listed.provider_id == launched.provider_id


async def test_expired_credentials_are_said_in_one_line_and_tried_again(ready: Stage) -> None:
    from dovetail.ports.failures import Unauthenticated

    ready.patch(fail=[{"op": "CreateFleet", "code": "ExpiredToken", "status": 403, "times": 1}])
    claim = a_claim_of_ec2()

    with pytest.raises(Unauthenticated, match="AWS does not take our credentials"):
        await ready.launch(claim, token="t" * 64)

    assert isinstance(await ready.launch(claim, token="t" * 64), Instance)


async def test_the_family_and_taints_of_the_claim_reach_the_node(ready: Stage) -> None:
    """AWS-96: the unregistered taint is last."""
    from dovetail.model.scheduling.taints import Taint

    await ready.launched(
        a_claim_of_ec2(family("c5"), on_demand(), taints=(Taint(key="a", value="b", effect="NoSchedule"),))
    )

    text = ready.calls("CreateLaunchTemplate")[-1]["input"]["LaunchTemplateData"]["UserData"]
    assert text.index("key: a\n") < text.index("karpenter.sh/unregistered")


@pytest.mark.parametrize("zone", ["us-east-1a", "us-west-1a", "us-west-22a", "eu-west-2a"])
async def test_an_instance_of_another_region_is_never_taken_for_gone(stage: Stage, zone: str) -> None:
    """A worker that was set up anew with the wrong region would take off every finalizer while instances run on."""
    provider_id = f"aws:///{zone}/i-0123456789abcdef0"

    with pytest.raises(Misconfigured, match=f"AWS_REGION: it is us-west-2, but {provider_id} .* zone {zone}"):
        await stage.adapter.cloud.find(provider_id=provider_id)
    with pytest.raises(Misconfigured, match="AWS_REGION"):
        await stage.adapter.cloud.terminate(provider_id, "default-a")

    assert stage.calls("DescribeInstances") == stage.calls("TerminateInstances") == []


@pytest.mark.parametrize(
    "provider_id",
    [
        "Provider:///AZ/i-01234567890123456",
        "kwok://node-1",
        "aws:///us-west-2a/fargate-ip-10-0-0-1",
        "i-0123456789abcdef0",
    ],
)
async def test_an_id_that_is_none_of_ec2s_stands_for_no_instance(stage: Stage, provider_id: str) -> None:
    """AWS-106: whoever wrote it, the claim is collected and ends. EC2 refuses such an id, with all that are asked for
    in the same call."""
    assert await stage.adapter.cloud.find(provider_id=provider_id) is None
    assert await stage.adapter.cloud.terminate(provider_id, "default-a") == "gone"

    assert stage.calls("DescribeInstances") == stage.calls("TerminateInstances") == []


@pytest.mark.parametrize("zone", ["us-west-2a", "us-west-2-lax-1a", "us-west-2-wl1-las-wlz-1"])
async def test_local_zones_are_of_their_region(stage: Stage, zone: str) -> None:
    provider_id = f"aws:///{zone}/i-0123456789abcdef0"

    assert await stage.adapter.cloud.find(provider_id=provider_id) is None
    assert await stage.adapter.cloud.terminate(provider_id) == "gone"


async def test_only_an_instance_of_this_cluster_is_terminated(ready: Stage) -> None:
    """A providerID is a text that whoever may write a status can change; it costs no call to look at the tags."""
    launched = await ready.launched(a_claim_of_ec2())
    identity = launched.provider_id.rpartition("/")[2]
    tags = [{"Key": "kubernetes.io/cluster/another", "Value": "owned"}, {"Key": "karpenter.sh/nodepool", "Value": "x"}]
    ready.server.control("PATCH", f"instances/{identity}", {"extra": {"Tags": tags}})

    with pytest.raises(Refused, match=f"instance {identity}: it lacks the tags of cluster dovetail"):
        await ready.adapter.cloud.terminate(launched.provider_id)

    assert ready.calls("TerminateInstances") == []
    assert len(ready.calls("DescribeInstances")) == 1


async def test_only_the_instance_of_the_claim_that_is_deleted_is_terminated(ready: Stage) -> None:
    mine, other = await ready.launched(a_claim_of_ec2(name="mine")), await ready.launched(a_claim_of_ec2(name="other"))
    since = ready.server.control("GET", "ledger/last")

    with pytest.raises(Refused, match=r"NodeClaim/mine: status.providerID names instance .* says other"):
        await ready.adapter.cloud.terminate(other.provider_id, "mine")
    answer = await ready.adapter.cloud.terminate(mine.provider_id, "mine")

    assert answer == "terminating"
    (call,) = ready.server.calls("TerminateInstances", since)
    assert call["input"]["InstanceIds"] == [mine.provider_id.rpartition("/")[2]]


async def test_instances_of_older_versions_are_known_by_either_tag(ready: Stage) -> None:
    """Karpenter gives an instance the name of its claim and of its cluster only when it has joined."""
    launched = await ready.launched(a_claim_of_ec2())
    identity = launched.provider_id.rpartition("/")[2]
    tags = [{"Key": "kubernetes.io/cluster/dovetail", "Value": "owned"}]
    ready.server.control("PATCH", f"instances/{identity}", {"extra": {"Tags": tags}})

    assert await ready.adapter.cloud.terminate(launched.provider_id, "default-a") == "terminating"


OLDER = {"id": "ami-0000older", "name": "older", "arch": "x86_64", "created": "2026-07-01T00:00:00.000Z"}


def pinned(ready: Stage, how: str, image: str = "ami-0000older", types: str = "m5.large") -> NodeClaim:
    images = ready.server.control("GET", "world")["images"]
    ready.patch(images=[*images, OLDER])
    return a_claim_of_ec2(
        annotations=launched_by(Pin(how=how, images=(StableImage(id=image, types=tuple(types.split("+"))),)))
    )


async def test_a_claim_that_names_an_older_image_is_launched_with_it(ready: Stage) -> None:
    """Also on a type that never ran it, where its image of today is the same."""
    wanted = pinned(ready, STABLE, types="m5.large")
    assert (await ready.launched(wanted)).image_id == "ami-0000older"
    other = replace(wanted, uid="other", requirements=(one_of("node.kubernetes.io/instance-type", "m5.xlarge"),))
    assert (await ready.launched(other)).image_id == "ami-0000older"
    assert len(ready.calls("DescribeImages")) == 1  # asked once in half a minute

    plain = await ready.launched(a_claim_of_ec2())
    assert plain.image_id != "ami-0000older"


@pytest.mark.parametrize("named", [("ami-0deregistered", "m5.large"), ("ami-0000older", "x.unknown")])
async def test_where_the_older_image_is_gone_it_is_that_of_the_class_but_for_a_way_back(
    ready: Stage, named: tuple[str, str]
) -> None:
    found = await ready.adapter.cloud.prepare(pinned(ready, STABLE, *named))
    assert isinstance(found, Prepared)
    assert found.without == f"no image of before the change can be launched: {named[0]}={named[1]}"
    plain = await ready.adapter.cloud.prepare(a_claim_of_ec2())
    assert isinstance(plain, Prepared) and (plain.without, plain.request) == ("", found.request)

    back = await ready.adapter.cloud.prepare(pinned(ready, BACK, *named))
    assert isinstance(back, LaunchRefused) and back.reason == "StableImageGone"


@pytest.mark.parametrize("how", [BACK, STABLE])
@pytest.mark.parametrize("cheaper", ["a reservation", "what is not short"])
async def test_the_older_image_is_launched_where_a_type_that_it_does_not_suit_comes_first(
    ready: Stage, how: str, cheaper: str
) -> None:
    """Both architectures are allowed now. An arm64 type comes first, as a reservation of it has room or the amd64 ones
    are short on spot, but the nodes of before ran an image for amd64."""
    both = one_of("kubernetes.io/arch", "amd64", "arm64")
    wanted = replace(pinned(ready, how), requirements=(family("m5", "m6g"), any_kind(), both))
    if cheaper == "a reservation":
        ready.patch(reservations=[{"id": "cr-01", "type": "m6g.large", "zone": "us-west-2a", "available": 9}])
        await ready.with_class(capacityReservationSelectorTerms=[{"id": "cr-01"}])
    else:
        parts, zones = ready.adapter.cloud._parts.offerings.sources, ("us-west-2a", "us-west-2b", "us-west-2c")
        parts.prices.learn_spot(dict.fromkeys(product(("m5.large", "m6g.large"), zones), 0.03))
        for kind, zone in product(("m5.large", "m5.xlarge", "m5.2xlarge", "m5.metal"), zones):
            await parts.shortages.remember([Shortage(capacity_type="spot", instance_type=kind, zone=zone)])

    instance = await ready.launched(wanted)

    assert instance.image_id == "ami-0000older" and instance.labels[names.ARCH] == "amd64"
    plain = await ready.launched(replace(wanted, uid="plain", annotations={}))
    assert plain.labels[names.ARCH] == "arm64"


async def test_the_launch_after_one_that_is_refused_for_its_image_knows_that_it_is_gone(ready: Stage) -> None:
    """It was there half a minute ago at most; nobody waits until that is over."""
    first = pinned(ready, STABLE)
    assert (await ready.launched(first)).image_id == "ami-0000older"
    images = ready.server.control("GET", "world")["images"]
    ready.patch(images=[image for image in images if image["id"] != "ami-0000older"])

    refused = await ready.launch(replace(first, uid="second"))
    assert isinstance(refused, LaunchRefused) and refused.reason == "InvalidAMIID"
    third = await ready.adapter.cloud.prepare(replace(first, uid="third"))
    assert isinstance(third, Prepared) and third.without


@pytest.mark.parametrize("options", [None, {"enabled": False}, {"enabled": True}])
async def test_enclaves_are_on_where_the_class_says_so_whatever_pods_ask_for(
    stage: Stage, options: dict[str, bool] | None
) -> None:
    """AWS-63, AWS-86: a node without the enclaves that its class promises cannot run what it is for. The first m5 that
    has them is the xlarge."""
    await stage.with_class(**({} if options is None else {"enclaveOptions": options}))
    stage.since = stage.server.control("GET", "ledger/last")
    requests = parse_resources({"cpu": "1", "pods": "1", "eks.amazonaws.com/nitro-sandbox": "0"})

    instance = await stage.launched(a_claim_of_ec2(family("m5"), on_demand(), requests=requests))

    on = options == {"enabled": True}
    made = [call["input"]["LaunchTemplateData"]["EnclaveOptions"] for call in stage.calls("CreateLaunchTemplate")]
    assert made and all(each == {"Enabled": on} for each in made)
    assert instance.labels[names.INSTANCE_TYPE] == ("m5.xlarge" if on else "m5.large")


async def test_an_interface_of_the_fabric_alone_has_no_prefixes_and_no_connections_to_track(ready: Stage) -> None:
    """AWS-86: EC2 refuses a launch that gives them to an `efa-only` interface."""
    rows = [("interface", 0, 0), ("efa-only", 0, 1), ("interface", 1, 1)]
    await ready.with_class(
        ipPrefixCount=1,
        connectionTracking={"udpTimeout": 45},
        networkInterfaces=[
            {"networkCardIndex": card, "deviceIndex": device, "interfaceType": kind} for kind, card, device in rows
        ],
    )
    p4d = one_of("node.kubernetes.io/instance-type", "p4d.24xlarge")

    await ready.launched(a_claim_of_ec2(p4d, on_demand()))

    made = ready.calls("CreateLaunchTemplate")[-1]["input"]["LaunchTemplateData"]["NetworkInterfaces"]
    assert all(each["Groups"] == made[0]["Groups"] for each in made)
    assert [("Ipv4PrefixCount" in each, "ConnectionTrackingSpecification" in each) for each in made] == [
        (True, True),
        (False, False),
        (True, True),
    ]


async def test_what_a_launch_is_made_of_changes_with_images_and_static_fields_alone(
    ready: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def makes() -> str:
        return (await ready.adapter.catalogues.node_class(REFERENCE)).makes

    first = await makes()
    assert first and await makes() == first
    await ready.with_class(subnetSelectorTerms=[{"tags": {"karpenter.sh/discovery": "*"}}])
    assert await makes() == first
    with monkeypatch.context() as upgraded:
        upgraded.setattr(node_classes, "HASH_VERSION", "v7")
        await ready.with_class(subnetSelectorTerms=[{"tags": {"karpenter.sh/discovery": "*"}}] * 2)
        assert (await makes()).startswith("v7:") and not is_other(await makes(), first)
    await ready.with_class(userData="#!/bin/bash")
    assert is_other(await makes(), first) and await makes()
    ready.classes.apply(userData="#!/bin/sh")
    assert await makes() == ""  # not looked at yet
