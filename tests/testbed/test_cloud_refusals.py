"""What AWS refuses, the test bed refuses: one row for each operation and reason, with its code.

Where the reason stands in AWS's documents is beside it in `testbed/cloud/operations/limits.py`, or in the column of
sources here. An operation that no row refuses has a row in `testbed/kinder.md`, which says why not.
"""

import base64
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from dovetail.model.values.json import Json
from testbed import kinder
from testbed.cloud.http.gateway import OPERATIONS
from tests.testbed.aws_clients import ONCE, TEMPLATE, Aws, fleet_request, launched, listed, refused

NOWHERE: Final = "0123456789abcdef0"
MANY: Final = [f"i-{number:017x}" for number in range(1001)]
POOL: Final = ("m5.large", "subnet-0a")
ERRORS: Final = "docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html"
MODEL: Final = "botocore's model"


class Refusal(NamedTuple):
    service: str
    operation: str
    parameters: Json
    code: str
    source: str


def ec2(operation: str, code: str, source: str = ERRORS, /, **parameters: Any) -> Refusal:
    return Refusal("ec2", operation, parameters, code, source)


def tags(count: int) -> list[Json]:
    return listed({f"key-{number}": "value" for number in range(count)})


def template(code: str, source: str, name: str = "a-template", **data: Any) -> Refusal:
    made = {"LaunchTemplateName": name, "LaunchTemplateData": {"ImageId": "ami-0a12023a", **data}}
    return ec2("CreateLaunchTemplate", code, source, **made)


def specified(kind: str, count: int) -> Json:
    return {"TagSpecifications": [{"ResourceType": kind, "Tags": tags(count)}]}


def fleet(specification: Json, overrides: int = 1, kind: str = "instant") -> Json:
    request = fleet_request(*[POOL] * overrides)
    (config,) = request["LaunchTemplateConfigs"]
    return {
        **request,
        "Type": kind,
        "LaunchTemplateConfigs": [{**config, "LaunchTemplateSpecification": specification}],
    }


LONG: Final = base64.b64encode(b"x" * 16385).decode()
BOTH: Final = {"LaunchTemplateName": "template", "LaunchTemplateId": f"lt-{NOWHERE}", "Version": "1"}
ONE_TYPE: Final = {"InstanceType": "m5.large", "InstancePlatform": "Linux/UNIX", "InstanceCount": 1}
RUN: Final = {"ImageId": "ami-0a12023a", "InstanceType": "m5.large", "MinCount": 1, "MaxCount": 1}
VALUES: Final = [{"Name": "instance-id", "Values": MANY[:201]}]

REFUSALS: Final = (
    *(
        ec2(operation, code, **{parameter: [identity]})
        for operation, parameter, known, malformed, form in (
            ("DescribeInstances", "InstanceIds", "InvalidInstanceID.NotFound", "InvalidInstanceID.Malformed", "i"),
            ("DescribeInstanceStatus", "InstanceIds", "InvalidInstanceID.NotFound", "InvalidInstanceID.Malformed", "i"),
            ("TerminateInstances", "InstanceIds", "InvalidInstanceID.NotFound", "InvalidInstanceID.Malformed", "i"),
            ("RebootInstances", "InstanceIds", "InvalidInstanceID.NotFound", "InvalidInstanceID.Malformed", "i"),
            ("DescribeSubnets", "SubnetIds", "InvalidSubnetID.NotFound", "InvalidSubnetID.Malformed", "subnet"),
            ("DescribeSecurityGroups", "GroupIds", "InvalidGroup.NotFound", "InvalidGroupId.Malformed", "sg"),
            ("DescribeImages", "ImageIds", "InvalidAMIID.NotFound", "InvalidAMIID.Malformed", "ami"),
            (
                "DescribeNetworkInterfaces",
                "NetworkInterfaceIds",
                "InvalidNetworkInterfaceID.NotFound",
                "InvalidNetworkInterfaceId.Malformed",
                "eni",
            ),
            ("DescribeVolumes", "VolumeIds", "InvalidVolume.NotFound", "InvalidVolumeID.Malformed", "vol"),
            (
                "DescribeCapacityReservations",
                "CapacityReservationIds",
                "InvalidCapacityReservationId.NotFound",
                "InvalidCapacityReservationId.Malformed",
                "cr",
            ),
            (
                "DescribePlacementGroups",
                "GroupIds",
                "InvalidPlacementGroupId.NotFound",
                "InvalidPlacementGroupId.Malformed",
                "pg",
            ),
            (
                "DescribeLaunchTemplates",
                "LaunchTemplateIds",
                "InvalidLaunchTemplateId.NotFound",
                "InvalidLaunchTemplateId.Malformed",
                "lt",
            ),
        )
        for identity, code in ((f"{form}-{NOWHERE}", known), (f"{form}-123456789", malformed), ("x", malformed))
    ),
    ec2(
        "CancelCapacityReservation",
        "InvalidCapacityReservationId.NotFound",
        CapacityReservationId=f"cr-{NOWHERE}",
    ),
    ec2("DescribePlacementGroups", "InvalidPlacementGroup.Unknown", GroupNames=["nobodys"]),
    ec2("DescribeInstanceAttribute", "InvalidInstanceID.NotFound", InstanceId=MANY[-1], Attribute="userData"),
    ec2("DescribeInstanceAttribute", "InvalidParameterValue", MODEL, InstanceId=MANY[-1], Attribute="colour"),
    ec2("RunInstances", "AttachmentLimitExceeded", ERRORS, **RUN, NetworkInterfaces=[{"DeviceIndex": 0}] * 4),
    ec2("RunInstances", "Unsupported", ERRORS, **RUN, NetworkInterfaces=[{"DeviceIndex": 0, "NetworkCardIndex": 1}]),
    ec2("RunInstances", "Unsupported", ERRORS, **RUN, NetworkInterfaces=[{"DeviceIndex": 0, "InterfaceType": "efa"}]),
    ec2("DescribeInstances", "FilterLimitExceeded", "the guide's page on filtering resources", Filters=VALUES),
    ec2("DescribeVolumes", "InvalidParameterValue", Filters=[{"Name": "colour", "Values": ["red"]}]),
    ec2("DescribeInstances", "InvalidParameterCombination", MODEL, InstanceIds=MANY[:1], MaxResults=5),
    ec2("DescribeInstanceStatus", "InvalidParameterCombination", MODEL, InstanceIds=MANY[:1], MaxResults=5),
    ec2("DescribeInstanceStatus", "InvalidParameterValue", MODEL, InstanceIds=MANY[:101]),
    ec2("DescribeSubnets", "InvalidNextToken", NextToken="%"),
    ec2("DescribeInstanceTypes", "InvalidInstanceType", InstanceTypes=["m5.huge"]),
    ec2("DescribeInstanceTypeOfferings", "InvalidParameterValue", MODEL, LocationType="continent"),
    ec2("DescribeSpotPriceHistory", "InvalidParameterValue", Filters=[{"Name": "colour", "Values": ["red"]}]),
    ec2("TerminateInstances", "InvalidParameterValue", MODEL, InstanceIds=MANY),
    ec2("TerminateInstances", "MissingParameter", MODEL),
    ec2("CreateTags", "InvalidParameterValue", MODEL, Resources=["sg-01"] * 1001, Tags=tags(1)),
    ec2("CreateTags", "TagLimitExceeded", MODEL, Resources=["sg-01"], Tags=tags(51)),
    ec2("CreateTags", "InvalidParameterValue", MODEL, Resources=["sg-01"], Tags=listed({"aws:mine": "x"})),
    ec2("CreateTags", "InvalidParameterValue", MODEL, Resources=["sg-01"], Tags=listed({"k" * 129: "x"})),
    ec2("CreateTags", "InvalidParameterValue", MODEL, Resources=["sg-01"], Tags=listed({"k": "x" * 257})),
    ec2("CreateTags", "InvalidInstanceID.NotFound", Resources=[MANY[-1]], Tags=tags(1)),
    ec2("CreateTags", "InvalidID", Resources=["nobodys"], Tags=tags(1)),
    ec2("DeleteTags", "InvalidID", Resources=["nobodys"]),
    template("InvalidLaunchTemplateName.MalformedException", ERRORS, name="no spaces"),
    template("InvalidLaunchTemplateName.MalformedException", ERRORS, name="ab"),
    template("InvalidUserData.Malformed", MODEL, UserData=LONG),
    template("TagLimitExceeded", MODEL, **specified("instance", 51)),
    ec2(
        "CreateLaunchTemplate",
        "TagLimitExceeded",
        MODEL,
        LaunchTemplateName="a-template",
        LaunchTemplateData={"ImageId": "ami-0a12023a"},
        **specified("launch-template", 51),
    ),
    ec2("DeleteLaunchTemplate", "InvalidLaunchTemplateName.NotFoundException", LaunchTemplateName="nobodys"),
    ec2("DescribeLaunchTemplateVersions", "InvalidLaunchTemplateId.NotFound", LaunchTemplateId=f"lt-{NOWHERE}"),
    ec2("CreateFleet", "InvalidParameterCombination", MODEL, **fleet(BOTH)),
    ec2("CreateFleet", "MissingParameter", MODEL, **fleet({"Version": "1"})),
    ec2("CreateFleet", "MissingParameter", MODEL, **fleet({"LaunchTemplateName": "template"})),
    ec2(
        "CreateFleet",
        "InvalidParameterValue",
        MODEL,
        **fleet({"LaunchTemplateName": "template", "Version": "1"}, 301, "request"),
    ),
    ec2("RunInstances", "InvalidParameterCombination", MODEL, **RUN, LaunchTemplate=BOTH),
    ec2(
        "RunInstances",
        "InvalidParameterCombination",
        MODEL,
        **RUN,
        SecurityGroupIds=["sg-01"],
        NetworkInterfaces=[{"DeviceIndex": 0, "SubnetId": "subnet-0a"}],
    ),
    ec2("RunInstances", "InvalidParameterValue", ERRORS, **RUN, IamInstanceProfile={"Name": "nobodys"}),
    ec2("RunInstances", "TagLimitExceeded", MODEL, **RUN, **specified("instance", 51)),
    ec2("RunInstances", "InvalidSubnetID.Malformed", ERRORS, **RUN, SubnetId="subnet-123"),
    ec2("RunInstances", "InvalidGroup.NotFound", ERRORS, **RUN, SecurityGroupIds=[f"sg-{NOWHERE}"]),
    ec2("RunInstances", "InvalidPlacementGroup.Unknown", ERRORS, **RUN, Placement={"GroupName": "nobodys"}),
    ec2("CreateCapacityReservation", "InvalidInstanceType", **{**ONE_TYPE, "InstanceType": "m5.huge"}),
    ec2(
        "CreateCapacityReservation", "TagLimitExceeded", MODEL, **ONE_TYPE, **specified("capacity-reservation", 51)
    )._replace(parameters={**ONE_TYPE, "AvailabilityZone": "us-west-2a", **specified("capacity-reservation", 51)}),
    Refusal("ssm", "GetParameter", {"Name": "/none"}, "ParameterNotFound", MODEL),
    Refusal("ssm", "GetParameters", {"Names": ["/none"] * 11}, "ValidationException", MODEL),
    Refusal("ssm", "GetParametersByPath", {"Path": "/", "MaxResults": 11}, "ValidationException", MODEL),
    Refusal("eks", "DescribeCluster", {"name": "another"}, "ResourceNotFoundException", MODEL),
    Refusal(
        "arc-zonal-shift",
        "GetManagedResource",
        {"resourceIdentifier": "arn:aws:eks:us-west-2:111122223333:cluster/another"},
        "ResourceNotFoundException",
        MODEL,
    ),
    Refusal(
        "pricing", "GetProducts", {"ServiceCode": "AmazonEC2", "MaxResults": 101}, "InvalidParameterException", MODEL
    ),
    Refusal("iam", "ListInstanceProfiles", {"MaxItems": 1001}, "ValidationError", MODEL),
    *(
        Refusal("iam", operation, {"InstanceProfileName": "nobodys", **more}, "NoSuchEntity", MODEL)
        for operation, more in (
            ("AddRoleToInstanceProfile", {"RoleName": "KarpenterNodeRole-dovetail"}),
            ("RemoveRoleFromInstanceProfile", {"RoleName": "KarpenterNodeRole-dovetail"}),
            ("GetInstanceProfile", {}),
            ("DeleteInstanceProfile", {}),
        )
    ),
)


def code_of(call: Callable[..., Any], **parameters: Any) -> str:
    with pytest.raises(ClientError) as refusal:
        call(**parameters)
    return str(refusal.value.response["Error"]["Code"])


def test_each_refusal_is_made_under_its_code_and_changes_nothing(aws: Aws) -> None:
    """In one test, since a world anew for each would take longer than all of them."""
    clients = Aws(aws.server, ONCE.merge(Config(parameter_validation=False)))
    made = {name: clients.client(name) for name in {each.service for each in REFUSALS}}
    wrong = []
    for each in REFUSALS:
        method = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in each.operation)
        found = code_of(getattr(made[each.service], method.lstrip("_")), **each.parameters)
        wrong += [(each.operation, each.parameters, found, each.code)] if found != each.code else []
    assert wrong == []
    assert aws.states() == {}


def test_an_operation_that_nothing_refuses_has_a_row() -> None:
    """And none has one that is refused: rows would outlive their reason."""
    tried = {(each.service, each.operation) for each in REFUSALS}
    unrefused = {f"{service}:{operation}" for service, operation in OPERATIONS.keys() - tried}
    assert unrefused == kinder.rows(kinder.UNREFUSED).keys()


def test_a_resource_keeps_no_more_than_fifty_tags_together(aws: Aws) -> None:
    aws.ec2.create_tags(Resources=["subnet-0a"], Tags=tags(48))

    assert code_of(aws.ec2.create_tags, Resources=["subnet-0a"], Tags=listed({"one": "more"})) == "TagLimitExceeded"


def test_the_tags_of_a_template_and_of_a_call_are_counted_together(aws: Aws) -> None:
    """A dry run is refused for the same reason: the product's own tags come beside those of a class."""
    aws.template(**specified("instance", 30))
    more = {f"more-{number}": "x" for number in range(21)}

    answer = aws.fleet(POOL, tags=more)

    assert refused(answer) == [("TagLimitExceeded", "m5.large", "us-west-2a")]
    name = {"LaunchTemplate": {"LaunchTemplateName": "template"}}
    run = {**RUN, **name, "DryRun": True, "TagSpecifications": [{"ResourceType": "instance", "Tags": listed(more)}]}
    assert code_of(aws.ec2.run_instances, **run) == "TagLimitExceeded"


def test_a_region_holds_only_so_many_templates(aws: Aws) -> None:
    """guide, launch-template-restrictions: 5,000, unless the world says otherwise."""
    assert aws.server.control("GET", "world")["mostTemplates"] == 5000
    aws.patch_world(mostTemplates=2)
    aws.template("first")
    aws.template("second")

    assert code_of(aws.ec2.create_launch_template, LaunchTemplateName="third", LaunchTemplateData=TEMPLATE) == (
        "MaxTemplateLimitExceeded"
    )


def test_ec2_does_not_know_yet_what_was_made_just_now(aws: Aws) -> None:
    """errors: "the ID of a recently created instance has not propagated through the system" – for any call."""
    aws.template()
    aws.patch_world(visibleAfter=60)
    (instance,) = launched(aws.fleet(POOL))

    assert {
        code_of(aws.ec2.describe_instances, InstanceIds=[instance]),
        code_of(aws.ec2.describe_instance_status, InstanceIds=[instance]),
        code_of(aws.ec2.terminate_instances, InstanceIds=[instance]),
        code_of(aws.ec2.reboot_instances, InstanceIds=[instance]),
        code_of(aws.ec2.create_tags, Resources=[instance], Tags=tags(1)),
    } == {"InvalidInstanceID.NotFound"}


def test_ec2_does_not_know_a_profile_that_iam_has_just_made(aws: Aws) -> None:
    aws.template()
    aws.patch_world(profilesAfter=60)

    assert refused(aws.fleet(POOL)) == [("InvalidParameterValue", "m5.large", "us-west-2a")]


def test_a_terminated_instance_is_passed_over_by_a_reboot(aws: Aws) -> None:
    """model: "Requests to reboot terminated instances are ignored"."""
    aws.template()
    (instance,) = launched(aws.fleet(POOL))
    aws.server.control("PATCH", f"instances/{instance}", {"state": "terminated"})

    aws.ec2.reboot_instances(InstanceIds=[instance])

    assert aws.calls("RebootInstances")[-1]["error"] is None


def test_pages_may_be_shorter_than_they_were_asked_for(aws: Aws) -> None:
    """Every list that has pages, when the world says so; SSM: "between zero and the value of MaxResults"."""
    aws.patch_world(pageSize=1)

    first = aws.ec2.describe_subnets(MaxResults=1000)
    every = [each for page in aws.ec2.get_paginator("describe_subnets").paginate() for each in page["Subnets"]]

    assert (len(first["Subnets"]), "NextToken" in first, len(every)) == (1, True, 4)
