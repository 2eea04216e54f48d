"""The test bed's AWS refuses what the controller's policies do not allow, in the words of each service."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from dovetail.model.values.json import Json
from testbed.cloud.server import CloudServer
from tests.testbed.aws_clients import Aws, fleet_request, launched, listed

OURS = {"kubernetes.io/cluster/dovetail": "owned", "eks:eks-cluster-name": "dovetail", "karpenter.sh/nodepool": "web"}
PARAMETERS = "arn:aws:ssm:us-west-2:"  # and an account, or none for those of AWS itself
STANDARD = "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/standard/recommended/image_id"
THEIRS = {key.replace("dovetail", "other"): value.replace("dovetail", "other") for key, value in OURS.items()}


@pytest.fixture(scope="module")
def strict_cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CloudServer]:
    server = CloudServer.start(Path(tmp_path_factory.mktemp("strict")), options=("--enforce-policies",))
    yield server
    server.stop()


@pytest.fixture
def aws(strict_cloud: CloudServer) -> Aws:
    strict_cloud.control("POST", "reset")
    return Aws(strict_cloud)


def tagged(tags: dict[str, str], *kinds: str) -> list[Json]:
    return [{"ResourceType": kind, "Tags": listed(tags)} for kind in kinds]


def an_instance(aws: Aws, tags: dict[str, str]) -> str:
    """One that was there before."""
    made = aws.server.control("POST", "instances", {"type": "m5.large", "zone": "us-west-2a", "tags": tags})
    return str(made["id"])


def code_of(call: Callable[..., Any], **parameters: Any) -> str:
    with pytest.raises(ClientError) as refused:
        call(**parameters)
    assert "is not authorized to perform" in refused.value.response["Error"]["Message"]
    return refused.value.response["Error"]["Code"]


def test_an_instance_of_another_cluster_is_not_ended_and_one_of_ours_is(aws: Aws) -> None:
    ours, theirs, nobodys = an_instance(aws, OURS), an_instance(aws, THEIRS), an_instance(aws, {"Name": "bastion"})

    for foreign in (theirs, nobodys):
        assert code_of(aws.ec2.terminate_instances, InstanceIds=[foreign]) == "UnauthorizedOperation"
        assert code_of(aws.ec2.terminate_instances, InstanceIds=[ours, foreign]) == "UnauthorizedOperation"
    assert {aws.states()[each] for each in (ours, theirs, nobodys)} <= {"pending", "running"}
    aws.ec2.terminate_instances(InstanceIds=[ours])

    states = aws.states()
    assert states[ours] == "shutting-down" and "shutting-down" not in {states[theirs], states[nobodys]}
    noted = aws.calls("TerminateInstances")
    assert [call["error"] for call in noted] == ["UnauthorizedOperation"] * 4 + [None]


def test_what_is_another_s_is_not_made_ours_by_a_tag(aws: Aws) -> None:
    theirs = an_instance(aws, THEIRS)

    assert code_of(aws.ec2.create_tags, Resources=[theirs], Tags=listed(OURS)) == "UnauthorizedOperation"
    assert code_of(aws.ec2.create_tags, Resources=["subnet-0a"], Tags=listed(OURS)) == "UnauthorizedOperation"


def test_a_launch_needs_our_tags_on_everything_that_it_makes(aws: Aws) -> None:
    """Also on interfaces, which the template tags; and the template has to be ours itself."""
    aws.server.control("POST", "reset")
    create = aws.ec2.create_launch_template
    data = {"ImageId": "ami-0a12023a", "NetworkInterfaces": [{"DeviceIndex": 0, "Groups": ["sg-01"]}]}
    interfaces = {**data, "TagSpecifications": tagged(OURS, "network-interface")}
    ours = {"LaunchTemplateName": "template", "TagSpecifications": tagged(OURS, "launch-template")}
    kinds = tagged(OURS, "instance", "volume", "fleet")
    request = {**fleet_request(("m5.large", "subnet-0a")), "TagSpecifications": kinds}

    assert code_of(create, LaunchTemplateName="x", LaunchTemplateData=data) == "UnauthorizedOperation"
    foreign = tagged(THEIRS, "launch-template")
    assert code_of(create, LaunchTemplateName="x", LaunchTemplateData=data, TagSpecifications=foreign)
    create(**ours, LaunchTemplateData=data)
    assert code_of(aws.ec2.create_fleet, **request) == "UnauthorizedOperation"
    aws.ec2.delete_launch_template(LaunchTemplateName="template")
    create(**ours, LaunchTemplateData=interfaces)
    for left_out in range(3):
        fewer = [each for number, each in enumerate(kinds) if number != left_out]
        assert code_of(aws.ec2.create_fleet, **{**request, "TagSpecifications": fewer}) == "UnauthorizedOperation"
    assert launched(aws.ec2.create_fleet(**request))


def test_a_dry_run_is_refused_for_the_same_reason(aws: Aws) -> None:
    run = {"ImageId": "ami-0a12023a", "InstanceType": "m5.large", "MinCount": 1, "MaxCount": 1, "DryRun": True}
    kinds = ("instance", "volume", "network-interface")

    assert code_of(aws.ec2.run_instances, **run) == "UnauthorizedOperation"
    with pytest.raises(ClientError, match="DryRunOperation"):
        aws.ec2.run_instances(**run, TagSpecifications=tagged(OURS, *kinds))


@pytest.mark.parametrize(
    ("service", "operation", "parameters", "code"),
    [
        ("iam", "create_instance_profile", {"InstanceProfileName": "x"}, "AccessDenied"),
        ("iam", "list_roles", {}, "AccessDenied"),
        ("sqs", "get_queue_url", {"QueueName": "theirs"}, "AccessDenied"),
        ("eks", "describe_cluster", {"name": "other"}, "AccessDeniedException"),
        ("ssm", "get_parameter", {"Name": "/secret"}, "AccessDeniedException"),
        ("ssm", "get_parameter", {"Name": "secret"}, "AccessDeniedException"),
        ("ssm", "get_parameter", {"Name": f"{PARAMETERS}111122223333:parameter/secret"}, "AccessDeniedException"),
        ("ssm", "get_parameters", {"Names": [STANDARD]}, "AccessDeniedException"),
        ("ssm", "get_parameters_by_path", {"Path": "/aws/service/"}, "AccessDeniedException"),
        ("ec2", "describe_vpcs", {}, "UnauthorizedOperation"),
    ],
)
def test_each_service_refuses_in_its_own_words(
    aws: Aws, service: str, operation: str, parameters: Json, code: str
) -> None:
    assert code_of(getattr(aws.client(service), operation), **parameters) == code


@pytest.mark.parametrize("name", [STANDARD, f"{PARAMETERS}:parameter{STANDARD}"])
def test_a_public_parameter_is_given_by_its_path_and_by_its_arn(aws: Aws, name: str) -> None:
    found = aws.client("ssm").get_parameter(Name=name)["Parameter"]

    assert (found["Name"], found["Value"]) == (STANDARD, "ami-0a12023a")
    assert found["ARN"] == f"{PARAMETERS}:parameter{STANDARD}"


@pytest.mark.parametrize(
    ("operation", "parameters", "resource"),
    [
        ("get_parameter", {"Name": "secret"}, "111122223333:parameter/secret"),
        ("get_parameter", {"Name": f"{PARAMETERS}1:parameter/secret"}, "1:parameter/secret"),
        ("get_parameters", {"Names": [STANDARD]}, f":parameter{STANDARD}"),
        ("get_parameters_by_path", {"Path": "/custom/"}, "111122223333:parameter/custom"),
    ],
)
def test_a_refusal_names_the_parameter_by_its_arn(aws: Aws, operation: str, parameters: Json, resource: str) -> None:
    with pytest.raises(ClientError) as refused:
        getattr(aws.client("ssm"), operation)(**parameters)

    assert f"on resource: {PARAMETERS}{resource} because" in refused.value.response["Error"]["Message"]


def test_a_role_that_is_not_the_nodes_is_not_passed_on(aws: Aws) -> None:
    iam = aws.client("iam")
    tags = {
        **{key: value for key, value in OURS.items() if key != "karpenter.sh/nodepool"},
        "topology.kubernetes.io/region": "us-west-2",
        "karpenter.k8s.aws/ec2nodeclass": "default",
    }
    iam.create_instance_profile(InstanceProfileName="ours", Tags=listed(tags))

    add = iam.add_role_to_instance_profile
    assert code_of(add, InstanceProfileName="ours", RoleName="OtherRole") == "AccessDenied"
    add(InstanceProfileName="ours", RoleName="KarpenterNodeRole-dovetail")
