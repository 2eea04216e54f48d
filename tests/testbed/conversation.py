"""One call of every operation that the test bed answers, with all that the product says and answers worth a look."""

import json
from typing import Any

from dovetail.model.values.json import Json
from tests.testbed.aws_clients import Aws, listed

PROFILE = "node-profile"
RESERVATION = {"id": "cr-0a", "type": "m5.large", "zone": "us-west-2a", "available": 3}
GROUP = {"id": "pg-0a", "name": "spread-out", "strategy": "spread"}
DATA: Json = {
    "BlockDeviceMappings": [
        {"DeviceName": "/dev/xvda", "Ebs": {"VolumeType": "gp3", "VolumeSize": 31, "KmsKeyId": "a-key", "Iops": 3001}},
        {"DeviceName": "/dev/xvdb", "Ebs": {"VolumeSize": 32, "SnapshotId": "snap-0123456789abcdef0"}},
    ],
    "CapacityReservationSpecification": {
        "CapacityReservationPreference": "capacity-reservations-only",
        "CapacityReservationTarget": {"CapacityReservationId": "cr-0a"},
    },
    "CpuOptions": {"NestedVirtualization": "enabled"},
    "MetadataOptions": {
        "HttpTokens": "required",
        "HttpEndpoint": "enabled",
        "HttpProtocolIpv6": "disabled",
        "InstanceMetadataTags": "disabled",
    },
    "NetworkInterfaces": [{"DeviceIndex": 0, "InterfaceType": "interface", "Groups": ["sg-01"]}],
    "Placement": {"GroupId": "pg-0a", "Tenancy": "default"},
    "TagSpecifications": [{"ResourceType": "network-interface", "Tags": listed({"whose": "ours"})}],
}
OVERRIDE: Json = {
    "InstanceType": "m5.large",
    "SubnetId": "subnet-0a",
    "AvailabilityZone": "us-west-2a",
    "ImageId": "ami-0a12023a",
    "Priority": 0.5,
}


def hold(aws: Aws) -> dict[tuple[str, str], Json]:
    """Every operation's answer, (service, operation) → answer; of what is called more than once, the last."""
    answers: dict[tuple[str, str], Json] = {}

    def call(service: str, operation: str, **parameters: Any) -> Any:
        method = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in operation).lstrip("_")
        answers[service, operation] = getattr(aws.client(service), method)(**parameters)
        return answers[service, operation]

    zone = {"zoneId": "usw2-az1"}
    status = {"filter": "event.code", "body": {"InstanceId": "$INSTANCE", "Events": [{"Code": "instance-retirement"}]}}
    aws.patch_world(runSeconds=0)
    aws.patch_world(reservations=[RESERVATION], placementGroups=[GROUP], zonalShift=[zone], instanceStatus=[status])
    role = aws.server.control("GET", "world")["roles"][0]
    path = {"InstanceProfileName": PROFILE}
    call("iam", "CreateInstanceProfile", **path, Path="/karpenter/us-west-2/", Tags=listed({"mine": "yes"}))
    call("iam", "AddRoleToInstanceProfile", **path, RoleName=role)
    call("iam", "GetInstanceProfile", **path)
    call("iam", "ListInstanceProfiles", PathPrefix="/karpenter/")

    tags = listed({"Name": "a-node", "team": "blue"})
    aws.template(**DATA)
    call(
        "ec2",
        "CreateLaunchTemplate",
        LaunchTemplateName="another",
        LaunchTemplateData=DATA,
        TagSpecifications=[{"ResourceType": "launch-template", "Tags": tags}],
        ClientToken="a-template-of-mine",
    )
    call("ec2", "DescribeLaunchTemplates", LaunchTemplateNames=["another"])
    call("ec2", "DescribeLaunchTemplateVersions", LaunchTemplateName="another")
    call("ec2", "DeleteLaunchTemplate", LaunchTemplateName="another")
    specified = [{"ResourceType": kind, "Tags": tags} for kind in ("instance", "volume")]
    config = {"LaunchTemplateSpecification": {"LaunchTemplateName": "template", "Version": "$Latest"}}
    fleet = {
        "Type": "instant",
        "ClientToken": "a-claim-of-mine",
        "TagSpecifications": specified,
        "TargetCapacitySpecification": {"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"},
    }
    overrides = [OVERRIDE, {**OVERRIDE, "InstanceType": "m5.metal", "ImageId": "ami-0a12023b"}]
    made = call("ec2", "CreateFleet", **fleet, LaunchTemplateConfigs=[{**config, "Overrides": overrides}])
    (instance,) = made["Instances"][0]["InstanceIds"]
    refused = {
        **fleet,
        "ClientToken": "another-claim",
        "LaunchTemplateConfigs": [{**config, "Overrides": overrides[1:]}],
    }
    assert call("ec2", "CreateFleet", **refused)["Errors"]
    named = {"LaunchTemplate": {"LaunchTemplateName": "template"}, "InstanceType": "m5.large", "SubnetId": "subnet-0a"}
    call(
        "ec2", "RunInstances", **named, MinCount=1, MaxCount=1, TagSpecifications=specified, ClientToken="a-run-of-mine"
    )
    call(
        "ec2", "CreateTags", Resources=[instance, "subnet-0a", "sg-01", "ami-0a12023a"], Tags=listed({"later": "a-tag"})
    )
    call("ec2", "DescribeInstances", InstanceIds=[instance])
    call("ec2", "DescribeVolumes", Filters=[{"Name": "attachment.instance-id", "Values": [instance]}])
    call("ec2", "DescribeNetworkInterfaces", Filters=[{"Name": "attachment.instance-id", "Values": [instance]}])
    for each in ("instanceType", "groupSet", "userData", "disableApiTermination"):
        call("ec2", "DescribeInstanceAttribute", InstanceId=instance, Attribute=each)
    call("ec2", "DescribeInstanceStatus", Filters=[{"Name": "event.code", "Values": ["instance-retirement"]}])
    call("ec2", "DeleteTags", Resources=[instance], Tags=[{"Key": "later"}])
    call("ec2", "DescribeAvailabilityZones")
    call("ec2", "DescribeSubnets", SubnetIds=["subnet-0a"])
    call("ec2", "DescribeSecurityGroups", GroupIds=["sg-01"])
    call("ec2", "DescribeImages", ImageIds=["ami-0a12023a"])
    call("ec2", "DescribeInstanceTypes", InstanceTypes=["m5.large"])
    call("ec2", "DescribeInstanceTypeOfferings", LocationType="availability-zone")
    call("ec2", "DescribeSpotPriceHistory", InstanceTypes=["m5.large"], ProductDescriptions=["Linux/UNIX"])
    call("ec2", "DescribePlacementGroups", GroupIds=["pg-0a"])
    end = {"EndDate": "2030-01-01T00:00:00Z", "EndDateType": "limited"}
    open_one = {"InstanceType": "m5.large", "InstancePlatform": "Linux/UNIX", "AvailabilityZone": "us-west-2b"}
    open_one["InstanceMatchCriteria"] = "open"
    kind = [{"ResourceType": "capacity-reservation", "Tags": tags}]
    bought = call("ec2", "CreateCapacityReservation", **open_one, **end, InstanceCount=2, TagSpecifications=kind)
    identity = bought["CapacityReservation"]["CapacityReservationId"]
    call("ec2", "DescribeCapacityReservations", CapacityReservationIds=[identity])
    call("ec2", "CancelCapacityReservation", CapacityReservationId=identity)
    call("ec2", "RebootInstances", InstanceIds=[instance])
    call("ec2", "TerminateInstances", InstanceIds=[instance])

    names = sorted(aws.server.control("GET", "world")["ssm"])
    call("ssm", "GetParameter", Name=names[0])
    call("ssm", "GetParameters", Names=[names[0], "/none"])
    call("ssm", "GetParametersByPath", Path="/aws/service/", Recursive=True)
    arn = call("eks", "DescribeCluster", name="dovetail")["cluster"]["arn"]
    call("arc-zonal-shift", "GetManagedResource", resourceIdentifier=arn)
    call("pricing", "GetProducts", ServiceCode="AmazonEC2", MaxResults=5)
    url = call("sqs", "GetQueueUrl", QueueName="dovetail")["QueueUrl"]
    call("sqs", "SendMessage", QueueUrl=url, MessageBody=json.dumps({"source": "a-test"}))
    receipt = call("sqs", "ReceiveMessage", QueueUrl=url)["Messages"][0]["ReceiptHandle"]
    call("sqs", "DeleteMessageBatch", QueueUrl=url, Entries=[{"Id": "0", "ReceiptHandle": receipt}])
    call("sqs", "DeleteMessage", QueueUrl=url, ReceiptHandle=receipt)
    call("sts", "GetCallerIdentity")
    call("iam", "RemoveRoleFromInstanceProfile", **path, RoleName=role)
    call("iam", "DeleteInstanceProfile", **path)
    return answers
