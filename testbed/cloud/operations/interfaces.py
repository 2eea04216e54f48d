"""Network interfaces of instances: as many as the template asks for, no more than the type has."""

from collections.abc import Sequence
from typing import Final

from testbed.cloud.http import filters
from testbed.cloud.http.errors import AwsError
from testbed.cloud.json_object import Json
from testbed.cloud.operations import limits
from testbed.cloud.settings import ACCOUNT
from testbed.cloud.state.cloud import Cloud, Operations, Work
from testbed.cloud.state.instances import Instance

VPC: Final = "vpc-0"
FABRIC: Final = ("efa", "efa-only")
# docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html has both codes; that EC2 says the second of an
# interface for the fabric on a type without one is not documented.
TOO_MANY: Final = "AttachmentLimitExceeded"
NO_FABRIC: Final = "Unsupported"


def check_interfaces(kind: str, facts: Json, interfaces: Sequence[Json]) -> None:
    """What the type has no card, no place or no fabric for."""
    network = facts.get("NetworkInfo") or {}
    cards = {
        int(c.get("NetworkCardIndex", 0)): int(c["MaximumNetworkInterfaces"]) for c in network.get("NetworkCards") or ()
    }
    fabric = [each for each in interfaces if each.get("InterfaceType") in FABRIC]
    if len(fabric) > int((network.get("EfaInfo") or {}).get("MaximumEfaInterfaces") or 0):
        raise AwsError(NO_FABRIC, f"{len(fabric)} EFA interfaces are not supported on {kind}.")
    for index, most in cards.items():
        if sum(int(each.get("NetworkCardIndex") or 0) == index for each in interfaces) > most:
            raise AwsError(TOO_MANY, f"Interface count exceeds the limit for {kind} on network card {index}")
    if beyond := [each for each in interfaces if int(each.get("NetworkCardIndex") or 0) not in cards]:
        raise AwsError(NO_FABRIC, f"{kind} has no network card {beyond[0]['NetworkCardIndex']}.")


def interfaces_of(cloud: Cloud, instance: Instance) -> list[Json]:
    """As DescribeInstances shows them."""
    asked: list[Json] = instance.template.get("NetworkInterfaces") or [{}]
    return [_interface(cloud, instance, number, each) for number, each in enumerate(asked)]


def _interface(cloud: Cloud, instance: Instance, number: int, asked: Json) -> Json:
    described: Json = {
        "NetworkInterfaceId": f"eni-{instance.number:012x}{number:05x}",
        "SubnetId": instance.subnet,
        "VpcId": VPC,
        "OwnerId": ACCOUNT,
        "Status": "in-use",
        "InterfaceType": asked.get("InterfaceType") or "interface",
        "Groups": groups_shown(cloud, asked.get("Groups") or instance.security_groups),
        "ConnectionTrackingConfiguration": asked.get("ConnectionTrackingSpecification"),
        "Attachment": {
            "DeviceIndex": int(asked.get("DeviceIndex") or 0),
            "Status": "attached",
            "NetworkCardIndex": int(asked.get("NetworkCardIndex") or 0),
            "DeleteOnTermination": asked.get("DeleteOnTermination", True),
        },
    }
    if number == 0:
        described |= {"PrivateIpAddress": instance.address, "PrivateDnsName": instance.node_name}
    return described


def groups_shown(cloud: Cloud, ids: Sequence[str]) -> list[Json]:
    """Security groups as an answer lists them."""
    names = {each["id"]: each["name"] for each in cloud.world["securityGroups"]}
    return [{"GroupId": each, "GroupName": names.get(each)} for each in ids]


Attached = tuple[Instance, Json]
FILTERS: Final[dict[str, filters.Values]] = {
    "attachment.instance-id": lambda each: (each[0].id,),
    "group-id": lambda each: tuple(group["GroupId"] for group in each[1]["Groups"]),
    "interface-type": lambda each: (each[1]["InterfaceType"],),
    "network-interface-id": lambda each: (each[1]["NetworkInterfaceId"],),
    "status": lambda each: (each[1]["Status"],),
    "subnet-id": lambda each: (each[0].subnet,),
    "vpc-id": lambda _: (VPC,),
}


def describe(work: Work) -> Json:
    """Of instances that live: an interface goes with its instance."""
    known = [(each, shown) for each in work.cloud.instances.live() for shown in interfaces_of(work.cloud, each)]
    ids = work.params.get("NetworkInterfaceIds") or ()
    there = {shown["NetworkInterfaceId"]: (each, shown) for each, shown in known}
    for identity in ids:
        if identity not in there:
            text = f"The networkInterface ID '{identity}' does not exist"
            raise limits.unknown_id(identity, AwsError("InvalidNetworkInterfaceID.NotFound", text))
    chosen = [there[each] for each in ids] if ids else known
    found = filters.select(chosen, work.params.get("Filters"), FILTERS, lambda each: _tags(each[0]))
    shown, following = work.page(found)
    return filters.paged("NetworkInterfaces", [_alone(each, item) for each, item in shown], following)


def _tags(instance: Instance) -> dict[str, str]:
    return filters.tags_for(instance.template.get("TagSpecifications"), "network-interface")


def _alone(instance: Instance, shown: Json) -> Json:
    """As DescribeNetworkInterfaces shows it."""
    return {
        **shown,
        "Attachment": {**shown["Attachment"], "InstanceId": instance.id, "InstanceOwnerId": ACCOUNT},
        "AvailabilityZone": instance.zone,
        "TagSet": filters.as_tags(_tags(instance)),
    }


OPERATIONS: Operations = {("ec2", "DescribeNetworkInterfaces"): describe}
