"""The rates of an account: buckets for calls and for instances, and what a call above them is answered."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from testbed.cloud.control.buckets import ORDINARY_ACCOUNT
from testbed.cloud.server import CloudServer
from tests.testbed.aws_clients import Aws, launched

POOL = ("m5.large", "subnet-0a")


def rates(**limits: tuple[float, float]) -> dict[str, Any]:
    return {key: {"burst": burst, "perSecond": second} for key, (burst, second) in limits.items()}


def test_the_instances_of_launches_share_a_bucket_whatever_the_number_of_calls(aws: Aws) -> None:
    """EC2 counts both: ten instances may be ten calls or one, and the eleventh is refused either way."""
    aws.patch_world(rateLimits=rates(CreateFleet=(50, 0), instances=(10, 0)))
    aws.template()

    first = aws.fleet(POOL, count=7)
    with pytest.raises(ClientError) as refused:
        aws.fleet(POOL, count=4)
    last = aws.fleet(POOL, count=3)

    assert (len(launched(first)), len(launched(last))) == (7, 3)
    assert refused.value.response["Error"]["Code"] == "RequestLimitExceeded"
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 503
    assert len(aws.server.instances()) == 10


def test_each_description_has_a_bucket_of_its_own(aws: Aws) -> None:
    aws.patch_world(rateLimits={"Describe*": {"burst": 1, "perSecond": 0}})

    aws.ec2.describe_subnets()
    aws.ec2.describe_instances()
    with pytest.raises(ClientError):
        aws.ec2.describe_subnets()


@pytest.fixture
def ordinary(tmp_path: Path) -> Iterator[Aws]:
    server = CloudServer.start(tmp_path, options=("--ordinary-rates",))
    yield Aws(server)
    server.stop()


def test_a_server_with_ordinary_rates_takes_fifty_fleets_at_once(ordinary: Aws) -> None:
    ordinary.template()
    answers: list[int | str] = []
    for _ in range(80):
        try:
            answers.append(len(launched(ordinary.fleet(POOL))))
        except ClientError as refused:
            answers.append(refused.response["Error"]["Code"])

    assert answers[:50] == [1] * 50
    assert "RequestLimitExceeded" in answers[50:]
    assert ordinary.server.control("GET", "world")["rateLimits"] == ORDINARY_ACCOUNT
