"""Capacity reservations that a caller makes and cancels, and the volumes of instances."""

import time
from datetime import UTC, datetime

import pytest
from botocore.exceptions import ClientError

from tests.testbed.aws_clients import Aws, launched, refused

POOL = ("m5.large", "subnet-0a")


def test_a_reservation_that_a_caller_makes_is_used_and_cancelled(aws: Aws) -> None:
    tags = [{"ResourceType": "capacity-reservation", "Tags": [{"Key": "team", "Value": "blue"}]}]
    made = aws.ec2.create_capacity_reservation(
        InstanceType="m5.large",
        InstancePlatform="Linux/UNIX",
        AvailabilityZone="us-west-2a",
        InstanceCount=1,
        InstanceMatchCriteria="targeted",
        EndDateType="limited",
        EndDate=datetime.fromtimestamp(time.time() + 3600, UTC),
        TagSpecifications=tags,
    )["CapacityReservation"]
    identity = made["CapacityReservationId"]
    by_tag = [{"Name": "tag:team", "Values": ["blue"]}]
    [shown] = aws.ec2.describe_capacity_reservations(Filters=by_tag)["CapacityReservations"]
    target = {"CapacityReservationId": identity}
    only = {"CapacityReservationPreference": "capacity-reservations-only", "CapacityReservationTarget": target}
    aws.template(CapacityReservationSpecification=only)
    first, second = aws.fleet(POOL), aws.fleet(POOL)

    aws.ec2.cancel_capacity_reservation(CapacityReservationId=identity)
    [ended] = aws.ec2.describe_capacity_reservations(CapacityReservationIds=[identity])["CapacityReservations"]

    assert (shown["CapacityReservationId"], shown["AvailableInstanceCount"], shown["EndDateType"]) == (
        identity,
        1,
        "limited",
    )
    assert (len(launched(first)), refused(second)[0][0]) == (1, "ReservationCapacityExceeded")
    assert ended["State"] == "cancelled"
    assert set(aws.states().values()) <= {"pending", "running"}, "its instance runs on"


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"InstanceType": "m5.enormous"}, "InvalidInstanceType"),
        ({"AvailabilityZone": "us-west-2z"}, "InvalidParameterValue"),
        ({"DryRun": True}, "DryRunOperation"),
    ],
)
def test_a_reservation_of_what_there_is_not_is_refused(aws: Aws, changed: dict[str, object], code: str) -> None:
    asked = {"InstanceType": "m5.large", "AvailabilityZone": "us-west-2a", "InstanceCount": 1, **changed}
    with pytest.raises(ClientError, match=code):
        aws.ec2.create_capacity_reservation(InstancePlatform="Linux/UNIX", **asked)
    assert aws.ec2.describe_capacity_reservations()["CapacityReservations"] == []


def test_volumes_are_those_that_the_template_maps_and_go_with_their_instance(aws: Aws) -> None:
    disk = {"VolumeSize": 187, "VolumeType": "io2", "Iops": 10000, "Encrypted": True, "DeleteOnTermination": True}
    aws.template(BlockDeviceMappings=[{"DeviceName": "/dev/xvda", "Ebs": disk}])
    [instance] = launched(aws.fleet(POOL))
    [row] = aws.ec2.describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"]
    [mapped] = [each["Ebs"]["VolumeId"] for each in row["BlockDeviceMappings"]]

    [volume] = aws.ec2.describe_volumes(VolumeIds=[mapped])["Volumes"]

    assert {key: volume[key] for key in ("Size", "VolumeType", "Iops", "Encrypted")} == {
        "Size": 187,
        "VolumeType": "io2",
        "Iops": 10000,
        "Encrypted": True,
    }
    assert [each["InstanceId"] for each in volume["Attachments"]] == [instance]
    of_instance = [{"Name": "attachment.instance-id", "Values": [instance]}]
    assert [each["VolumeId"] for each in aws.ec2.describe_volumes(Filters=of_instance)["Volumes"]] == [mapped]
    aws.server.control("PATCH", f"instances/{instance}", {"state": "terminated"})
    assert aws.ec2.describe_volumes()["Volumes"] == []
    with pytest.raises(ClientError, match=r"InvalidVolume\.NotFound"):
        aws.ec2.describe_volumes(VolumeIds=[mapped])
