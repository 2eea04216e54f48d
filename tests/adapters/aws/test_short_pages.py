"""AWS may give fewer than it was asked for, and says with a token that there is more: every list is read to its end."""

from tests.adapters.aws.conftest import Stage
from worlds.aws import a_claim_of_ec2

PAGED = {"DescribeInstanceTypes", "DescribeInstanceTypeOfferings", "DescribeSubnets", "DescribeSecurityGroups"}
TYPES = ["m5.large", "m5.xlarge", "c5.large"]  # so that a page for each takes no longer than it must


async def test_pages_of_one_say_the_same_as_long_ones(stage: Stage) -> None:
    stage.patch(types=TYPES, pageSize=1)

    await stage.adapter.check()
    await stage.with_class()

    status = stage.classes.objects["default"]["status"]
    region = await stage.adapter.offerings.sources.region_types.region()
    assert set(region.types) == set(TYPES)
    assert {each["id"] for each in status["subnets"]} == {"subnet-0a", "subnet-0b", "subnet-0c"}
    assert len(status["securityGroups"]) == 2 and status["amis"]
    assert {each for each in PAGED if any("NextToken" in call["input"] for call in stage.calls(each))} == PAGED
    assert await stage.launched(a_claim_of_ec2())
