"""The form of a fleet, written quickly, is the SDK's own, field by field."""

from typing import Any
from urllib.parse import parse_qsl

import boto3
import pytest
from botocore.config import Config

from dovetail.adapters.aws.large_requests import speed_up

REQUEST: dict[str, Any] = {
    "Type": "instant",
    "ClientToken": "uid/1",
    "TargetCapacitySpecification": {"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "spot"},
    "SpotOptions": {"AllocationStrategy": "price-capacity-optimized"},
    "Context": "a context & more",
    "LaunchTemplateConfigs": [
        {
            "LaunchTemplateSpecification": {"LaunchTemplateName": f"karpenter.k8s.aws/{number}", "Version": "$Latest"},
            "Overrides": [
                {
                    "InstanceType": name,
                    "SubnetId": "subnet-1",
                    "AvailabilityZone": "us-west-2a",
                    "ImageId": "ami-1",
                    "Priority": price,
                }
                for name, price in (("m5.large", 0.096), ("c5.large", 1e-7), ("u-6tb1.56xlarge", 46.0))
            ],
        }
        for number in (1, 2)
    ],
    "TagSpecifications": [
        {"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": "größe + 1%"}, {"Key": "a/b", "Value": ""}]}
    ],
}


class _Sent(Exception):
    """What would have been sent."""

    def __init__(self, body: bytes) -> None:
        super().__init__(body)
        self.body = body


def _client() -> Any:
    return boto3.client(
        "ec2",
        region_name="us-west-2",
        aws_access_key_id="an-id",
        aws_secret_access_key="a-secret",
        config=Config(parameter_validation=False),
    )


def _body(*, quick: bool) -> dict[str, str]:
    client = _client()
    if quick:
        speed_up(client)

    def stop(request: Any, **_: Any) -> None:
        raise _Sent(request.body if isinstance(request.body, bytes) else request.body.encode())

    client.meta.events.register("before-send.ec2.CreateFleet", stop)
    try:
        client.create_fleet(**REQUEST)
    except _Sent as sent:
        pairs = parse_qsl(sent.body.decode(), keep_blank_values=True, strict_parsing=True)
        assert len(dict(pairs)) == len(pairs), "a field stands there twice"
        return dict(pairs)
    raise AssertionError("nothing was sent")


def test_the_quick_form_says_what_the_sdk_would_say() -> None:
    """AWS-88."""
    assert _body(quick=True) == _body(quick=False)


def test_only_the_large_call_is_written_so() -> None:
    """Another call of the same client keeps the SDK's way."""
    client = _client()
    speed_up(client)
    seen: list[str] = []

    def stop(request: Any, **_: Any) -> None:
        seen.append(request.body)
        raise _Sent(b"")

    client.meta.events.register("before-send.ec2.DescribeSubnets", stop)
    with pytest.raises(_Sent):
        client.describe_subnets(SubnetIds=["subnet-1"])
    assert dict(parse_qsl(seen[0]))["SubnetId.1"] == "subnet-1"
