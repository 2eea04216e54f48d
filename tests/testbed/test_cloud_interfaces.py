"""Interfaces and attributes of instances, and AWS's clock where it is not the caller's."""

import base64
import time

import pytest
from botocore.exceptions import ClientError

from tests.testbed.aws_clients import Aws, launched, listed, refused

FABRIC = [
    {"DeviceIndex": 0, "NetworkCardIndex": 0, "InterfaceType": "efa", "Groups": ["sg-01"]},
    {"DeviceIndex": 1, "NetworkCardIndex": 1, "InterfaceType": "efa-only", "Groups": ["sg-02"]},
]


def test_an_instance_has_the_interfaces_that_its_template_asks_for(aws: Aws) -> None:
    tags = [{"ResourceType": "network-interface", "Tags": listed({"whose": "ours"})}]
    aws.template(NetworkInterfaces=FABRIC, TagSpecifications=tags)
    (instance,) = launched(aws.fleet(("p4d.24xlarge", "subnet-0a")))

    [[shown]] = [each["Instances"] for each in aws.ec2.describe_instances()["Reservations"]]
    where = [{"Name": "attachment.instance-id", "Values": [instance]}, {"Name": "tag:whose", "Values": ["ours"]}]
    alone = aws.ec2.describe_network_interfaces(Filters=where)["NetworkInterfaces"]

    assert [each["InterfaceType"] for each in shown["NetworkInterfaces"]] == ["efa", "efa-only"]
    assert [each["Attachment"]["NetworkCardIndex"] for each in alone] == [0, 1]
    assert [each["Groups"][0]["GroupId"] for each in alone] == ["sg-01", "sg-02"]
    assert {each["TagSet"][0]["Value"] for each in alone} == {"ours"}


def test_a_type_without_a_fabric_is_refused_an_interface_for_it(aws: Aws) -> None:
    aws.template(NetworkInterfaces=FABRIC)

    answer = aws.fleet(("m5.large", "subnet-0a"))

    assert (launched(answer), refused(answer)) == ([], [("Unsupported", "m5.large", "us-west-2a")])


def test_attributes_of_an_instance_are_asked_for_one_by_one(aws: Aws) -> None:
    aws.template()
    (instance,) = launched(aws.fleet(("m5.large", "subnet-0a")))

    data = aws.ec2.describe_instance_attribute(InstanceId=instance, Attribute="userData")["UserData"]["Value"]
    kind = aws.ec2.describe_instance_attribute(InstanceId=instance, Attribute="instanceType")["InstanceType"]["Value"]

    assert (base64.b64decode(data), kind) == (b"#!/bin/bash\necho hello\n", "m5.large")


@pytest.mark.parametrize("ahead", [240, -240])
def test_moments_are_those_of_its_own_clock(aws: Aws, ahead: int) -> None:
    aws.template()
    aws.patch_world(clockAhead=ahead)
    before = time.time()
    aws.fleet(("m5.large", "subnet-0a"))
    after = time.time()

    [[shown]] = [each["Instances"] for each in aws.ec2.describe_instances()["Reservations"]]

    # milliseconds are cut off
    assert before - 0.001 <= shown["LaunchTime"].timestamp() - ahead <= after


@pytest.mark.parametrize("ahead", [1000, -1000])
@pytest.mark.parametrize("service", ["ec2", "iam"])
def test_a_signature_of_another_time_is_refused(aws: Aws, service: str, ahead: int) -> None:
    aws.patch_world(clockAhead=ahead)

    with pytest.raises(ClientError, match="RequestExpired"):
        aws.ec2.describe_instances() if service == "ec2" else aws.iam.list_instance_profiles()
