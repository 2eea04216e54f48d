"""What an instance is placed among: zones, subnets, security groups, images, reservations, placement groups.

All of it is declared by the world and only described here.
"""

import time

from testbed.cloud.http import filters
from testbed.cloud.http.errors import AwsError
from testbed.cloud.http.wire import moment
from testbed.cloud.json_object import Json
from testbed.cloud.operations import launching, limits
from testbed.cloud.settings import ACCOUNT
from testbed.cloud.state.cloud import Cloud, Operations, Work

VPC = "vpc-0"
AMAZON = "602401143452"  # the account that owns EKS images


def _tags(declared: Json) -> dict[str, str]:
    tags: dict[str, str] = declared.get("tags") or {}
    return tags


def _chosen(work: Work, declared: list[Json], asked: tuple[str, str], unknown: AwsError) -> list[Json]:
    """Those that the call names (by which parameter, and under which key they are declared), else all.

    EC2 refuses the whole call for an unknown name; a world with `unknownIds: nothing` answers with the others, as the
    recorded cloud did.
    """
    parameter, key = asked
    names = work.params.get(parameter)
    if not names:
        return declared
    known = {each[key]: each for each in declared}
    missing = [name for name in names if name not in known]
    if missing and work.world["unknownIds"] == "error":
        refusal = AwsError(unknown.code, unknown.message.format(missing[0]))
        raise refusal if parameter == "GroupNames" else limits.unknown_id(missing[0], refusal)
    return [known[name] for name in names if name in known]


def describe_zones(work: Work) -> Json:
    """Names and ids."""
    region = work.world["region"]
    return {
        "AvailabilityZones": [
            {
                "ZoneName": name,
                "ZoneId": zone_id,
                "RegionName": region,
                "State": "available",
                "ZoneType": "availability-zone",
                "OptInStatus": "opt-in-not-required",
            }
            for name, zone_id in sorted(work.world["zones"].items())
        ]
    }


SUBNET_FILTERS: dict[str, filters.Values] = {
    "subnet-id": lambda each: (each["id"],),
    "availability-zone": lambda each: (each["zone"],),
    "vpc-id": lambda _: (VPC,),
    "state": lambda _: ("available",),
}


def describe_subnets(work: Work) -> Json:
    """With the addresses that are still free."""
    cloud, params = work.cloud, work.params
    unknown = AwsError("InvalidSubnetID.NotFound", "The subnet ID '{}' does not exist")
    declared = _chosen(work, work.world["subnets"], ("SubnetIds", "id"), unknown)
    found = filters.select(declared, params.get("Filters"), SUBNET_FILTERS, _tags)
    shown, following = work.page(found)
    return filters.paged("Subnets", [_subnet(cloud, each) for each in shown], following)


def _subnet(cloud: Cloud, declared: Json) -> Json:
    return {
        "SubnetId": declared["id"],
        "VpcId": VPC,
        "OwnerId": ACCOUNT,
        "State": "available",
        "AvailabilityZone": declared["zone"],
        "AvailabilityZoneId": cloud.world["zones"].get(declared["zone"]),
        "AvailableIpAddressCount": launching.free_addresses(cloud, declared),
        "CidrBlock": declared.get("cidr", "10.1.0.0/16"),
        "MapPublicIpOnLaunch": bool(declared.get("public")),
        "Tags": filters.as_tags(_tags(declared)),
    }


GROUP_FILTERS: dict[str, filters.Values] = {
    "group-id": lambda each: (each["id"],),
    "group-name": lambda each: (each["name"],),
    "vpc-id": lambda _: (VPC,),
}


def describe_groups(work: Work) -> Json:
    """By id, name or tags."""
    params = work.params
    unknown = AwsError("InvalidGroup.NotFound", "The security group '{}' does not exist")
    declared = _chosen(work, work.world["securityGroups"], ("GroupIds", "id"), unknown)
    found = filters.select(declared, params.get("Filters"), GROUP_FILTERS, _tags)
    shown, following = work.page(found)
    described = [
        {
            "GroupId": each["id"],
            "GroupName": each["name"],
            "Description": each["name"],
            "VpcId": VPC,
            "OwnerId": ACCOUNT,
            "Tags": filters.as_tags(_tags(each)),
        }
        for each in shown
    ]
    return filters.paged("SecurityGroups", described, following)


def _owners(image: Json) -> tuple[str, ...]:
    owner = image.get("owner", "self")
    return {"amazon": ("amazon", AMAZON), "self": ("self", ACCOUNT)}.get(owner, (owner,))


IMAGE_FILTERS: dict[str, filters.Values] = {
    "image-id": lambda each: (each["id"],),
    "name": lambda each: (each["name"],),
    "architecture": lambda each: (each["arch"],),
    "state": lambda each: (each.get("state", "available"),),
    "owner-id": lambda each: (_owners(each)[-1],),
    "owner-alias": lambda each: (_owners(each)[0],),
    "is-public": lambda each: (str(each.get("owner") == "amazon").lower(),),
}


def _outdated(image: Json) -> bool:
    deprecated: str = image.get("deprecated") or ""
    return deprecated != "" and deprecated <= moment(time.time())


def describe_images(work: Work) -> Json:
    """Deprecated ones only to their owner, or where the call includes them."""
    params = work.params
    unknown = AwsError("InvalidAMIID.NotFound", "The image id '[{}]' does not exist")
    declared = _chosen(work, work.world["images"], ("ImageIds", "id"), unknown)
    owners = params.get("Owners")
    found = [
        image
        for image in filters.select(declared, params.get("Filters"), IMAGE_FILTERS, _tags)
        if (not owners or set(owners) & set(_owners(image)))
        and (not _outdated(image) or params.get("IncludeDeprecated") or image.get("owner") == "self")
    ]
    shown, following = work.page(found)
    return filters.paged("Images", [_image(each) for each in shown], following)


def root_gib(image: Json) -> int:
    """The size of its root snapshot: 2 GiB, as Amazon Linux has, unless declared otherwise."""
    return int(image.get("rootGiB", 2))


def _image(image: Json) -> Json:
    return {
        "ImageId": image["id"],
        "Name": image["name"],
        "Architecture": image["arch"],
        "CreationDate": image["created"],
        "DeprecationTime": image.get("deprecated"),
        "State": image.get("state", "available"),
        "OwnerId": _owners(image)[-1],
        "ImageOwnerAlias": "amazon" if image.get("owner") == "amazon" else None,
        "ImageType": "machine",
        "Public": image.get("owner") == "amazon",
        "RootDeviceType": "ebs",
        "RootDeviceName": "/dev/xvda",
        "VirtualizationType": "hvm",
        "Hypervisor": "xen",
        "BlockDeviceMappings": [
            {"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": root_gib(image), "VolumeType": "gp3"}}
        ],
        "Tags": filters.as_tags(_tags(image)),
    }


RESERVATION_FILTERS: dict[str, filters.Values] = {
    "instance-type": lambda each: (each["type"],),
    "availability-zone": lambda each: (each["zone"],),
    "state": lambda each: (each.get("state", "active"),),
    "owner-id": lambda each: (each.get("owner", ACCOUNT),),
    "instance-match-criteria": lambda each: (each.get("match", "targeted"),),
}


def _end_of(cloud: Cloud, declared: Json) -> float | None:
    """The moment at which it ends, if it does."""
    ends_in = declared.get("endIn")
    return None if ends_in is None else cloud.reservation_end(str(declared["id"]), float(ends_in))


def describe_reservations(work: Work) -> Json:
    """By ids, or by filters."""
    params = work.params
    unknown = AwsError("InvalidCapacityReservationId.NotFound", "The capacity reservation '{}' does not exist")
    declared = _chosen(work, work.world["reservations"], ("CapacityReservationIds", "id"), unknown)
    found = filters.select(declared, params.get("Filters"), RESERVATION_FILTERS, _tags)
    shown, following = work.page(found)
    return filters.paged("CapacityReservations", [reservation_shown(work.cloud, each) for each in shown], following)


def reservation_shown(cloud: Cloud, declared: Json) -> Json:
    """As EC2 shows it."""
    room = launching.reservation_room(cloud, declared["id"])
    end = _end_of(cloud, declared)
    return {
        "CapacityReservationId": declared["id"],
        "OwnerId": declared.get("owner", ACCOUNT),
        "InstanceType": declared["type"],
        "AvailabilityZone": declared["zone"],
        "AvailabilityZoneId": cloud.world["zones"].get(declared["zone"]),
        "InstancePlatform": "Linux/UNIX",
        "Tenancy": "default",
        "TotalInstanceCount": declared.get("total", declared["available"]),
        "AvailableInstanceCount": room,
        "State": declared.get("state", "active"),
        "InstanceMatchCriteria": declared.get("match", "targeted"),
        "ReservationType": declared.get("rtype", "default"),
        "Interruptible": declared.get("interruptible"),
        "EndDate": end,
        "EndDateType": "unlimited" if end is None else "limited",
        "Tags": filters.as_tags(_tags(declared)),
    }


PLACEMENT_FILTERS: dict[str, filters.Values] = {
    "group-name": lambda each: (each["name"],),
    "group-id": lambda each: (each["id"],),
    "state": lambda each: (each.get("state", "available"),),
    "strategy": lambda each: (each["strategy"],),
}


def describe_placement_groups(work: Work) -> Json:
    """By name, id or filter."""
    params = work.params
    declared: list[Json] = work.world["placementGroups"]
    unknown = AwsError("InvalidPlacementGroup.Unknown", "The Placement Group '{}' is unknown.")
    declared = _chosen(work, declared, ("GroupNames", "name"), unknown)
    unknown = AwsError("InvalidPlacementGroupId.NotFound", "The placement group '{}' does not exist")
    declared = _chosen(work, declared, ("GroupIds", "id"), unknown)
    found = filters.select(declared, params.get("Filters"), PLACEMENT_FILTERS, _tags)
    return {
        "PlacementGroups": [
            {
                "GroupName": each["name"],
                "GroupId": each["id"],
                "State": each.get("state", "available"),
                "Strategy": each["strategy"],
                "PartitionCount": each.get("partitions"),
                "Tags": filters.as_tags(_tags(each)),
            }
            for each in found
        ]
    }


OPERATIONS: Operations = {
    ("ec2", "DescribeAvailabilityZones"): describe_zones,
    ("ec2", "DescribeSubnets"): describe_subnets,
    ("ec2", "DescribeSecurityGroups"): describe_groups,
    ("ec2", "DescribeImages"): describe_images,
    ("ec2", "DescribeCapacityReservations"): describe_reservations,
    ("ec2", "DescribePlacementGroups"): describe_placement_groups,
}
