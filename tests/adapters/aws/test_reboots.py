"""A reboot: of an instance that runs, that is ours, and that is the claim's."""

import pytest

from dovetail.ports.cloud import Instance
from dovetail.ports.failures import Forbidden, Misconfigured, Postponed, Refused
from tests.adapters.aws.conftest import Stage
from tests.waiting import until_answered
from worlds.aws import a_claim_of_ec2


async def running(stage: Stage) -> Instance:
    await stage.with_class()
    found = await stage.launched(a_claim_of_ec2())

    async def runs() -> bool:
        """DescribeInstances shows a new one a moment late, and first as pending."""
        seen = await stage.adapter.cloud.find(provider_id=found.provider_id)
        return seen is not None and seen.state == "running"

    await until_answered(runs)
    return found


async def test_the_instance_of_the_claim_is_rebooted_as_often_as_it_is_asked_for(stage: Stage) -> None:
    """GCR-19: EC2 takes a second request as the first."""
    found = await running(stage)

    for _ in range(2):
        await stage.adapter.cloud.reboot(found.provider_id, found.claim_name)

    assert [call["input"]["InstanceIds"] for call in stage.calls("RebootInstances")] == [
        [found.provider_id.rpartition("/")[2]]
    ] * 2


async def test_an_instance_that_is_another_s_or_does_not_run_is_not_rebooted(stage: Stage) -> None:
    found = await running(stage)
    zone, identity = found.provider_id.split("/")[-2:]
    reboot = stage.adapter.cloud.reboot

    with pytest.raises(Refused, match="it is not rebooted"):
        await reboot(found.provider_id, "another-claim")
    with pytest.raises(Refused, match="names no instance"):
        await reboot("kwok://node", "a")
    with pytest.raises(Misconfigured):
        await reboot(f"aws:///eu-west-1a/{identity}", found.claim_name)
    with pytest.raises(Postponed, match="does not run"):
        await reboot(f"aws:///{zone}/i-0fffffffffffffff0", found.claim_name)
    stage.server.control("PATCH", f"instances/{identity}", {"state": "stopping"})
    with pytest.raises(Postponed, match="does not run"):
        await reboot(found.provider_id, found.claim_name)
    assert stage.calls("RebootInstances") == []


async def test_a_right_that_is_missing_is_named(stage: Stage) -> None:
    found = await running(stage)
    stage.patch(fail=[{"op": "RebootInstances", "code": "UnauthorizedOperation", "status": 403}])

    with pytest.raises(Forbidden, match="ec2:RebootInstances"):
        await stage.adapter.cloud.reboot(found.provider_id, found.claim_name)
