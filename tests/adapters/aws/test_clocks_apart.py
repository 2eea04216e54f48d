"""AWS's clock is not the worker's: a few minutes change nothing, and what AWS refuses for it is told in its words."""

import pytest

from dovetail.ports.failures import Unauthenticated
from tests.adapters.aws.conftest import Stage
from worlds.aws import a_claim_of_ec2


@pytest.mark.parametrize("ahead", [600, -600])
async def test_some_minutes_change_nothing_of_a_launch_and_an_end(stage: Stage, ahead: int) -> None:
    await stage.with_class()
    stage.patch(clockAhead=ahead)
    claim = a_claim_of_ec2()
    instance = await stage.launched(claim)
    cloud = stage.adapter.cloud

    found = await cloud.find(claim_uid=claim.uid)
    (listed,) = await cloud.list_instances()

    assert found is not None and found.provider_id == listed.provider_id == instance.provider_id
    assert await cloud.terminate(instance.provider_id) == "terminating"


async def test_an_instance_that_is_not_shown_yet_is_not_gone_though_the_clock_of_aws_is_behind(stage: Stage) -> None:
    await stage.with_class()
    stage.patch(clockAhead=-600, visibleAfter=3600)
    claim = a_claim_of_ec2()
    instance = await stage.launched(claim)

    assert await stage.adapter.cloud.find(provider_id=instance.provider_id) is not None


async def test_a_clock_that_is_wrong_by_more_than_aws_takes_is_named(stage: Stage) -> None:
    await stage.with_class()
    stage.patch(clockAhead=1000)

    with pytest.raises(Unauthenticated, match=r"or not the time of our clock \(RequestExpired"):
        await stage.adapter.cloud.list_instances()
