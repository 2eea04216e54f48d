"""EC2NodeClasses: what they resolve to, what their conditions say, and what is left when they are deleted."""

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from dovetail.adapters.aws import meters
from dovetail.model.pools import ClaimTemplate, NodePool
from dovetail.ports.cloud import ClassNotReady
from testbed.cloud.server import CloudServer
from tests.adapters.aws.conftest import Stage
from tests.placement.builders import a_general_pool
from worlds.aws import REFERENCE, ClassStore, a_claim_of_ec2, one_of, open_adapter

READY = [
    "AMIsReady",
    "CapacityReservationsReady",
    "InstanceProfileReady",
    "PlacementGroupReady",
    "Ready",
    "SecurityGroupsReady",
    "SubnetsReady",
    "ValidationSucceeded",
]


def status(stage: Stage) -> dict[str, Any]:
    found: dict[str, Any] = stage.classes.objects["default"]["status"]
    return found


async def test_a_class_that_resolves_is_ready_with_every_condition_true(stage: Stage) -> None:
    """AWS-26, AWS-27, AWS-30 to AWS-36, AWS-38: as recorded of upstream."""
    await stage.with_class()

    assert [(c["type"], c["status"], c["observedGeneration"]) for c in status(stage)["conditions"]] == [
        (kind, "True", 1) for kind in READY
    ]
    assert [subnet["id"] for subnet in status(stage)["subnets"]] == ["subnet-0a", "subnet-0b", "subnet-0c"]
    assert status(stage)["securityGroups"] == [{"id": "sg-01", "name": "nodes"}, {"id": "sg-02", "name": "extra"}]
    assert [ami["id"] for ami in status(stage)["amis"]] == [
        "ami-0a12023a",
        "ami-0a12023b",
        "ami-0a12023c",
        "ami-0a12023d",
    ]


async def test_the_class_gets_its_finalizer_and_upstream_s_hash(stage: Stage) -> None:
    """AWS-28, AWS-47, AWS-116: the annotations recorded of upstream for this very class and CA bundle."""
    await stage.with_class(
        metadataOptions={
            "httpEndpoint": "enabled",
            "httpProtocolIPv6": "disabled",
            "httpPutResponseHopLimit": 1,
            "httpTokens": "required",
        }
    )

    meta = stage.classes.objects["default"]["metadata"]
    assert meta["finalizers"] == ["karpenter.k8s.aws/termination"]
    assert meta["annotations"] == {
        "karpenter.k8s.aws/ec2nodeclass-hash": "2936947484497888409",
        "karpenter.k8s.aws/ec2nodeclass-hash-version": "v6",
    }


async def test_user_data_that_is_nearly_full_is_said_in_the_log(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    """AWS-100: from 90 % of what EC2 takes; the labels of a claim come on top."""

    async def size_with(filler: int) -> int:
        caplog.clear()
        await stage.with_class(userData="#!/bin/bash\n#" + "x" * filler)
        return meters._user_data["default"]

    bare = await size_with(0)
    below = (await size_with(14_745 - bare), list(caplog.messages))
    above = (await size_with(14_746 - bare), list(caplog.messages))

    assert below == (14_745, [])
    assert above == (14_746, ["EC2NodeClass default: its user data has 14746 bytes, of which EC2 takes 16384"])


async def test_a_class_that_is_neither_changed_nor_due_costs_no_call(stage: Stage) -> None:
    await stage.with_class()
    before = len(stage.server.calls(since=stage.since))

    await stage.upkeep.keep()

    assert len(stage.server.calls(since=stage.since)) == before


async def test_a_trial_template_that_somebody_has_deleted_is_made_again(stage: Stage) -> None:
    """AWS-42: within the ten minutes for which it is known, and without a minute of not being ready."""
    await stage.with_class()
    (made,) = stage.calls("CreateLaunchTemplate")
    name = made["input"]["LaunchTemplateName"]
    await stage.adapter.calls.call("ec2", "DeleteLaunchTemplate", LaunchTemplateName=name)

    await stage.with_class(context="another")

    assert [call["input"]["LaunchTemplateName"] for call in stage.calls("CreateLaunchTemplate")] == [name, name]
    assert stage.classes.condition("Ready")[0] == "True"
    raw = stage.classes.objects["default"]
    seen = {each["observedGeneration"] for each in raw["status"]["conditions"] if each["type"] == "Ready"}
    assert seen == {raw["metadata"]["generation"]}


async def test_a_class_is_validated_anew_when_it_resolves_to_other_things_and_not_for_its_selectors(
    stage: Stage,
) -> None:
    """AWS-41."""
    await stage.with_class()
    dry = [len(stage.calls("RunInstances"))]

    for change in (
        {"subnetSelectorTerms": [{"id": "subnet-0a"}, {"id": "subnet-0b"}, {"id": "subnet-0c"}]},  # the same subnets
        {"capacityReservationSelectorTerms": [{"id": "cr-0ff"}]},
        {"subnetSelectorTerms": [{"id": "subnet-0a"}]},
        {"kubelet": {"maxPods": 20}},
    ):
        await stage.with_class(**change)
        dry.append(len(stage.calls("RunInstances")))

    assert dry == [1, 1, 1, 2, 3]


OURS = [
    {"Key": "kubernetes.io/cluster/dovetail", "Value": "owned"},
    {"Key": "topology.kubernetes.io/region", "Value": "us-west-2"},
    {"Key": "karpenter.k8s.aws/ec2nodeclass", "Value": "default"},
    {"Key": "eks:eks-cluster-name", "Value": "dovetail"},
]


def pool_of(arch: str) -> NodePool:
    return a_general_pool("p", requirements=(one_of("kubernetes.io/arch", arch),))


def later(stage: Stage, seconds: float) -> None:
    """The time that upkeep reads, from now on."""
    parts = stage.upkeep._parts
    for part in (stage.upkeep, parts.validation, parts.clean_up, parts.clean_up._profiles):
        part._clock = lambda: time.time() + seconds


async def test_a_class_is_ready_a_minute_after_what_stood_in_its_way_is_gone(stage: Stage) -> None:
    """AWS-41: a NodePool, and an instance profile that Terraform makes beside the class."""
    stage.pools.append(pool_of("arm64"))
    await stage.with_class(amiSelectorTerms=[{"alias": "windows2022@latest"}])
    refused = [stage.classes.condition("ValidationSucceeded")]
    stage.pools[:] = [pool_of("amd64")]
    later(stage, 61.0)
    await stage.upkeep.keep()
    ready = [stage.classes.condition("Ready")[0]]

    stage.patch(checkInstanceProfiles=True)
    await stage.with_class(role=None, instanceProfile="mine")
    refused.append(stage.classes.condition("ValidationSucceeded"))
    await stage.adapter.calls.call("iam", "CreateInstanceProfile", InstanceProfileName="mine", Tags=OURS)
    later(stage, 122.0)
    await stage.upkeep.keep()
    ready.append(stage.classes.condition("Ready")[0])

    assert refused == [("False", "NoCompatibleInstanceTypes"), ("False", "InstanceProfileNotFound")]
    assert ready == ["True", "True"]


async def test_an_annotation_asks_for_a_new_verdict_at_once(stage: Stage) -> None:
    """AWS-41: as upstream's "force validation refresh". A right that was missing is not asked for again for half an
    hour otherwise."""
    stage.patch(fail=[{"op": "RunInstances", "dryRun": True, "code": "UnauthorizedOperation", "status": 403}])
    await stage.with_class()
    refused = stage.classes.condition("ValidationSucceeded")
    stage.patch(fail=[])
    later(stage, 29 * 60.0)
    await stage.upkeep.keep()
    still = stage.classes.condition("ValidationSucceeded")

    await stage.classes.merge("default", {"metadata": {"annotations": {"example.com/look": "again"}}})
    await stage.upkeep.keep()

    assert refused == still == ("False", "RunInstancesAuthCheckFailed")
    assert stage.classes.condition("Ready") == ("True", "Ready")
    asked = len(stage.calls("RunInstances"))
    await stage.upkeep.keep()
    assert len(stage.calls("RunInstances")) == asked


@pytest.mark.parametrize(
    ("change", "kind", "reason"),
    [
        ({"amiSelectorTerms": [{"name": "nothing-*"}], "amiFamily": "AL2023"}, "AMIsReady", "AMINotFound"),
        ({"amiSelectorTerms": [{"alias": "windows2025@latest"}]}, "AMIsReady", "AMINotFound"),
        ({"amiSelectorTerms": [{"alias": "al2@latest"}]}, "AMIsReady", "UnsupportedAlias"),
        ({"subnetSelectorTerms": [{"id": "subnet-none"}]}, "SubnetsReady", "SubnetsNotFound"),
        ({"securityGroupSelectorTerms": [{"name": "none"}]}, "SecurityGroupsReady", "SecurityGroupsNotFound"),
        ({"role": "NoSuchRole"}, "InstanceProfileReady", "RoleNotFound"),
        ({"placementGroupSelector": {"name": "none"}}, "PlacementGroupReady", "PlacementGroupNotFound"),
        ({"placementGroupSelector": {"id": "pg-none"}}, "PlacementGroupReady", "PlacementGroupNotFound"),
        ({"kubelet": {"noSuchField": 1}}, "ValidationSucceeded", "InvalidKubeletConfiguration"),
        ({"kubelet": {"registerWithTaints": []}}, "ValidationSucceeded", "InvalidKubeletConfiguration"),
        ({"kubelet": {"maxPods": "vcpus * 2"}}, "ValidationSucceeded", "KubeletExpressionsDisabled"),
        (
            {"amiSelectorTerms": [{"alias": "bottlerocket@latest"}], "kubelet": {"podsPerCore": 2}},
            "ValidationSucceeded",
            "UnsupportedKubeletConfiguration",
        ),
        ({"instanceProfile": "none", "role": None}, "Ready", "Ready"),
        (
            {"amiSelectorTerms": [{"alias": "bottlerocket@latest"}], "userData": "not = [toml"},
            "ValidationSucceeded",
            "UserDataInvalid",
        ),
        ({"userData": "#!/bin/bash\n" + "# filler\n" * 3000}, "ValidationSucceeded", "UserDataSizeLimitExceeded"),
        ({"cpuOptions": {"nestedVirtualization": "enabled"}}, "ValidationSucceeded", "NoCompatibleInstanceTypes"),
    ],
)
async def test_what_cannot_be_resolved_is_a_condition_with_its_reason(
    stage: Stage, change: dict[str, Any], kind: str, reason: str
) -> None:
    """AWS-30 to AWS-45; a missing role, user data that cannot be merged and a class without types are conditions, too,
    and publish a notice."""
    stage.patch(checkInstanceProfiles="instanceProfile" not in change)  # someone else has made that one
    await stage.with_class(**change)

    assert stage.classes.condition(kind) == ("True" if kind == "Ready" else "False", reason)
    if kind != "Ready":
        assert stage.classes.condition("Ready") == ("False", "UnhealthyDependents")
        assert reason in stage.notices.reasons()


ROLE = "KarpenterNodeRole-dovetail"
ADD_ROLE = {"op": "AddRoleToInstanceProfile"}


async def profile_of(stage: Stage, name: str) -> tuple[str, list[str]]:
    """Its id, which is another once it was deleted and made again, and the roles in it."""
    found = (await stage.adapter.calls.call("iam", "GetInstanceProfile", InstanceProfileName=name))["InstanceProfile"]
    return found["InstanceProfileId"], [each["RoleName"] for each in found["Roles"]]


@pytest.mark.parametrize(
    ("away", "back", "reason"),
    [
        ({"roles": []}, {"roles": [ROLE]}, "RoleNotFound"),
        ({"fail": [{**ADD_ROLE, "code": "AccessDenied", "status": 403}]}, {"fail": []}, "ResolutionFailed"),
        ({"fail": [{**ADD_ROLE, "code": "NoSuchEntity", "status": 404}]}, {"fail": []}, "RoleNotFound"),
    ],
)
async def test_the_profile_of_running_nodes_stays_while_its_role_cannot_be_put_in(
    stage: Stage, away: dict[str, Any], back: dict[str, Any], reason: str
) -> None:
    """AWS-38: IAM asks for the role to be taken out before it is deleted, as Terraform does that makes it anew. Without
    the profile no running node has credentials, and one of the same name does not give them back."""
    await stage.with_class()
    name = status(stage)["instanceProfile"]
    before = await profile_of(stage, name)
    await stage.adapter.calls.call(
        "iam", "RemoveRoleFromInstanceProfile", InstanceProfileName=name, RoleName=before[1][0]
    )
    stage.patch(**away)
    later(stage, 2 * 3600.0)
    await stage.with_class(context="another")
    said = (stage.classes.condition("InstanceProfileReady"), status(stage).get("instanceProfile"))
    stage.patch(**back)
    later(stage, 2 * 3600.0 + 61.0)
    await stage.upkeep.keep()

    assert said == (("False", reason), name)
    assert await profile_of(stage, name) == before
    assert stage.classes.condition("InstanceProfileReady")[0] == "True"
    assert stage.calls("DeleteInstanceProfile") == []


@pytest.fixture
async def with_all_rights(tmp_path: Path) -> AsyncIterator[Stage]:
    """A stage on which the rights of callers are not looked at: the worker's own may not pass another role."""
    server, classes = CloudServer.start(tmp_path), ClassStore()
    adapter = open_adapter(server, classes)
    yield Stage(server=server, classes=classes, adapter=adapter, since=0)
    await adapter.close()
    server.stop()


async def test_a_profile_into_which_a_person_has_put_another_role_stays_and_is_named(with_all_rights: Stage) -> None:
    """AWS-38."""
    stage = with_all_rights
    await stage.with_class()
    name = status(stage)["instanceProfile"]
    identity, _ = await profile_of(stage, name)
    call = stage.adapter.calls.call
    await call("iam", "RemoveRoleFromInstanceProfile", InstanceProfileName=name, RoleName=ROLE)
    stage.patch(roles=[ROLE, "Another"])
    await call("iam", "AddRoleToInstanceProfile", InstanceProfileName=name, RoleName="Another")
    later(stage, 3600.0)

    await stage.with_class(context="another")

    assert stage.classes.condition("InstanceProfileReady") == ("False", "ResolutionFailed")
    said = next(each["message"] for each in status(stage)["conditions"] if each["type"] == "InstanceProfileReady")
    assert all(each in said for each in (name, "Another", ROLE))
    assert await profile_of(stage, name) == (identity, ["Another"])


@pytest.mark.parametrize("code", ["NoSuchEntity", "AccessDenied"])
async def test_a_profile_that_was_just_made_for_nothing_is_taken_back(stage: Stage, code: str) -> None:
    """AWS-38."""
    stage.patch(fail=[{**ADD_ROLE, "code": code, "status": 404 if code == "NoSuchEntity" else 403}])

    await stage.with_class()

    (made,), (gone,) = stage.calls("CreateInstanceProfile"), stage.calls("DeleteInstanceProfile")
    assert made["input"]["InstanceProfileName"] == gone["input"]["InstanceProfileName"]


async def test_a_profile_that_iam_does_not_show_yet_says_nothing_of_the_role(stage: Stage) -> None:
    """AWS-38: under one code IAM says that the role is missing and that the profile is, which it shows seconds after it
    was made."""
    code = {"code": "NoSuchEntity", "status": 404}
    stage.patch(fail=[{**ADD_ROLE, **code}, {"op": "GetInstanceProfile", **code}])
    await stage.with_class()
    first = stage.classes.condition("InstanceProfileReady")
    stage.patch(fail=[])
    later(stage, 10.0)
    await stage.upkeep.keep()

    assert first[0] == "Unknown"
    assert stage.classes.condition("InstanceProfileReady")[0] == "True"
    assert stage.calls("DeleteInstanceProfile") == []


async def test_a_windows_class_whose_pools_allow_arm_alone_is_refused_before_the_first_launch(
    stage: Stage,
) -> None:
    """AWS-50, AWS-83: upstream creates the claim, which then fails for ever."""
    arm = ClaimTemplate(node_class=REFERENCE, requirements=(one_of("kubernetes.io/arch", "arm64"),))
    stage.pools.append(NodePool(name="arm", uid="arm", template=arm))

    await stage.with_class(amiSelectorTerms=[{"alias": "windows2022@latest"}])

    assert stage.classes.condition("ValidationSucceeded") == ("False", "NoCompatibleInstanceTypes")
    assert "NoCompatibleInstanceTypes" in stage.notices.reasons()


async def test_every_event_has_a_reason_and_the_name_of_its_object(stage: Stage) -> None:
    """AWS-168: upstream leaves one or the other empty."""
    await stage.with_class(role="NoSuchRole", subnetSelectorTerms=[{"id": "subnet-none"}])
    await stage.with_class(amiSelectorTerms=[{"alias": "al2@latest"}])
    stage.claims.append(a_claim_of_ec2())
    stage.classes.delete()
    await stage.upkeep.keep()

    assert len(stage.notices.published) >= 4
    assert all(notice.reason and notice.name == "default" and notice.uid for notice in stage.notices.published)


async def test_an_error_of_ssm_is_not_taken_for_a_missing_parameter(stage: Stage) -> None:
    stage.patch(fail=[{"op": "GetParameter", "code": "AccessDeniedException", "status": 400}])

    await stage.with_class()

    assert stage.classes.condition("AMIsReady") == ("False", "ResolutionFailed")


async def test_a_missing_parameter_is_asked_for_once(stage: Stage) -> None:
    """AWS publishes no NVIDIA image for arm64."""
    await stage.with_class()
    await stage.with_class(tags={"a": "b"})

    missing = [call for call in stage.calls("GetParameter") if "arm64/nvidia" in call["input"]["Name"]]
    assert len(missing) == 1


@pytest.mark.parametrize("operation", ["CreateLaunchTemplate", "CreateFleet", "RunInstances"])
async def test_a_right_that_is_missing_is_found_before_the_first_launch(stage: Stage, operation: str) -> None:
    """AWS-42, AWS-43."""
    stage.patch(fail=[{"op": operation, "code": "UnauthorizedOperation", "status": 403}])

    await stage.with_class()

    assert stage.classes.condition("ValidationSucceeded") == ("False", f"{operation}AuthCheckFailed")


async def test_throttling_gives_no_verdict_and_is_tried_again(stage: Stage) -> None:
    stage.patch(fail=[{"op": "CreateFleet", "dryRun": True, "code": "RequestLimitExceeded", "status": 503, "times": 1}])
    stage.classes.apply()

    await stage.upkeep.keep()
    before = stage.classes.condition("ValidationSucceeded")
    stage.upkeep._due["default"].at = 0.0
    await stage.upkeep.keep()

    assert (before[0], stage.classes.condition("ValidationSucceeded")[0]) == ("Unknown", "True")


THROTTLED = {"code": "RequestLimitExceeded", "status": 503}


@pytest.mark.parametrize(
    ("fault", "change"),
    [
        ({"op": "DescribeSecurityGroups", **THROTTLED}, {"securityGroupSelectorTerms": [{"tags": {"team": "blue"}}]}),
        ({"op": "RunInstances", "dryRun": True, **THROTTLED}, {"userData": "#!/bin/sh"}),
        ({"op": "RunInstances", "dryRun": True, "code": "InvalidParameterCombination"}, {"userData": "#!/bin/sh"}),
    ],
)
async def test_a_change_that_could_not_be_looked_at_is_neither_ready_nor_launched(
    stage: Stage, fault: dict[str, Any], change: dict[str, Any]
) -> None:
    """AWS-27, AWS-42: the verdict of before the change says nothing of it, and its groups may be what was changed."""
    await stage.with_class()
    stage.patch(fail=[fault])
    await stage.with_class(**change)

    ready = next(each for each in status(stage)["conditions"] if each["type"] == "Ready")
    said = next(each["message"] for each in status(stage)["conditions"] if "latest change" in each["message"])
    assert (ready["status"], ready["observedGeneration"]) == ("Unknown", 1)
    assert fault["code"] in said
    assert isinstance(await stage.launch(a_claim_of_ec2()), ClassNotReady)

    stage.patch(fail=[])
    later(stage, 61.0)
    await stage.upkeep.keep()
    ready = next(each for each in status(stage)["conditions"] if each["type"] == "Ready")
    assert (ready["status"], ready["observedGeneration"]) == ("True", 2)
    await stage.launched(a_claim_of_ec2())


async def test_a_part_that_cannot_be_looked_at_keeps_the_verdict_on_what_is_unchanged(stage: Stage) -> None:
    await stage.with_class()
    stage.patch(fail=[{"op": "DescribeSecurityGroups", **THROTTLED}])
    stage.classes.objects["default"]["metadata"]["annotations"]["example.com/look"] = "again"
    groups = stage.upkeep._parts.resolution._resources.groups
    groups._clock = lambda: time.time() + 600
    await stage.upkeep.keep()

    assert len(stage.calls("DescribeSecurityGroups")) > 1
    assert stage.classes.condition("Ready")[0] == "True"
    await stage.launched(a_claim_of_ec2())


async def test_deleting_a_class_waits_for_its_claims_and_leaves_nothing_behind(stage: Stage) -> None:
    """AWS-46."""
    await stage.with_class()
    stage.claims.append(a_claim_of_ec2())
    stage.classes.delete()

    await stage.upkeep.keep()
    assert "default" in stage.classes.objects
    assert stage.notices.reasons() == ["WaitingOnNodeClaimTermination"]

    stage.claims.clear()
    await stage.upkeep.keep()
    assert stage.classes.objects == {}
    assert stage.notices.reasons() == ["WaitingOnNodeClaimTermination", "Finalized"]
    assert stage.notices.published[-1].message == "Finalized karpenter.k8s.aws/termination"
    assert await stage.adapter.calls.every("iam", "ListInstanceProfiles", "InstanceProfiles") == []
    assert await stage.adapter.calls.every("ec2", "DescribeLaunchTemplates", "LaunchTemplates") == []
