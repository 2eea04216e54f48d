"""What the test bed's AWS answers is what AWS can answer: every answer fits the operation's model, says nothing again
that its caller has said unless AWS does, and a request that breaks the model is refused.

The server checks all of it at each call (`testbed/cloud/http/fitting.py`), so any test of the project is red where an
answer does not fit; here every operation is called once, and the check itself is tried.
"""

import json
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from dovetail.model.values.json import Json
from testbed import kinder
from testbed.cloud.http.fitting import Asked, Misfit, check_answer, check_body, marked
from testbed.cloud.http.gateway import OPERATIONS
from testbed.cloud.http.wire import model
from tests.testbed import conversation
from tests.testbed.aws_clients import ONCE, Aws


def test_every_operation_is_answered_as_its_model_says_and_copies_only_what_a_row_explains(aws: Aws) -> None:
    answers = conversation.hold(aws)

    rows = kinder.rows(kinder.COPIED)
    assert OPERATIONS.keys() <= answers.keys()
    assert {kinder.explained(field, rows) for field in aws.server.control("GET", "copied")} == rows.keys()


def answered(operation: str, result: Json, service: str = "ec2") -> frozenset[str]:
    return check_answer(model(service).operation_model(operation), result)


@pytest.mark.parametrize(
    ("operation", "result", "says"),
    [
        ("DescribeSubnets", {"Subnets": [{"SubnetName": "a"}]}, r"DescribeSubnets\.Subnets\[\] has no SubnetName"),
        ("DescribeSubnets", {"Subnets": [{"AvailableIpAddressCount": "9"}]}, "is of kind integer, not '9'"),
        ("DescribeSubnets", {"Subnets": [{"AvailableIpAddressCount": True}]}, "is of kind integer, not True"),
        ("DescribeSubnets", {"Subnets": {}}, "is of kind list"),
        ("DescribeSubnets", {"Subnets": [{"State": "open"}]}, "is one of pending, available, .* not 'open'"),
        ("CreateTags", {"Return": True}, r"CreateTags answers nothing, and not \['Return'\]"),
    ],
)
def test_an_answer_that_aws_could_not_give_is_found_out(operation: str, result: Json, says: str) -> None:
    with pytest.raises(Misfit, match=says):
        answered(operation, result)


def test_an_answer_lacks_nothing_that_it_always_has() -> None:
    with pytest.raises(Misfit, match="ListInstanceProfiles always has InstanceProfiles"):
        answered("ListInstanceProfiles", {"IsTruncated": False}, "iam")


def test_what_is_absent_and_what_is_newer_than_the_model_is_left_alone() -> None:
    processor = {"SupportedFeatures": ["metal-compatibility"]}

    assert answered("DescribeInstanceTypes", {"InstanceTypes": [{"ProcessorInfo": processor, "Hypervisor": None}]}) == (
        frozenset()
    )


def test_a_string_of_a_request_is_known_again_wherever_it_was_kept() -> None:
    asked = marked({"SubnetId": "subnet-0a", "Tags": [{"Key": "k", "Value": "v"}], "MaxResults": 5})
    kept = json.loads(json.dumps({"state": "available"}))

    subnets = [{"SubnetId": asked["SubnetId"], "State": kept["state"], "Tags": [{"Key": asked["Tags"][0]["Key"]}]}]

    assert isinstance(asked["Tags"][0]["Value"], Asked)
    assert answered("DescribeSubnets", {"Subnets": subnets}) == {
        "DescribeSubnets.Subnets[].SubnetId",
        "DescribeSubnets.Subnets[].Tags[].Key",
    }


def test_the_name_of_a_template_has_no_row_in_the_answer_of_a_fleet() -> None:
    """As the test bed answered once, and EC2 never does."""
    field = "CreateFleet.Instances[].LaunchTemplateAndOverrides.LaunchTemplateSpecification.LaunchTemplateName"

    assert kinder.explained(field, kinder.rows(kinder.COPIED)) is None


RESULT = "<GetInstanceProfileResult>{}</GetInstanceProfileResult>"
XML = f'<GetInstanceProfileResponse xmlns="x">{RESULT}</GetInstanceProfileResponse>'


@pytest.mark.parametrize(
    ("inner", "says"),
    [
        ("<InstanceProfile><Color>red</Color></InstanceProfile>", r"GetInstanceProfile\.InstanceProfile has no Color"),
        ("<InstanceProfile><Path>/</Path></InstanceProfile>", "always has InstanceProfileName"),
        ("", "GetInstanceProfile always has InstanceProfile"),
    ],
)
def test_an_answer_of_moto_is_held_to_the_same(inner: str, says: str) -> None:
    with pytest.raises(Misfit, match=says):
        check_body(model("iam").operation_model("GetInstanceProfile"), XML.format(inner).encode())


@pytest.mark.parametrize(
    ("service", "method", "parameters", "code"),
    [
        ("ec2", "create_launch_template", {"LaunchTemplateName": "a-name"}, "MissingParameter"),
        ("ec2", "create_fleet", {"LaunchTemplateConfigs": []}, "MissingParameter"),
        ("ec2", "describe_subnets", {"MaxResults": 2000}, "InvalidParameterValue"),
        ("ec2", "describe_launch_templates", {"MaxResults": 201}, "InvalidParameterValue"),
        ("ec2", "describe_instance_type_offerings", {"LocationType": "continent"}, "InvalidParameterValue"),
        ("ssm", "get_parameters_by_path", {"Path": "/aws/", "MaxResults": 11}, "ValidationException"),
        ("ssm", "get_parameters", {"Names": [f"/p{number}" for number in range(11)]}, "ValidationException"),
        ("pricing", "get_products", {}, "InvalidParameterException"),
        ("iam", "list_instance_profiles", {"MaxItems": 1001}, "ValidationError"),
        ("iam", "get_instance_profile", {}, "ValidationError"),
    ],
)
def test_a_request_that_its_model_does_not_allow_is_refused(
    aws: Aws, service: str, method: str, parameters: Json, code: str
) -> None:
    """The SDK's own check is switched off, as the product does for its large requests."""
    client: Any = Aws(aws.server, ONCE.merge(Config(parameter_validation=False))).client(service)

    with pytest.raises(ClientError) as refused:
        getattr(client, method)(**parameters)

    assert refused.value.response["Error"]["Code"] == code


def test_a_parameter_that_ec2_does_not_know_is_refused(aws: Aws) -> None:
    client: Any = aws.client("ec2")

    def also(params: Json, **_: Any) -> None:
        params["body"]["SubnetNames.1"] = "a"

    client.meta.events.register("before-call.ec2.DescribeSubnets", also)

    with pytest.raises(ClientError, match=r"UnknownParameter.*SubnetNames"):
        client.describe_subnets()
