"""The rights that we ask for: every call that the adapter makes is allowed, and nothing is allowed that it never
makes.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from dovetail.adapters.aws import kept_objects
from dovetail.adapters.aws.catalogue.prices import PriceRefresh
from dovetail.adapters.aws.catalogue.zonal_shift import ZonalShift
from dovetail.adapters.aws.interruptions.messages import read_message
from testbed.cloud.rights.evaluator import Asked, allows
from tests.adapters.aws.conftest import Stage
from tests.waiting import until_answered
from worlds.aws import a_claim_of_ec2

DEPLOY = Path(__file__).parents[3] / "deploy" / "aws"
TEMPLATE = DEPLOY / "cloudformation.yaml"
MOST_CHARACTERS = 6144  # of a managed policy, white space not counted

# What the record and the flight recorder do in a bucket; tests/adapters/test_kept_objects.py plays it.
LISTING = "s3:ListBucket"
KEPT = {LISTING, "s3:GetObject", "s3:PutObject", "s3:DeleteObject"}
# Rights without a call of their own: EC2 asks for them while it carries out a launch.
IMPLIED = {"ec2:CreateTags", "iam:PassRole", "iam:TagInstanceProfile"}


class _Loader(yaml.SafeLoader):
    """Takes CloudFormation's short forms for their text, or for the list that they stand before."""


def _text(loader: _Loader, suffix: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return str(node.value)


_Loader.add_multi_constructor("!", _text)


def template() -> dict[str, Any]:
    found: dict[str, Any] = yaml.load(TEMPLATE.read_text(encoding="utf-8"), Loader=_Loader)
    return found


def resources() -> dict[str, Any]:
    found: dict[str, Any] = template()["Resources"]
    return found


def documents() -> list[dict[str, Any]]:
    return [
        json.loads(each["Properties"]["PolicyDocument"]["Fn::Sub"][0])
        for each in resources().values()
        if each["Type"] == "AWS::IAM::ManagedPolicy"
    ]


def allowed() -> set[str]:
    return {action for document in documents() for statement in document["Statement"] for action in statement["Action"]}


def test_each_policy_is_small_enough_and_every_write_has_a_condition() -> None:
    """AWS-162, AWS-163."""
    for document in documents():
        text = json.dumps(document).replace("${ClusterName}", "x" * 100)
        assert len(re.sub(r"\s", "", text)) < MOST_CHARACTERS
        for statement in document["Statement"]:
            writes = [a for a in statement["Action"] if not re.match(r"\w[\w-]*:(Describe|Get|List|Receive)", a)]
            free = statement["Sid"] in ("LaunchFromWhatIsThere", "ReadTheQueue", "KeepTheRecord")
            assert "Condition" in statement or not writes or free, statement["Sid"]


def test_the_rules_fill_the_queue_with_every_kind_of_message_that_is_understood() -> None:
    """AWS-164, AWS-124."""
    patterns = [
        each["Properties"]["EventPattern"] for each in resources().values() if each["Type"] == "AWS::Events::Rule"
    ]
    details = {
        "AWS Health Event": {"service": "EC2", "eventTypeCategory": "scheduledChange", "affectedEntities": []},
        "EC2 Instance State-change Notification": {"instance-id": "i-0a000000", "state": "stopping"},
    }
    for pattern in patterns:
        (source,), (kind,) = pattern["source"], pattern["detail-type"]
        body = {
            "version": "0",
            "source": source,
            "detail-type": kind,
            "detail": details.get(kind, {"instance-id": "i-0a000000"}),
        }
        assert read_message(json.dumps(body)).reason != "no_op"
    assert len(patterns) == 5


@pytest.fixture
async def traffic(stage: Stage) -> set[str]:
    """Everything that the adapter does in the life of a class and an instance."""
    stage.patch(zonalShift={"zonalShifts": []})
    await stage.adapter.check()
    sources = stage.adapter.offerings.sources
    await PriceRefresh(stage.adapter.calls, sources.prices, stage.adapter.settings).refresh()
    await stage.with_class(
        placementGroupSelector={"name": "none"},
        capacityReservationSelectorTerms=[{"id": "cr-0"}],
    )
    await stage.with_class()
    launched = await stage.launched(a_claim_of_ec2())
    await stage.adapter.cloud.find(provider_id=launched.provider_id)

    async def runs() -> bool:
        seen = await stage.adapter.cloud.find(provider_id=launched.provider_id)
        return seen is not None and seen.state == "running"

    await until_answered(runs)
    await stage.adapter.cloud.reboot(launched.provider_id)
    await stage.adapter.cloud.terminate(launched.provider_id)
    interruptions = stage.adapter.interruptions
    stage.server.control("POST", "sqs", {"body": "{}"})
    await interruptions.acknowledge([message.receipt for message in await interruptions.receive()])
    await interruptions.troubles()
    await ZonalShift(stage.adapter.calls, "dovetail").zones()
    stage.classes.delete()
    await stage.upkeep.keep()
    return {f"{call['service']}:{call['op']}" for call in stage.server.calls(since=stage.since)}


def test_what_stands_in_a_bucket_is_read_and_written_by_allowed_actions() -> None:
    """A call of S3 and its action differ in their names only for lists."""
    code = Path(kept_objects.__file__).read_text(encoding="utf-8")
    calls = set(re.findall(r'self\._call\("(\w+)"', code))
    assert {LISTING if call == "list_objects_v2" else f"s3:{call.title().replace('_', '')}" for call in calls} == KEPT


async def test_every_call_is_allowed_and_every_allowed_action_is_used(traffic: set[str]) -> None:
    """AWS-161 to AWS-163: the fewest rights, action by action."""
    assert (traffic | KEPT) - allowed() == set()
    assert allowed() - traffic - KEPT - IMPLIED == set()


VALUES = {
    "AWS::Partition": "aws",
    "AWS::Region": "us-west-2",
    "AWS::AccountId": "111122223333",
    "ClusterName": "mine",
} | {
    "NodeRole": "DovetailNodeRole-mine",
    "Queue": "dovetail-mine",
    "RecordBucket": "kept",
}
PROFILE = "arn:aws:iam::111122223333:instance-profile/karpenter/x"
INSTANCE = "arn:aws:ec2:us-west-2:111122223333:instance/i-0123456789abcdef0"
TEMPLATE_ARN = "arn:aws:ec2:us-west-2:111122223333:launch-template/lt-1"
NODE_ROLE = "arn:aws:iam::111122223333:role/DovetailNodeRole-mine"
OWNED = {"kubernetes.io/cluster/mine": "owned", "karpenter.sh/nodepool": "default", "eks:eks-cluster-name": "mine"}
PROFILE_TAGS = {
    "kubernetes.io/cluster/mine": "owned",
    "eks:eks-cluster-name": "mine",
    "topology.kubernetes.io/region": "us-west-2",
    "karpenter.k8s.aws/ec2nodeclass": "default",
}


def statements() -> list[dict[str, Any]]:
    """Every statement, for one cluster."""
    text = json.dumps([statement for document in documents() for statement in document["Statement"]])
    filled: list[dict[str, Any]] = json.loads(re.sub(r"\$\{([\w:]+)\}", lambda found: VALUES[found[1]], text))
    return filled


def resource(tags: dict[str, str]) -> dict[str, str]:
    """As the tags of what a call acts upon."""
    return {f"aws:ResourceTag/{key}": value for key, value in tags.items()}


def request(tags: dict[str, str]) -> dict[str, str | tuple[str, ...]]:
    """As the tags that a call sets."""
    return {**{f"aws:RequestTag/{key}": value for key, value in tags.items()}, "aws:TagKeys": tuple(tags)}


def shifted(cluster: str) -> dict[str, str]:
    """As a look at the shifts of a cluster, which IAM knows as no resource."""
    return {"arc-zonal-shift:ResourceIdentifier": f"arn:aws:eks:us-west-2:111122223333:cluster/{cluster}"}


def others(tags: dict[str, str]) -> dict[str, str]:
    """The same tags, of another cluster."""
    return {key.replace("mine", "theirs"): value.replace("mine", "theirs") for key, value in tags.items()}


OURS = [
    Asked("iam:CreateInstanceProfile", PROFILE, request(PROFILE_TAGS)),
    Asked("iam:TagInstanceProfile", PROFILE, {**resource(PROFILE_TAGS), **request(PROFILE_TAGS)}),
    Asked("iam:AddRoleToInstanceProfile", PROFILE, resource(PROFILE_TAGS)),
    Asked("iam:DeleteInstanceProfile", PROFILE, resource(PROFILE_TAGS)),
    Asked("iam:PassRole", NODE_ROLE, {"iam:PassedToService": "ec2.amazonaws.com"}),
    Asked("ec2:RunInstances", INSTANCE, request(OWNED)),
    Asked("ec2:CreateFleet", TEMPLATE_ARN, resource(OWNED)),
    Asked("ec2:CreateTags", INSTANCE, {**request(OWNED), "ec2:CreateAction": "RunInstances"}),
    Asked("ec2:CreateTags", INSTANCE, {**resource(OWNED), **request({"Name": "n", "karpenter.sh/nodeclaim": "c"})}),
    Asked("ec2:CreateTags", INSTANCE, {**resource(OWNED), **request({"dovetail.sh/cluster-uid": "u"})}),
    Asked("ec2:TerminateInstances", INSTANCE, resource(OWNED)),
    Asked("ec2:DeleteLaunchTemplate", TEMPLATE_ARN, resource(OWNED)),
    Asked("ec2:DescribeInstances", "*", {"aws:RequestedRegion": "us-west-2"}),
    Asked("sqs:DeleteMessage", "arn:aws:sqs:us-west-2:111122223333:dovetail-mine", {}),
    Asked("eks:DescribeCluster", "arn:aws:eks:us-west-2:111122223333:cluster/mine", {}),
    Asked("arc-zonal-shift:GetManagedResource", "*", shifted("mine")),
    Asked("s3:ListBucket", "arn:aws:s3:::kept", {"s3:prefix": "mine/record/v1/"}),
    Asked("s3:ListBucket", "arn:aws:s3:::kept", {"s3:prefix": "some/where/mine/record/v1/"}),
    Asked("s3:PutObject", "arn:aws:s3:::kept/mine/record/v1/2026-05-28/20.json.gz", {}),
    Asked("s3:DeleteObject", "arn:aws:s3:::kept/some/where/mine/flights/v1/x.gz", {}),
]
FOREIGN = [
    # What a stolen worker role must not be able to do.
    Asked("iam:TagInstanceProfile", PROFILE, request(PROFILE_TAGS)),  # a profile without our tags, to make it ours
    Asked("iam:TagInstanceProfile", PROFILE, {**resource(others(PROFILE_TAGS)), **request(PROFILE_TAGS)}),
    Asked("iam:TagInstanceProfile", PROFILE, {**resource(PROFILE_TAGS), **request({"any": "tag"})}),
    Asked("iam:CreateInstanceProfile", PROFILE, request(others(PROFILE_TAGS))),
    Asked("iam:AddRoleToInstanceProfile", PROFILE, {}),
    Asked("iam:RemoveRoleFromInstanceProfile", PROFILE, resource(others(PROFILE_TAGS))),
    Asked(
        "iam:DeleteInstanceProfile", PROFILE, resource(PROFILE_TAGS | {"topology.kubernetes.io/region": "eu-west-1"})
    ),
    Asked("iam:PassRole", "arn:aws:iam::111122223333:role/Admin", {"iam:PassedToService": "ec2.amazonaws.com"}),
    Asked("iam:PassRole", NODE_ROLE, {"iam:PassedToService": "lambda.amazonaws.com"}),
    Asked("ec2:RunInstances", INSTANCE, request(others(OWNED))),
    Asked("ec2:RunInstances", INSTANCE, {}),
    Asked("ec2:CreateFleet", TEMPLATE_ARN, resource(others(OWNED))),
    Asked("ec2:CreateTags", INSTANCE, {**resource(others(OWNED)), **request({"Name": "n"})}),
    Asked("ec2:CreateTags", INSTANCE, request({"Name": "n"})),
    # What says that it is another cluster's, of the same name, stays that one's.
    Asked(
        "ec2:CreateTags",
        INSTANCE,
        {**resource({**OWNED, "dovetail.sh/cluster-uid": "theirs"}), **request({"dovetail.sh/cluster-uid": "u"})},
    ),
    Asked(
        "ec2:CreateTags",
        INSTANCE,
        {**resource(OWNED), **request({"dovetail.sh/cluster-uid": "u", "kubernetes.io/cluster/theirs": "owned"})},
    ),
    Asked("ec2:CreateTags", INSTANCE, {**request(OWNED)}),  # of an instance that is there, to make it ours
    Asked("ec2:CreateTags", INSTANCE, {**resource(OWNED), **request({"kubernetes.io/cluster/theirs": "owned"})}),
    Asked("ec2:TerminateInstances", INSTANCE, {}),
    Asked("ec2:TerminateInstances", INSTANCE, resource(others(OWNED))),
    Asked("ec2:DeleteLaunchTemplate", TEMPLATE_ARN, resource(others(OWNED))),
    Asked("ec2:DescribeInstances", "*", {"aws:RequestedRegion": "eu-west-1"}),
    Asked("sqs:ReceiveMessage", "arn:aws:sqs:us-west-2:111122223333:dovetail-theirs", {}),
    Asked("eks:DescribeCluster", "arn:aws:eks:us-west-2:111122223333:cluster/theirs", {}),
    Asked("arc-zonal-shift:GetManagedResource", "*", shifted("theirs")),
    Asked("arc-zonal-shift:GetManagedResource", "*", {}),
    Asked("s3:ListBucket", "arn:aws:s3:::kept", {"s3:prefix": "theirs/record/v1/"}),
    Asked("s3:ListBucket", "arn:aws:s3:::kept", {}),
    Asked("s3:GetObject", "arn:aws:s3:::kept/theirs/record/v1/2026-05-28/20.json.gz", {}),
    Asked("s3:GetObject", "arn:aws:s3:::another/mine/record/v1/2026-05-28/20.json.gz", {}),
    Asked("ssm:GetParameter", "arn:aws:ssm:us-west-2:111122223333:parameter/secret", {}),
]


@pytest.mark.parametrize("call", OURS, ids=lambda call: call.action)
def test_what_the_adapter_does_with_its_own_is_allowed(call: Asked) -> None:
    """AWS-162, AWS-163."""
    assert allows(statements(), call)


@pytest.mark.parametrize("call", FOREIGN, ids=lambda call: call.action)
def test_what_is_not_this_cluster_s_is_out_of_reach(call: Asked) -> None:
    """AWS-162, AWS-163: by the conditions, which names of actions alone do not show."""
    assert not allows(statements(), call)


def test_only_the_rules_of_this_template_write_to_the_queue() -> None:
    """AWS-164: whoever writes to the queue ends instances."""
    found = resources()
    rules = sorted(f"{name}.Arn" for name, each in found.items() if each["Type"] == "AWS::Events::Rule")
    policies = [each["Properties"] for each in found.values() if each["Type"] == "AWS::SQS::QueuePolicy"]
    sending = [s for policy in policies for s in policy["PolicyDocument"]["Statement"] if s["Effect"] == "Allow"]

    assert [(each["Principal"], each["Action"]) for each in sending] == [
        ({"Service": ["events.amazonaws.com"]}, ["sqs:SendMessage"])
    ]
    assert sorted(sending[0]["Condition"]["ArnEquals"]["aws:SourceArn"]) == rules


def parts(kind: str, key: str) -> set[str]:
    """The names that resources of that kind have in the template."""
    return {each["Properties"][key] for each in resources().values() if each["Type"] == kind}


def test_nothing_has_a_name_that_karpenters_stack_gives() -> None:
    """AWS-164: a second stack beside Karpenter's must not fail because a role or a queue exists."""
    roles, queues = parts("AWS::IAM::Role", "RoleName"), parts("AWS::SQS::Queue", "QueueName")
    policies = parts("AWS::IAM::ManagedPolicy", "ManagedPolicyName")
    assert roles == {"DovetailNodeRole-${ClusterName}", "DovetailController-${ClusterName}"}
    assert queues == {"dovetail-${ClusterName}"}
    assert {name.partition("-")[0] for name in policies} <= {
        "DovetailNodeLifecycle",
        "DovetailDiscovery",
        "DovetailInstanceProfiles",
        "DovetailRecord",
    }


def test_what_exists_is_named_and_not_made() -> None:
    """Each of role, queue with its rules, and controller's role stands under the condition of its parameter."""
    made = {name: each.get("Condition") for name, each in resources().items()}
    queues = [name for name in made if name.startswith("InterruptionQueue") or name.endswith("Rule")]
    assert {made[name] for name in queues} == {"MakeQueue"} and len(queues) == 7
    assert (made["DovetailNodeRole"], made["DovetailControllerRole"]) == ("MakeNodeRole", "MakeControllerRole")
    defaults = {name: each.get("Default") for name, each in template()["Parameters"].items()}
    assert {name for name, value in defaults.items() if value == ""} == {
        *("NodeRoleName", "QueueName", "ControllerRoleName", "OidcProvider", "RecordBucket")
    }
    assert made["DovetailRecordPolicy"] == "KeepRecord"


def test_the_controllers_role_is_for_one_service_account_of_one_cluster() -> None:
    """By Pod Identity and by IRSA alike: without these conditions any pod of the account could have it."""
    _, irsa, pod_identity = resources()["DovetailControllerRole"]["Properties"]["AssumeRolePolicyDocument"]
    (one,) = json.loads(pod_identity)["Statement"]
    (other,) = json.loads(irsa)["Statement"]
    assert set(one["Condition"]["StringEquals"]) == {
        "aws:RequestTag/eks-cluster-arn",
        "aws:RequestTag/kubernetes-namespace",
        "aws:RequestTag/kubernetes-service-account",
    }
    assert other["Condition"]["StringEquals"] == {
        "${OidcProvider}:aud": "sts.amazonaws.com",
        "${OidcProvider}:sub": "system:serviceaccount:${ServiceAccountNamespace}:${ServiceAccountName}",
    }


POLICIES = {
    "DovetailNodeLifecyclePolicy": "node-lifecycle",
    "DovetailDiscoveryPolicy": "discovery",
    "DovetailInstanceProfilesPolicy": "instance-profiles",
    "DovetailRecordPolicy": "record",
}


@pytest.mark.parametrize("name", POLICIES)
def test_the_template_and_terraform_have_the_same_policies(name: str) -> None:
    """The module reads the files and fills every placeholder that stands in them; the template repeats them."""
    file = (DEPLOY / "policies" / f"{POLICIES[name]}.json").read_text(encoding="utf-8")
    module = (DEPLOY / "terraform" / "main.tf").read_text(encoding="utf-8")

    assert json.loads(resources()[name]["Properties"]["PolicyDocument"]["Fn::Sub"][0]) == json.loads(file)
    assert f'= "{POLICIES[name]}"' in module
    filled = set(re.findall(r'"\$(\$\{[\w:]+\})", [\w.]+\)', module))
    assert set(re.findall(r"\$\{[\w:]+\}", file)) <= filled


def test_terraform_makes_the_same_rules_queue_and_roles() -> None:
    """AWS-164."""
    module = (DEPLOY / "terraform" / "main.tf").read_text(encoding="utf-8")
    rules = [each["Properties"]["EventPattern"] for each in resources().values() if each["Type"] == "AWS::Events::Rule"]
    patterns = {(pattern["source"][0], pattern["detail-type"][0]) for pattern in rules}

    assert set(re.findall(r'source = "([^"]+)", kind = "([^"]+)"', module)) == patterns
    managed = resources()["DovetailNodeRole"]["Properties"]["ManagedPolicyArns"]
    assert [arn for arn in managed if f'"{arn.rpartition("/")[2]}"' not in module] == []
    for name in ("DovetailNodeRole-", "dovetail-", "DovetailController-"):
        assert f'"{name}${{var.cluster_name}}"' in module
