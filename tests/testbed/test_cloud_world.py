"""The declared world: what it offers, how it is changed, what the ledger keeps of it all."""

import json

import pytest
from botocore.exceptions import ClientError

from testbed.cloud.manifests import node_class
from testbed.cloud.server import CloudError, CloudServer
from testbed.cloud.state.world import merged
from tests.testbed.aws_clients import Aws, launched

POOL = ("m5.large", "subnet-0a")


def test_a_change_merges_maps_replaces_lists_and_removes_by_null() -> None:
    old = {"prices": {"a": 1, "b": 2}, "types": ["a", "b"], "ssm": {"x": {"y": 1}}}

    assert merged(old, {"prices": {"a": None, "c": 3}, "types": ["c"], "ssm": {"x": {"z": 2}}}) == {
        "prices": {"b": 2, "c": 3},
        "types": ["c"],
        "ssm": {"x": {"y": 1, "z": 2}},
    }


def test_a_declared_world_is_what_describe_calls_show(aws: Aws) -> None:
    aws.patch_world(
        types=["m5.large"],
        offerings={"m5.large": ["us-west-2b"]},
        subnets=[{"id": "subnet-0b", "zone": "us-west-2b", "free": 7, "tags": {"k": "v"}}],
        ssm={"/custom/worker-ami": None},
    )

    types = aws.ec2.describe_instance_types()["InstanceTypes"]
    offers = aws.ec2.describe_instance_type_offerings(LocationType="availability-zone")["InstanceTypeOfferings"]
    (subnet,) = aws.ec2.describe_subnets(Filters=[{"Name": "tag:k", "Values": ["*"]}])["Subnets"]
    with pytest.raises(ClientError) as missing:
        aws.client("ssm").get_parameter(Name="/custom/worker-ami")

    assert [each["InstanceType"] for each in types] == ["m5.large"]
    assert [each["Location"] for each in offers] == ["us-west-2b"]
    assert (subnet["SubnetId"], subnet["AvailableIpAddressCount"], subnet["AvailabilityZoneId"]) == (
        "subnet-0b",
        7,
        "usw2-az2",
    )
    assert missing.value.response["Error"]["Code"] == "ParameterNotFound"


def test_a_reset_brings_the_first_world_back_and_keeps_the_ledger(aws: Aws) -> None:
    aws.patch_world(types=["m5.large"])
    before = aws.server.control("GET", "ledger/last")

    aws.server.control("POST", "reset")

    assert len(aws.ec2.describe_instance_types()["InstanceTypes"]) == 14
    assert aws.server.control("GET", "ledger/last") == before + 1


def test_prices_are_settable_and_agree_in_all_three_places(aws: Aws) -> None:
    """MOT-5: pricing, spot history and the catalogue for independent checkers."""
    aws.patch_world(prices={"m5.large": 0.5})

    listed = aws.client("pricing").get_products(
        ServiceCode="AmazonEC2", Filters=[{"Type": "TERM_MATCH", "Field": "instanceType", "Value": "m5.large"}]
    )["PriceList"]
    history = aws.ec2.describe_spot_price_history(InstanceTypes=["m5.large"], AvailabilityZone="us-west-2b")
    catalogue = aws.server.control("GET", "prices")

    (term,) = json.loads(listed[0])["terms"]["OnDemand"].values()
    (dimension,) = term["priceDimensions"].values()
    assert float(dimension["pricePerUnit"]["USD"]) == 0.5
    assert [float(each["SpotPrice"]) for each in history["SpotPriceHistory"]] == [0.21]
    assert catalogue["m5.large"] == {
        "on-demand": dict.fromkeys(("us-west-2a", "us-west-2b", "us-west-2c"), 0.5),
        "spot": {"us-west-2a": 0.2, "us-west-2b": 0.21, "us-west-2c": 0.22},
    }


def test_a_price_of_null_is_no_price_wherever_prices_are_asked(aws: Aws) -> None:
    """A spot price of its own stands without one on demand."""
    aws.patch_world(prices={"m5.large": None, "c5.large": None}, spotPrices={"c5.large": {"us-west-2a": 0.03}})

    listed = aws.client("pricing").get_products(ServiceCode="AmazonEC2")["PriceList"]
    history = aws.ec2.describe_spot_price_history(InstanceTypes=["m5.large", "c5.large"])["SpotPriceHistory"]
    catalogue = aws.server.control("GET", "prices")

    names = {json.loads(each)["product"]["attributes"]["instanceType"] for each in listed}
    assert ("m5.xlarge" in names, names & {"m5.large", "c5.large"}) == (True, set())
    assert {(each["InstanceType"], each["AvailabilityZone"]) for each in history} == {("c5.large", "us-west-2a")}
    assert ("m5.large" in catalogue, catalogue["c5.large"]) == (False, {"spot": {"us-west-2a": 0.03}})


def test_a_world_whose_parts_are_null_is_empty_and_answers(aws: Aws) -> None:
    parts = ("prices", "spotPrices", "ssm", "subnets", "securityGroups", "images", "roles", "types")
    aws.patch_world(**dict.fromkeys(parts))

    assert aws.client("pricing").get_products(ServiceCode="AmazonEC2")["PriceList"] == []
    assert aws.ec2.describe_spot_price_history()["SpotPriceHistory"] == []
    assert aws.ec2.describe_instance_types()["InstanceTypes"] == []
    assert aws.ec2.describe_subnets()["Subnets"] == []
    assert aws.ec2.describe_security_groups()["SecurityGroups"] == []
    assert aws.ec2.describe_images()["Images"] == []
    assert aws.client("ssm").get_parameters(Names=["/custom/worker-ami"])["InvalidParameters"] == ["/custom/worker-ami"]


def test_the_price_list_has_bare_metal_under_its_own_family(aws: Aws) -> None:
    """AWS-68: both queries must find something, or upstream changes no price."""
    ask = aws.client("pricing").get_products

    found = [
        ask(ServiceCode="AmazonEC2", Filters=[{"Type": "TERM_MATCH", "Field": "productFamily", "Value": family}])
        for family in ("Compute Instance", "Compute Instance (bare metal)")
    ]

    names = [
        [json.loads(each)["product"]["attributes"]["instanceType"] for each in page["PriceList"]] for page in found
    ]
    assert (len(names[0]), names[1]) == (13, ["m5.metal"])


def test_the_price_list_has_types_that_are_not_offered_here(aws: Aws) -> None:
    """AWS-68: in a world of one type the list must still have a metal one."""
    aws.patch_world(types=["m8i.large"], prices={"m8i.large": 0.11})

    listed = aws.client("pricing").get_products(ServiceCode="AmazonEC2")["PriceList"]

    names = {json.loads(each)["product"]["attributes"]["instanceType"] for each in listed}
    assert {"m8i.large", "m5.metal", "m5.large"} <= names


def test_a_deprecated_image_is_shown_to_who_asks_for_it(aws: Aws) -> None:
    image = {"id": "ami-0e", "name": "old", "arch": "x86_64", "created": "2026-01-01T00:00:00.000Z", "owner": "amazon"}
    aws.patch_world(images=[{**image, "deprecated": "2026-02-01T00:00:00.000Z"}])

    assert aws.ec2.describe_images()["Images"] == []
    (shown,) = aws.ec2.describe_images(IncludeDeprecated=True, Owners=["amazon"])["Images"]
    assert (shown["ImageId"], shown["DeprecationTime"]) == ("ami-0e", "2026-02-01T00:00:00.000Z")


def test_the_ledger_has_every_call_with_its_parameters_and_what_it_made(aws: Aws) -> None:
    aws.template()
    (instance_id,) = launched(aws.fleet(POOL, token="claim-1"))
    with pytest.raises(ClientError):
        aws.ec2.describe_instances(InstanceIds=["i-0000000000000dead"])

    (made,), (launch,), (missed,) = (
        aws.calls(each) for each in ("CreateLaunchTemplate", "CreateFleet", "DescribeInstances")
    )
    assert made["input"]["LaunchTemplateData"]["UserData"] == "#!/bin/bash\necho hello\n"
    assert (launch["service"], launch["token"], launch["error"], launch["instances"]) == (
        "ec2",
        "claim-1",
        None,
        [instance_id],
    )
    assert launch["input"]["TargetCapacitySpecification"]["TotalTargetCapacity"] == 1
    assert launch["output"] == {
        "instances": [{"ids": [instance_id], "type": "m5.large", "zone": "us-west-2a"}],
        "errors": [],
    }
    assert (missed["error"], missed["input"]) == (
        "InvalidInstanceID.NotFound",
        {"InstanceIds": ["i-0000000000000dead"]},
    )


def test_the_ledger_file_and_the_control_api_hold_the_same(aws: Aws) -> None:
    aws.ec2.describe_subnets()

    lines = [json.loads(line) for line in aws.server.ledger.read_text(encoding="utf-8").splitlines()]

    assert lines[-1] == aws.calls("DescribeSubnets")[0]
    assert [each["seq"] for each in lines] == list(range(1, len(lines) + 1))


def test_calls_that_moto_answers_are_in_the_ledger_too(aws: Aws) -> None:
    iam = aws.client("iam")
    with pytest.raises(ClientError):
        iam.get_instance_profile(InstanceProfileName="none")

    assert [(each["service"], each["error"]) for each in aws.calls("GetInstanceProfile")] == [("iam", "NoSuchEntity")]


def test_a_fault_can_be_aimed_by_operation_and_text(aws: Aws) -> None:
    """The recorded worlds use `has`, `dryRun` and `times` (README of the recorded traffic)."""
    aws.patch_world(
        fail=[{"op": "DescribeInstances", "has": "InstanceIds", "code": "RequestLimitExceeded", "times": 1}]
    )
    aws.template()
    (instance_id,) = launched(aws.fleet(POOL))

    listed = aws.states()
    with pytest.raises(ClientError) as throttle:
        aws.ec2.describe_instances(InstanceIds=[instance_id])
    again = aws.ec2.describe_instances(InstanceIds=[instance_id])["Reservations"]

    assert (len(listed), len(again)) == (1, 1)
    assert throttle.value.response["Error"]["Code"] == "RequestLimitExceeded"


def test_a_request_rate_throttles_what_comes_too_fast(aws: Aws) -> None:
    aws.patch_world(rateLimits={"DescribeSubnets": {"burst": 2, "perSecond": 0}})

    aws.ec2.describe_subnets()
    aws.ec2.describe_subnets()
    with pytest.raises(ClientError) as throttle:
        aws.ec2.describe_subnets()

    assert throttle.value.response["Error"]["Code"] == "RequestLimitExceeded"


def test_profiles_are_listed_under_their_path_only(aws: Aws) -> None:
    """moto ignores PathPrefix: a clean-up of profiles would delete those of others, too."""
    iam = aws.client("iam")
    iam.create_instance_profile(InstanceProfileName="ours", Path="/karpenter/us-west-2/dovetail/u1/")
    iam.create_instance_profile(InstanceProfileName="theirs", Path="/other/")
    iam.add_role_to_instance_profile(InstanceProfileName="ours", RoleName="KarpenterNodeRole-dovetail")

    (listed,) = iam.list_instance_profiles(PathPrefix="/karpenter/")["InstanceProfiles"]

    assert (listed["InstanceProfileName"], [role["RoleName"] for role in listed["Roles"]]) == (
        "ours",
        ["KarpenterNodeRole-dovetail"],
    )


def test_a_missing_role_is_worded_as_aws_words_it(aws: Aws) -> None:
    """Upstream recognises it only by the lower-case word `role`."""
    iam = aws.client("iam")
    iam.create_instance_profile(InstanceProfileName="ours")

    with pytest.raises(ClientError) as refusal:
        iam.add_role_to_instance_profile(InstanceProfileName="ours", RoleName="Gone")

    assert refusal.value.response["Error"] == {
        "Type": "Sender",
        "Code": "NoSuchEntity",
        "Message": "The role with name Gone cannot be found.",
    }


def test_an_interruption_reaches_the_queue_and_takes_the_instance(aws: Aws) -> None:
    aws.template()
    aws.patch_world(shutdownSeconds=60)
    (instance_id,) = launched(aws.fleet(POOL, kind="spot"))
    sqs = aws.client("sqs")
    queue = sqs.get_queue_url(QueueName="dovetail")["QueueUrl"]

    aws.server.control("POST", f"instances/{instance_id}/interrupt", {"kind": "spot", "terminateAfter": 0})
    (message,) = sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=5)["Messages"]

    body = json.loads(message["Body"])
    assert (body["detail-type"], body["detail"]["instance-id"]) == (
        "EC2 Spot Instance Interruption Warning",
        instance_id,
    )
    assert aws.server.control("GET", "instances?wait=0")["instances"][0]["capacityType"] == "spot"


def test_the_status_of_an_instance_says_its_state_and_what_is_scheduled_for_it(aws: Aws) -> None:
    """As EC2: only those that run, unless all are asked for; one unknown id refuses the whole question."""
    aws.template()
    (instance_id,) = launched(aws.fleet(POOL))
    ec2, path = aws.client("ec2"), "instances/" + instance_id
    aws.server.control("POST", f"{path}/interrupt", {"kind": "scheduled"})
    aws.server.control("PATCH", path, {"state": "stopped"})

    running = ec2.describe_instance_status()["InstanceStatuses"]
    (row,) = ec2.describe_instance_status(InstanceIds=[instance_id], IncludeAllInstances=True)["InstanceStatuses"]
    with pytest.raises(ClientError) as refusal:
        ec2.describe_instance_status(InstanceIds=[instance_id, "i-0dead001", "i-0dead002"])

    assert [each["InstanceId"] for each in running if "InstanceState" in each] == []
    assert (row["InstanceState"]["Name"], row["Events"][0]["Code"]) == ("stopped", "instance-retirement")
    assert refusal.value.response["Error"]["Code"] == "InvalidInstanceID.NotFound"
    assert refusal.value.response["Error"]["Message"] == "The instance IDs 'i-0dead001, i-0dead002' do not exist"


def test_an_event_reaches_the_queue_through_a_rule(aws: Aws) -> None:
    """MOT-14: EventBridge and SQS are moto's, the queue is the world's."""
    events, sqs = aws.client("events"), aws.client("sqs")
    queue = sqs.get_queue_url(QueueName="dovetail")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    events.put_rule(Name="spot", EventPattern=json.dumps({"source": ["aws.ec2"]}))
    events.put_targets(Rule="spot", Targets=[{"Id": "queue", "Arn": arn}])

    events.put_events(Entries=[{"Source": "aws.ec2", "DetailType": "x", "Detail": json.dumps({"instance-id": "i-1"})}])

    (message,) = sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=5)["Messages"]
    assert json.loads(message["Body"])["detail"] == {"instance-id": "i-1"}


def test_the_example_class_finds_everything_in_the_default_world(aws: Aws) -> None:
    spec = node_class()["spec"]
    ((key, value),) = spec["subnetSelectorTerms"][0]["tags"].items()
    by_tag = [{"Name": f"tag:{key}", "Values": [value]}]

    assert len(aws.ec2.describe_subnets(Filters=by_tag)["Subnets"]) == 3
    assert len(aws.ec2.describe_security_groups(Filters=by_tag)["SecurityGroups"]) == 2
    assert aws.client("iam").get_role(RoleName=spec["role"])["Role"]["RoleName"] == spec["role"]


@pytest.mark.parametrize(("answer", "shown"), [("half", ["a"]), ("double", ["a", "a", "b", "b"])])
def test_an_answer_can_be_partial_or_say_everything_twice(aws: Aws, answer: str, shown: list[str]) -> None:
    subnets = [{"id": each, "zone": "us-west-2a", "free": 9} for each in "ab"]
    aws.patch_world(subnets=subnets, fail=[{"op": "DescribeSubnets", "answer": answer, "times": 1}])

    spoiled, whole = aws.ec2.describe_subnets()["Subnets"], aws.ec2.describe_subnets()["Subnets"]

    assert [each["SubnetId"] for each in spoiled] == shown
    assert [each["SubnetId"] for each in whole] == ["a", "b"]


def test_a_fault_can_strike_a_share_of_the_calls(aws: Aws) -> None:
    aws.patch_world(fail=[{"op": "DescribeSubnets", "share": 0.5, "answer": "half"}])
    found = {len(aws.ec2.describe_subnets()["Subnets"]) for _ in range(30)}
    assert len(found) == 2


def test_an_instance_that_no_caller_launched_can_be_declared_and_changed(aws: Aws) -> None:
    """What garbage collection and drift are tested with."""
    made = aws.server.control("POST", "instances", {"type": "m5.large", "tags": {"k": "v"}, "age": 60})
    aws.server.control("PATCH", f"instances/{made['id']}", {"tags": {"k": None, "Name": "x"}, "state": "stopped"})

    assert aws.states() == {made["id"]: "stopped"}
    assert aws.server.instances()[0]["tags"] == {"Name": "x"}


def test_a_senseless_control_request_is_answered_in_words(aws: Aws) -> None:
    for method, path, body in (
        ("GET", "nothing", None),
        ("POST", "rules/fail", [{"op": "CreateFleet", "when": "before", "answer": "truncate"}]),
        ("PATCH", "world", {"types": ["m5.enormous"]}),
    ):
        with pytest.raises(CloudError, match=r"no such route|strikes after|m5\.enormous"):
            aws.server.control(method, path, body)


@pytest.mark.parametrize(
    ("method", "path", "body", "named"),
    [
        ("PATCH", "world", {"zonalShifts": []}, "zonalShifts"),
        ("PATCH", "world", {"subnets": [{"id": "subnet-0a", "zone": "us-west-2a", "fre": 3}]}, "fre"),
        ("PATCH", "world", {"zonalShift": [{"zone": "us-west-2a"}]}, "zone"),
        ("PATCH", "world", {"unknownIds": "ignore"}, "ignore"),
        ("PATCH", "world", {"fleetOrder": "priority"}, "priority"),
        ("POST", "rules/ice", [{"instancetype": "m5.large"}], "instancetype"),
        ("POST", "rules/fail", [{"operation": "CreateFleet", "code": "x"}], "operation"),
        ("POST", "instances", {"type": "m5.large", "colour": "red"}, "colour"),
        ("PATCH", "instances/first", {"reservation": None}, "reservation"),
        ("PATCH", "instances/first", {"state": "paused"}, "paused"),
    ],
)
def test_a_key_that_nothing_reads_is_refused_by_its_name_and_nothing_is_changed(
    aws: Aws, method: str, path: str, body: object, named: str
) -> None:
    aws.server.control("POST", "instances", {"type": "m5.large"})
    world, instances = aws.server.control("GET", "world"), aws.server.instances()

    with pytest.raises(CloudError, match=rf"\b{named}\b"):
        aws.server.control(method, path, body)

    assert (aws.server.control("GET", "world"), aws.server.instances()) == (world, instances)


def test_a_zonal_shift_is_declared_by_its_zone_and_has_an_end(aws: Aws) -> None:
    ask = aws.client("arc-zonal-shift").get_managed_resource
    cluster = "arn:aws:eks:us-west-2:111122223333:cluster/dovetail"
    aws.patch_world(zonalShift=[])
    none = ask(resourceIdentifier=cluster)["zonalShifts"]
    aws.patch_world(zonalShift=[{"zoneId": "usw2-az1"}, {"zoneId": "usw2-az2", "applied": False, "endIn": 60}])

    first, second = ask(resourceIdentifier=cluster)["zonalShifts"]

    assert none == []
    assert [(each["awayFrom"], each["appliedStatus"]) for each in (first, second)] == [
        ("usw2-az1", "APPLIED"),
        ("usw2-az2", "NOT_APPLIED"),
    ]
    assert (second["expiryTime"] - second["startTime"]).total_seconds() == 60
    assert ask(resourceIdentifier=cluster)["zonalShifts"][1]["expiryTime"] == second["expiryTime"]


def test_a_cluster_that_was_never_registered_is_no_resource_of_zonal_shifts(aws: Aws) -> None:
    with pytest.raises(ClientError) as unknown:
        aws.client("arc-zonal-shift").get_managed_resource(resourceIdentifier="arn:aws:eks:us-west-2:1:cluster/x")

    assert unknown.value.response["Error"]["Code"] == "ResourceNotFoundException"


def _asked_for_unknown(aws: Aws) -> list[str]:
    """What each question for things that are nowhere is answered: a code, or how many were found."""
    ec2, answers = aws.ec2, []
    questions = (
        (ec2.describe_capacity_reservations, "CapacityReservationIds", "cr-000000ff", "CapacityReservations"),
        (ec2.describe_placement_groups, "GroupNames", "nope", "PlacementGroups"),
        (ec2.describe_placement_groups, "GroupIds", "pg-000000ff", "PlacementGroups"),
        (ec2.describe_subnets, "SubnetIds", "subnet-000000ff", "Subnets"),
        (ec2.describe_security_groups, "GroupIds", "sg-000000ff", "SecurityGroups"),
        (ec2.describe_images, "ImageIds", "ami-000000ff", "Images"),
    )
    for ask, parameter, unknown, found in questions:
        try:
            answers.append(str(len(ask(**{parameter: [unknown]})[found])))
        except ClientError as error:
            answers.append(error.response["Error"]["Code"])
    return answers


def test_what_is_nowhere_is_refused_as_ec2_does_or_left_out_as_the_recorded_cloud_did(aws: Aws) -> None:
    refused = _asked_for_unknown(aws)
    aws.patch_world(unknownIds="nothing")
    left_out = _asked_for_unknown(aws)

    assert refused == [
        "InvalidCapacityReservationId.NotFound",
        "InvalidPlacementGroup.Unknown",
        "InvalidPlacementGroupId.NotFound",
        "InvalidSubnetID.NotFound",
        "InvalidGroup.NotFound",
        "InvalidAMIID.NotFound",
    ]
    assert left_out == ["0"] * 6


def test_two_servers_side_by_side_know_nothing_of_each_other(
    aws: Aws, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = CloudServer.start(tmp_path_factory.mktemp("other"), world={"types": ["m5.large"]})
    try:
        assert len(Aws(other).ec2.describe_instance_types()["InstanceTypes"]) == 1
        assert len(aws.ec2.describe_instance_types()["InstanceTypes"]) == 14
        assert CloudServer.at(other.folder) == other
    finally:
        other.stop()
    assert CloudServer.at(other.folder).endpoint == ""  # it took its endpoint away when it ended
