"""Launching: which pool a fleet takes, what it says of the others, and what the instance then carries (MOT-7 to
MOT-12)."""

import base64
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.testbed.aws_clients import Aws, fleet_request, launched, prioritized, refused


def test_a_fleet_takes_its_cheapest_pool_whatever_their_order(aws: Aws) -> None:
    """MOT-7: moto takes the first."""
    aws.template()

    answer = aws.fleet(("m5.xlarge", "subnet-0a"), ("m5.large", "subnet-0b"), ("m5.large", "subnet-0a"))

    assert answer["Instances"][0]["LaunchTemplateAndOverrides"]["Overrides"] == {
        "InstanceType": "m5.large",
        "SubnetId": "subnet-0a",
        "AvailabilityZone": "us-west-2a",
    }


def test_a_shortage_in_one_pool_moves_the_launch_to_the_next_and_is_listed(aws: Aws) -> None:
    """MOT-8, AWS-89."""
    aws.template()
    aws.patch_world(ice=[{"instanceType": "m5.large"}])

    answer = aws.fleet(("m5.large", "subnet-0a"), ("m5.large", "subnet-0b"), ("m5.xlarge", "subnet-0a"))

    said = [each["LaunchTemplateAndOverrides"] for each in (*answer["Instances"], *answer["Errors"])]
    template = {"LaunchTemplateId": "lt-00000000000000001", "Version": "1"}  # asked for by name; AWS answers the id
    assert [each["LaunchTemplateSpecification"] for each in said] == [template] * 3
    assert refused(answer) == [
        ("InsufficientInstanceCapacity", "m5.large", "us-west-2a"),
        ("InsufficientInstanceCapacity", "m5.large", "us-west-2b"),
    ]
    assert [each["InstanceType"] for each in answer["Instances"]] == ["m5.xlarge"]


def test_a_shortage_everywhere_launches_nothing_and_is_no_error_of_the_call(aws: Aws) -> None:
    aws.template()
    aws.patch_world(ice=[{"code": "UnfulfillableCapacity", "message": "nothing left"}])

    answer = aws.fleet(("m5.large", "subnet-0a"), kind="spot")

    assert (answer["Instances"], refused(answer)) == ([], [("UnfulfillableCapacity", "m5.large", "us-west-2a")])
    assert answer["Errors"][0]["ErrorMessage"] == "nothing left"
    assert aws.states() == {}


def test_a_shortage_of_spot_leaves_on_demand_alone(aws: Aws) -> None:
    aws.template()
    aws.patch_world(ice=[{"capacityType": "spot"}])

    spot = aws.fleet(("m5.large", "subnet-0a"), kind="spot")
    on_demand = aws.fleet(("m5.large", "subnet-0a"))

    assert (launched(spot), len(launched(on_demand))) == ([], 1)


def test_a_shortage_declared_for_two_tries_ends_after_them(aws: Aws) -> None:
    aws.template()
    aws.server.control("POST", "rules/ice", [{"zone": "us-west-2a", "times": 2}])

    outcomes = [len(launched(aws.fleet(("m5.large", "subnet-0a")))) for _ in range(3)]

    assert outcomes == [0, 0, 1]


def test_all_of_the_target_comes_from_one_pool(aws: Aws) -> None:
    aws.template()

    answer = aws.fleet(("m5.large", "subnet-0a"), ("m5.large", "subnet-0b"), count=3)

    assert [len(each["InstanceIds"]) for each in answer["Instances"]] == [3]


def test_a_short_fleet_says_what_is_missing(aws: Aws) -> None:
    aws.template()
    aws.patch_world(fleetMax=1)

    answer = aws.fleet(("m5.large", "subnet-0a"), count=3)

    assert len(launched(answer)) == 1
    assert refused(answer) == [("InsufficientInstanceCapacity", "m5.large", "us-west-2a")]


def test_spot_is_chosen_by_the_zone_s_price(aws: Aws) -> None:
    aws.template()
    aws.patch_world(spotPrices={"m5.large": {"us-west-2a": 0.09, "us-west-2b": 0.01}})

    answer = aws.fleet(("m5.large", "subnet-0a"), ("m5.large", "subnet-0b"), kind="spot")

    override = answer["Instances"][0]["LaunchTemplateAndOverrides"]["Overrides"]
    assert override["AvailabilityZone"] == "us-west-2b"


PRIORITIES: dict[tuple[str, str], float | None] = {
    ("c5.large", "subnet-0a"): None,  # the cheapest, and last where priorities count
    ("m5.large", "subnet-0a"): 0.096,
    ("m5.xlarge", "subnet-0b"): 0.01,
    ("m5.xlarge", "subnet-0a"): 0.01,
}
BY_PRICE = ["c5.large", "m5.large", "m5.xlarge", "m5.xlarge"]
BY_PRIORITY = ["m5.xlarge", "m5.xlarge", "m5.large", "c5.large"]


@pytest.mark.parametrize(
    ("kind", "strategy", "order"),
    [
        ("on-demand", None, BY_PRICE),
        ("on-demand", "lowest-price", BY_PRICE),
        ("on-demand", "prioritized", BY_PRIORITY),
        ("spot", None, BY_PRICE),
        ("spot", "lowest-price", BY_PRICE),
        ("spot", "diversified", BY_PRICE),
        ("spot", "price-capacity-optimized", BY_PRICE),
        ("spot", "capacity-optimized", BY_PRICE),
        ("spot", "capacity-optimized-prioritized", BY_PRIORITY),
    ],
)
def test_the_strategy_says_whether_price_or_priority_decides(
    aws: Aws, kind: str, strategy: str | None, order: list[str]
) -> None:
    """AWS-88: the lowest number first, a pool without one last. The errors list the pools in the order of trying."""
    aws.template()
    aws.patch_world(ice=[{}])

    answer = aws.ec2.create_fleet(**prioritized(PRIORITIES, strategy, kind))

    assert [name for _, name, _ in refused(answer)] == order


def test_among_pools_of_one_priority_the_price_decides(aws: Aws) -> None:
    aws.template()
    one: dict[tuple[str, str], float | None] = {("m5.xlarge", "subnet-0a"): 3.0, ("m5.large", "subnet-0a"): 3.0}

    answer = aws.ec2.create_fleet(**prioritized(one, "prioritized"))

    assert [each["InstanceType"] for each in answer["Instances"]] == ["m5.large"]


@pytest.mark.parametrize(("kind", "strategy"), [("on-demand", "capacity-optimized"), ("spot", "prioritized")])
def test_a_strategy_of_the_other_capacity_type_is_refused(aws: Aws, kind: str, strategy: str) -> None:
    aws.template()

    with pytest.raises(ClientError, match=rf"InvalidParameterValue.*{strategy}"):
        aws.ec2.create_fleet(**prioritized(PRIORITIES, strategy, kind))

    assert aws.states() == {}


def test_a_world_as_recorded_goes_by_the_price_under_every_strategy(aws: Aws) -> None:
    aws.template()
    aws.patch_world(fleetOrder="price", ice=[{}])

    answer = aws.ec2.create_fleet(**prioritized(PRIORITIES, "prioritized"))

    assert [name for _, name, _ in refused(answer)] == BY_PRICE


@pytest.mark.parametrize("kind", ["on-demand", "spot"])
def test_a_type_without_a_price_is_the_last_and_not_the_cheapest(aws: Aws, kind: str) -> None:
    aws.template()
    aws.patch_world(prices={"m5.large": None})

    answer = aws.fleet(("m5.large", "subnet-0a"), ("m5.xlarge", "subnet-0a"), kind=kind)

    assert [each["InstanceType"] for each in answer["Instances"]] == ["m5.xlarge"]


def test_what_the_template_says_reaches_the_instance(aws: Aws) -> None:
    """MOT-10, MOT-11: groups, profile, volume; a spot instance names its request."""
    aws.template()

    instance_id = launched(aws.fleet(("m5.large", "subnet-0b"), kind="spot", tags={"owner": "me"}))[0]

    found = aws.ec2.describe_instances(InstanceIds=[instance_id])["Reservations"][0]["Instances"][0]
    assert [each["GroupId"] for each in found["SecurityGroups"]] == ["sg-01", "sg-02"]
    assert found["IamInstanceProfile"]["Arn"].endswith(":instance-profile/node-profile")
    assert [each["DeviceName"] for each in found["BlockDeviceMappings"]] == ["/dev/xvda"]
    assert (found["SubnetId"], found["Placement"]["AvailabilityZoneId"]) == ("subnet-0b", "usw2-az2")
    assert (found["InstanceLifecycle"], found["SpotInstanceRequestId"][:4]) == ("spot", "sir-")
    assert found["Tags"] == [{"Key": "owner", "Value": "me"}]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ({"ImageId": "ami-0123456789abcdef0"}, "InvalidAMIID.NotFound"),
        ({"ImageId": "ami-0a12023b"}, "InvalidParameterValue"),  # an arm64 image on an x86_64 type
        ({"NetworkInterfaces": [{"DeviceIndex": 0, "Groups": ["sg-0123456789abcdef0"]}]}, "InvalidGroup.NotFound"),
    ],
)
def test_a_wrong_template_is_listed_per_pool_and_launches_nothing(aws: Aws, data: dict[str, Any], code: str) -> None:
    """AWS-90: such errors come inside the fleet's answer."""
    aws.template(**data)

    answer = aws.fleet(("m5.large", "subnet-0a"))

    assert (launched(answer), refused(answer)) == ([], [(code, "m5.large", "us-west-2a")])


def test_a_fleet_without_its_template_is_refused_as_a_call(aws: Aws) -> None:
    """AWS-91: the code by which a launch knows that its template was deleted."""
    with pytest.raises(ClientError) as refusal:
        aws.fleet(("m5.large", "subnet-0a"))

    assert refusal.value.response["Error"]["Code"] == "InvalidLaunchTemplateName.NotFoundException"


def test_a_full_subnet_is_an_error_of_its_pool(aws: Aws) -> None:
    """AWS-89: moto answers 500 instead (MOT-8)."""
    aws.template()
    aws.patch_world(subnets=[{"id": "subnet-0a", "zone": "us-west-2a", "free": 1, "tags": {}}])

    aws.fleet(("m5.large", "subnet-0a"))
    second = aws.fleet(("m5.large", "subnet-0a"))

    assert refused(second) == [("InsufficientFreeAddressesInSubnet", "m5.large", "us-west-2a")]
    assert aws.ec2.describe_subnets()["Subnets"][0]["AvailableIpAddressCount"] == 0


def test_a_reservation_gives_what_it_has_and_no_more(aws: Aws) -> None:
    """AWS-146, AWS-149."""
    aws.patch_world(reservations=[{"id": "cr-01", "type": "m5.large", "zone": "us-west-2a", "available": 1}])
    aws.template(
        CapacityReservationSpecification={
            "CapacityReservationPreference": "capacity-reservations-only",
            "CapacityReservationTarget": {"CapacityReservationId": "cr-01"},
        }
    )

    first = aws.fleet(("m5.large", "subnet-0a"))
    second = aws.fleet(("m5.large", "subnet-0a"))

    assert (len(launched(first)), refused(second)) == (1, [("ReservationCapacityExceeded", "m5.large", "us-west-2a")])
    described = aws.ec2.describe_capacity_reservations()["CapacityReservations"]
    assert [each["AvailableInstanceCount"] for each in described] == [0]


def test_a_reservation_may_be_full_although_it_is_listed_as_free(aws: Aws) -> None:
    """A reserved launch asks for on-demand capacity (AWS-88), so a shortage of that strikes it."""
    aws.patch_world(
        reservations=[{"id": "cr-01", "type": "m5.large", "zone": "us-west-2a", "available": 1}],
        ice=[{"capacityType": "on-demand", "code": "ReservationCapacityExceeded", "times": 1}],
    )
    aws.template(
        CapacityReservationSpecification={
            "CapacityReservationPreference": "capacity-reservations-only",
            "CapacityReservationTarget": {"CapacityReservationId": "cr-01"},
        }
    )

    answer = aws.fleet(("m5.large", "subnet-0a"))

    assert refused(answer) == [("ReservationCapacityExceeded", "m5.large", "us-west-2a")]


def test_a_dry_run_says_so_and_launches_nothing(aws: Aws) -> None:
    """AWS-42."""
    aws.template()

    with pytest.raises(ClientError) as answer:
        aws.ec2.create_fleet(**fleet_request(("m5.large", "subnet-0a"), dry=True))

    assert answer.value.response["Error"]["Code"] == "DryRunOperation"
    assert aws.states() == {}


def test_run_instances_refuses_where_a_fleet_lists(aws: Aws) -> None:
    """With an unknown profile: AWS's code, not moto's NoSuchEntity."""
    name = aws.template(IamInstanceProfile={"Name": "nobodys"})

    with pytest.raises(ClientError) as refusal:
        aws.ec2.run_instances(
            LaunchTemplate={"LaunchTemplateName": name}, InstanceType="m5.large", MinCount=1, MaxCount=1
        )

    assert refusal.value.response["Error"]["Code"] == "InvalidParameterValue"


def test_user_data_beyond_sixteen_kibibytes_is_refused(aws: Aws) -> None:
    """AWS-43."""
    with pytest.raises(ClientError) as refusal:
        aws.template(UserData=base64.b64encode(b"x" * 16385).decode())

    assert refusal.value.response["Error"]["Code"] == "InvalidUserData.Malformed"


def test_an_instance_shows_what_its_template_says_of_its_processor(aws: Aws) -> None:
    aws.template(CpuOptions={"NestedVirtualization": "enabled"}, EnclaveOptions={"Enabled": True})

    instance_id = launched(aws.fleet(("m5.large", "subnet-0a")))[0]

    found = aws.ec2.describe_instances(InstanceIds=[instance_id])["Reservations"][0]["Instances"][0]
    assert found["CpuOptions"] == {"CoreCount": 1, "ThreadsPerCore": 2, "NestedVirtualization": "enabled"}
    assert found["EnclaveOptions"] == {"Enabled": True}
