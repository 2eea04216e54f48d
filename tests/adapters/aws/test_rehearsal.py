"""Dry runs before an installation: each call that a launch needs, and nothing is made."""

from dovetail.adapters.aws.rehearsal import AwsRehearsal
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
