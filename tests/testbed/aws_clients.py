"""How tests call the AWS server: boto3 without retries, and the few calls that every test makes."""

import base64
from contextlib import suppress
from typing import Any

import boto3
from botocore.config import Config

from dovetail.model.values.json import Json
from testbed.cloud.server import CloudServer

ONCE = Config(retries={"total_max_attempts": 1}, read_timeout=10, connect_timeout=5)
TEMPLATE: Json = {
    "ImageId": "ami-0a12023a",
    "UserData": base64.b64encode(b"#!/bin/bash\necho hello\n").decode(),
    "IamInstanceProfile": {"Name": "node-profile"},
    "NetworkInterfaces": [{"DeviceIndex": 0, "Groups": ["sg-01", "sg-02"]}],
    "BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 30, "VolumeType": "gp3"}}],
}


class Aws:
    """Clients of one server, and its ledger from the moment when they were made."""

    def __init__(self, server: CloudServer, config: Config = ONCE) -> None:
        self.server = server
        self._config = config
        self.ec2, self.iam = self.client("ec2"), self.client("iam")
        self._since = server.control("GET", "ledger/last")

    def client(self, service: str) -> Any:
        make: Any = boto3.client  # its stubs want a literal name
        return make(
            service,
            endpoint_url=self.server.endpoint,
            region_name="us-west-2",
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
            config=self._config,
        )

    def impatient(self, seconds: float) -> "Aws":
        """The same clients, which wait for an answer no longer than this."""
        return Aws(self.server, ONCE.merge(Config(read_timeout=seconds)))

    def patch_world(self, **change: Any) -> None:
        self.server.control("PATCH", "world", change)

    def calls(self, operation: str) -> list[Json]:
        return self.server.calls(operation, self._since)

    def template(self, name: str = "template", **data: Any) -> str:
        with suppress(self.iam.exceptions.EntityAlreadyExistsException):
            self.iam.create_instance_profile(InstanceProfileName="node-profile")
        self.ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData={**TEMPLATE, **data})
        return name

    def fleet(self, *pools: tuple[str, str], token: str | None = None, **more: Any) -> Json:
        """An instant fleet over (type, subnet) pools from the template of that name."""
        answer: Json = self.ec2.create_fleet(
            **fleet_request(*pools, **more), **({"ClientToken": token} if token else {})
        )
        return answer

    def states(self) -> dict[str, str]:
        return {
            each["InstanceId"]: each["State"]["Name"]
            for reservation in self.ec2.describe_instances()["Reservations"]
            for each in reservation["Instances"]
        }


def fleet_request(
    *pools: tuple[str, str], count: int = 1, kind: str = "on-demand", tags: Json | None = None, dry: bool = False
) -> Json:
    return {
        "Type": "instant",
        "DryRun": dry,
        "TargetCapacitySpecification": {"TotalTargetCapacity": count, "DefaultTargetCapacityType": kind},
        "LaunchTemplateConfigs": [
            {
                "LaunchTemplateSpecification": {"LaunchTemplateName": "template", "Version": "$Latest"},
                "Overrides": [
                    {"InstanceType": name, "SubnetId": subnet, "AvailabilityZone": f"us-west-2{subnet[-1]}"}
                    for name, subnet in pools
                ],
            }
        ],
        "TagSpecifications": [
            {"ResourceType": "instance", "Tags": [{"Key": key, "Value": value} for key, value in (tags or {}).items()]}
        ],
    }


def prioritized(priorities: dict[tuple[str, str], float | None], strategy: str | None, kind: str = "on-demand") -> Json:
    """A fleet request with a priority for each pool (None: it has none), under a strategy (None: EC2's default)."""
    request = fleet_request(*priorities, kind=kind)
    for override, priority in zip(request["LaunchTemplateConfigs"][0]["Overrides"], priorities.values(), strict=True):
        override |= {} if priority is None else {"Priority": priority}
    options = "SpotOptions" if kind == "spot" else "OnDemandOptions"
    return request | ({options: {"AllocationStrategy": strategy}} if strategy else {})


def listed(tags: dict[str, str]) -> list[Json]:
    """As AWS lists them."""
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def launched(answer: Json) -> list[str]:
    return [each for entry in answer["Instances"] for each in entry["InstanceIds"]]


def refused(answer: Json) -> list[tuple[str, str, str]]:
    """(code, type, zone) of each refused pool, in the order of trying."""
    return [
        (
            each["ErrorCode"],
            each["LaunchTemplateAndOverrides"]["Overrides"]["InstanceType"],
            each["LaunchTemplateAndOverrides"]["Overrides"]["AvailabilityZone"],
        )
        for each in answer["Errors"]
    ]
