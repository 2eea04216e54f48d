"""Instances over time, and what Describe calls show of them."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.testbed.aws_clients import Aws, launched

POOL = ("m5.large", "subnet-0a")


def within(seconds: float, fact: Callable[[], bool]) -> bool:
    """Whether it becomes true in that time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if fact():
            return True
        time.sleep(0.05)
    return fact()


def test_an_instance_is_pending_then_running(aws: Aws) -> None:
    aws.patch_world(runSeconds=1)
    aws.template()

    (instance_id,) = launched(aws.fleet(POOL))

    assert aws.states() == {instance_id: "pending"}
    assert within(5, lambda: aws.states() == {instance_id: "running"})


def test_a_terminated_instance_shuts_down_first_and_stays_listed(aws: Aws) -> None:
    """AWS-105, AWS-107; moto says terminated at once."""
    aws.patch_world(shutdownSeconds=1)
    aws.template()
    (instance_id,) = launched(aws.fleet(POOL))

    answer = aws.ec2.terminate_instances(InstanceIds=[instance_id])

    assert answer["TerminatingInstances"][0]["CurrentState"]["Name"] == "shutting-down"
    assert aws.states() == {instance_id: "shutting-down"}
    assert within(5, lambda: aws.states() == {instance_id: "terminated"})


def test_terminating_twice_changes_nothing(aws: Aws) -> None:
    aws.patch_world(shutdownSeconds=60)
    aws.template()
    (instance_id,) = launched(aws.fleet(POOL))

    aws.ec2.terminate_instances(InstanceIds=[instance_id])
    (first,) = aws.server.instances()
    aws.ec2.terminate_instances(InstanceIds=[instance_id])

    assert aws.server.instances()[0]["goneAt"] == first["goneAt"]


def test_terminating_an_unknown_instance_refuses_the_whole_call(aws: Aws) -> None:
    aws.template()
    (instance_id,) = launched(aws.fleet(POOL))

    with pytest.raises(ClientError) as refusal:
        aws.ec2.terminate_instances(InstanceIds=[instance_id, "i-0000000000000dead"])

    assert refusal.value.response["Error"]["Code"] == "InvalidInstanceID.NotFound"
    assert aws.states()[instance_id] in ("pending", "running")


def test_a_terminated_instance_gives_its_address_back(aws: Aws) -> None:
    aws.patch_world(shutdownSeconds=0)
    aws.template()
    (instance_id,) = launched(aws.fleet(POOL))

    aws.ec2.terminate_instances(InstanceIds=[instance_id])

    subnets = aws.ec2.describe_subnets(SubnetIds=["subnet-0a"])["Subnets"]
    assert subnets[0]["AvailableIpAddressCount"] == 100


def test_filters_of_one_name_must_all_hold(aws: Aws) -> None:
    """AWS-103 asks for two tag keys; moto lets the last one win."""
    aws.template()
    aws.fleet(POOL, tags={"a": "1"})
    both = launched(aws.fleet(POOL, tags={"a": "1", "b": "2"}))

    found = aws.ec2.describe_instances(
        Filters=[{"Name": "tag-key", "Values": ["b"]}, {"Name": "tag-key", "Values": ["a"]}]
    )

    assert [each["InstanceId"] for group in found["Reservations"] for each in group["Instances"]] == both


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"InstanceIds": ["i-123456789"]}, "InvalidInstanceID.Malformed"),  # nine digits: neither eight nor seventeen
        ({"InstanceIds": ["i-abcdef01"]}, "InvalidInstanceID.NotFound"),
        ({"Filters": [{"Name": "instance-id", "Values": ["i-abcdef01"] * 201}]}, "FilterLimitExceeded"),
    ],
)
def test_a_question_that_ec2_would_not_take_is_refused(aws: Aws, asked: dict[str, Any], code: str) -> None:
    with pytest.raises(ClientError) as refusal:
        aws.ec2.describe_instances(**asked)
    assert refusal.value.response["Error"]["Code"] == code


def test_instances_are_listed_a_page_at_a_time_and_none_twice(aws: Aws) -> None:
    aws.template()
    everything = launched(aws.fleet(POOL, count=12))

    pages = list(aws.ec2.get_paginator("describe_instances").paginate(PaginationConfig={"PageSize": 5}))

    sizes = [sum(len(group["Instances"]) for group in page["Reservations"]) for page in pages]
    listed = [each["InstanceId"] for page in pages for group in page["Reservations"] for each in group["Instances"]]
    assert (sizes, listed) == ([5, 5, 2], everything)


@pytest.mark.parametrize(
    ("operation", "key", "size"),
    [
        ("describe_instance_types", "InstanceTypes", 14),
        ("describe_instance_type_offerings", "InstanceTypeOfferings", 14),
        ("describe_spot_price_history", "SpotPriceHistory", 42),
        ("describe_subnets", "Subnets", 4),
        ("describe_images", "Images", 12),
    ],
)
def test_every_list_has_pages(aws: Aws, operation: str, key: str, size: int) -> None:
    """moto ignores MaxResults, so a caller that forgets NextToken would pass."""
    call, found, token = getattr(aws.ec2, operation), 0, ""
    first = len(call(MaxResults=5)[key])
    while True:
        page = call(MaxResults=5, **({"NextToken": token} if token else {}))
        found += len(page[key])
        if not (token := page.get("NextToken", "")):
            break

    assert (first, found) == (min(5, size), size)


def test_a_new_instance_may_stay_unknown_for_a_while(aws: Aws) -> None:
    """MOT-15(4): the look-up by id or tag lags behind the launch."""
    aws.patch_world(visibleAfter=60)
    aws.template()
    (instance_id,) = launched(aws.fleet(POOL))

    with pytest.raises(ClientError) as refusal:
        aws.ec2.describe_instances(InstanceIds=[instance_id])

    assert refusal.value.response["Error"]["Code"] == "InvalidInstanceID.NotFound"
    assert aws.states() == {}


def test_tags_are_added_to_an_instance_and_refused_for_an_unknown_one(aws: Aws) -> None:
    aws.template()
    (instance_id,) = launched(aws.fleet(POOL, tags={"a": "1"}))

    aws.ec2.create_tags(Resources=[instance_id], Tags=[{"Key": "Name", "Value": "node"}])
    with pytest.raises(ClientError) as refusal:
        aws.ec2.create_tags(Resources=["i-0000000000000dead"], Tags=[{"Key": "Name", "Value": "node"}])

    assert aws.server.instances()[0]["tags"] == {"a": "1", "Name": "node"}
    assert refusal.value.response["Error"]["Code"] == "InvalidInstanceID.NotFound"


def test_templates_are_found_by_name_and_tag_and_deleted_once(aws: Aws) -> None:
    aws.ec2.create_launch_template(
        LaunchTemplateName="tagged",
        LaunchTemplateData={"ImageId": "ami-0a12023a"},
        TagSpecifications=[{"ResourceType": "launch-template", "Tags": [{"Key": "k", "Value": "v"}]}],
    )
    aws.template("other")

    by_tag = aws.ec2.describe_launch_templates(Filters=[{"Name": "tag:k", "Values": ["v"]}])["LaunchTemplates"]
    aws.ec2.delete_launch_template(LaunchTemplateId=by_tag[0]["LaunchTemplateId"])
    with pytest.raises(ClientError) as again:
        aws.ec2.delete_launch_template(LaunchTemplateId=by_tag[0]["LaunchTemplateId"])

    assert [each["LaunchTemplateName"] for each in by_tag] == ["tagged"]
    assert again.value.response["Error"]["Code"] == "InvalidLaunchTemplateId.NotFound"


def test_an_instance_that_stops_can_be_terminated(aws: Aws) -> None:
    aws.patch_world(shutdownSeconds=0.5)
    aws.template()
    (instance_id,) = launched(aws.fleet(POOL))
    aws.server.control("PATCH", "instances/first", {"state": "stopping"})
    before = aws.states()

    answer = aws.ec2.terminate_instances(InstanceIds=[instance_id])["TerminatingInstances"][0]

    assert before == {instance_id: "stopping"}
    assert (answer["PreviousState"]["Name"], answer["CurrentState"]["Name"]) == ("stopping", "shutting-down")
    assert within(5, lambda: aws.states() == {instance_id: "terminated"})


def test_aws_can_take_an_instance_out_of_its_reservation(aws: Aws) -> None:
    """AWS-147: what is read of it afterwards is an instance on demand."""
    reservation = {"id": "cr-01", "type": "m5.large", "zone": "us-west-2a", "available": 1}
    aws.patch_world(reservations=[reservation])
    target = {"CapacityReservationId": "cr-01"}
    only = {"CapacityReservationPreference": "capacity-reservations-only", "CapacityReservationTarget": target}
    aws.template(CapacityReservationSpecification=only)
    (instance_id,) = launched(aws.fleet(POOL))

    def shown() -> tuple[str | None, str | None, int]:
        (found,) = aws.ec2.describe_instances(InstanceIds=[instance_id])["Reservations"][0]["Instances"]
        (room,) = aws.ec2.describe_capacity_reservations()["CapacityReservations"]
        preference = found.get("CapacityReservationSpecification", {}).get("CapacityReservationPreference")
        return found.get("CapacityReservationId"), preference, room["AvailableInstanceCount"]

    before = shown()
    aws.server.control("PATCH", "instances/first", {"cr": None, "crPref": "none"})

    assert before == ("cr-01", "capacity-reservations-only", 0)
    assert shown() == (None, "none", 1)
