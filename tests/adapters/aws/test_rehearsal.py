"""Dry runs before an installation: each call that a launch needs, and nothing is made."""

from typing import Any, cast

import pytest

from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.failures import Denied
from dovetail.adapters.aws.rehearsal import AwsRehearsal
from dovetail.model.values.json import Json
from dovetail.ports.failures import Forbidden
from tests.adapters.aws.conftest import Stage


async def test_a_refusal_is_told_from_a_yes_and_nothing_is_made(stage: Stage) -> None:
    stage.patch(fail=[{"op": "CreateFleet", "code": "UnauthorizedOperation", "status": 403, "times": 1}])

    found = {each.call: each.allowed for each in await AwsRehearsal(stage.adapter.calls, "dovetail")()}

    assert list(found) == [
        *("ec2:CreateLaunchTemplate", "ec2:CreateFleet", "ec2:RunInstances"),
        *("ec2:CreateTags", "ec2:TerminateInstances"),
    ]
    assert found["ec2:CreateFleet"] is False
    assert False not in {allowed for call, allowed in found.items() if call != "ec2:CreateFleet"}
    assert await stage.adapter.cloud.list_instances() == ()


async def test_with_the_rights_of_another_cluster_each_launch_is_refused(stage: Stage) -> None:
    """The server refuses what the shipped policies do not allow; the tags are of a cluster that they are not for."""
    found = {each.call: each for each in await AwsRehearsal(stage.adapter.calls, "demo")()}

    for call in ("ec2:CreateLaunchTemplate", "ec2:CreateFleet", "ec2:RunInstances"):
        assert found[call].allowed is False, call
        assert "UnauthorizedOperation" in found[call].said


class Answering:
    """Dry runs of terminations look at the ids first; IAM says what the policies come to, or that one may not ask."""

    def __init__(self, decision: str) -> None:
        self.decision = decision
        self.asked: list[Json] = []

    async def dry_run(self, operation: str, **parameters: Any) -> Denied | None:
        unsaid = operation == "TerminateInstances"
        return Denied(code="InvalidInstanceID.NotFound", message="no such instance") if unsaid else None

    async def call(self, service: str, operation: str, **parameters: Any) -> Json:
        if operation == "GetCallerIdentity":
            return {"Arn": "arn:aws:sts::111122223333:assumed-role/Installer/alice"}
        self.asked.append(parameters)
        if not self.decision:
            raise Forbidden(f"{service}:{operation}", "not authorized")
        return {"EvaluationResults": [{"EvalActionName": "ec2:TerminateInstances", "EvalDecision": self.decision}]}


@pytest.mark.parametrize(("decision", "allowed"), [("allowed", True), ("implicitDeny", False), ("", None)])
async def test_what_a_dry_run_does_not_say_is_asked_of_iam_where_the_caller_may(
    decision: str, allowed: bool | None
) -> None:
    calls = Answering(decision)

    found = {each.call: each for each in await AwsRehearsal(cast(Calls, calls), "demo")()}

    [asked] = calls.asked
    assert asked["PolicySourceArn"] == "arn:aws:iam::111122223333:role/Installer"
    assert asked["ActionNames"] == ["ec2:TerminateInstances"]
    tags = {each["ContextKeyName"]: each["ContextKeyValues"] for each in asked["ContextEntries"]}
    assert tags["aws:ResourceTag/kubernetes.io/cluster/demo"] == ["owned"]
    assert found["ec2:TerminateInstances"].allowed is allowed
    assert [each.allowed for call, each in found.items() if call != "ec2:TerminateInstances"] == [True] * 4
