"""A launch: from a template merged with an override to an instance in the store.

moto takes only image, user data and tags from a template (MOT-10); here its groups, profile, volumes, reservation and
metadata options arrive too, because drift (AWS-114) and the product's own records are read from them.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from testbed.cloud.http import filters
from testbed.cloud.http.errors import AwsError
from testbed.cloud.json_object import Json
from testbed.cloud.operations import limits
from testbed.cloud.operations.interfaces import check_interfaces
from testbed.cloud.operations.surroundings import root_gib
from testbed.cloud.operations.templates import user_data_of
from testbed.cloud.state.catalogue import architecture
from testbed.cloud.state.cloud import Cloud
from testbed.cloud.state.instances import Instance

_OF_ADDRESSES: Final = frozenset(
    {
        "AssociatePublicIpAddress",
        "ConnectionTrackingSpecification",
        "Ipv4PrefixCount",
        "Ipv6AddressCount",
        "Ipv6PrefixCount",
        "PrimaryIpv6",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Where an instance would run: what insufficient capacity is declared for."""

    type: str
    zone: str
    capacity_type: str
    asked_as: str = ""

    def as_rule(self) -> dict[str, tuple[str, ...]]:
        """Under the names that the world's rules use.

        A reserved launch asks the fleet for on-demand capacity (AWS-88); a rule may call it either.
        """
        return {
            "instanceType": (self.type,),
            "zone": (self.zone,),
            "capacityType": (self.capacity_type, self.asked_as),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One instance wanted: the merged template, where, and under which tags."""

    data: Json
    pool: Pool
    subnet: str
    tags: dict[str, str]
    reservation: str
    volume_tags: dict[str, str] = field(default_factory=dict)
    client_token: str | None = None


def subnet_named(cloud: Cloud, subnet_id: str) -> Json:
    """A declared subnet."""
    for each in cloud.world["subnets"]:
        if each["id"] == subnet_id:
            found: Json = each
            return found
    text = f"The subnet ID '{subnet_id}' does not exist"
    raise limits.unknown_id(subnet_id, AwsError("InvalidSubnetID.NotFound", text))


def free_addresses(cloud: Cloud, subnet: Json) -> int:
    """Declared free addresses less one per live instance."""
    used = sum(1 for each in cloud.instances.live() if each.subnet == subnet["id"])
    return max(0, int(subnet["free"]) - used)


def subnet_for(cloud: Cloud, data: Json, zone: str | None) -> Json:
    """The subnet that the request names, else the first of its zone, else the first of all."""
    interfaces = data.get("NetworkInterfaces") or [{}]
    named = data.get("SubnetId") or interfaces[0].get("SubnetId")
    if named:
        return subnet_named(cloud, named)
    in_zone = [each for each in cloud.world["subnets"] if zone in (None, each["zone"])]
    if not in_zone:
        raise AwsError("InvalidParameterValue", f"No subnet found for the availability zone '{zone}'")
    first: Json = in_zone[0]
    return first


def groups_of(data: Json) -> list[str]:
    """Security groups sit on the interfaces (AWS-86) or, for callers of another habit, on top."""
    groups = [group for each in data.get("NetworkInterfaces") or () for group in each.get("Groups") or ()]
    return list(dict.fromkeys(groups or data.get("SecurityGroupIds") or ()))


def capacity_type_of(data: Json, wanted: str) -> str:
    """on-demand, spot or reserved, as pools are named."""
    reservation = data.get("CapacityReservationSpecification") or {}
    if reservation.get("CapacityReservationPreference") == "capacity-reservations-only":
        return "reserved"
    if wanted in ("capacity-block", "reserved-capacity"):
        return "reserved"
    market = (data.get("InstanceMarketOptions") or {}).get("MarketType")
    return "spot" if "spot" in (wanted, market) else "on-demand"


def reservation_of(data: Json) -> str | None:
    """The reservation that a template aims at."""
    target = (data.get("CapacityReservationSpecification") or {}).get("CapacityReservationTarget") or {}
    found: str | None = target.get("CapacityReservationId")
    return found


def check(cloud: Cloud, order: Order) -> None:
    """Everything that AWS refuses before it looks for capacity; the code decides what a launch means (AWS-90)."""
    facts = cloud.types().get(order.pool.type)
    if facts is None:
        raise AwsError("InvalidInstanceType", f"The instance type '{order.pool.type}' does not exist")
    image = _checked_image(cloud, order.data.get("ImageId"), facts)
    _check_root(image, order.data.get("BlockDeviceMappings") or ())
    known = {each["id"] for each in cloud.world["securityGroups"]}
    for group in groups_of(order.data):
        if group not in known:
            text = f"The security group '{group}' does not exist"
            raise limits.unknown_id(group, AwsError("InvalidGroup.NotFound", text))
    limits.check_groups_are_in_one_place(order.data)
    _check_fabric(order.data.get("NetworkInterfaces") or ())
    check_interfaces(order.pool.type, facts, order.data.get("NetworkInterfaces") or ())
    placement_group(cloud, order.data.get("Placement") or {})
    _check_profile(cloud, (order.data.get("IamInstanceProfile") or {}).get("Name"))
    if order.pool.zone not in cloud.world.zones_of(order.pool.type):
        raise AwsError(
            "Unsupported",
            f"Your requested instance type ({order.pool.type}) is not supported in {order.pool.zone}.",
        )


def placement_group(cloud: Cloud, placement: Json) -> Json:
    """The declared group that a placement names by id or by name; empty if it names none."""
    for key, parameter, code in (
        ("id", "GroupId", "InvalidPlacementGroupId.NotFound"),
        ("name", "GroupName", "InvalidPlacementGroup.Unknown"),
    ):
        named = placement.get(parameter)
        if named:
            for each in cloud.world["placementGroups"]:
                if each[key] == named:
                    found: Json = each
                    return found
            unknown = AwsError(code, f"The placement group '{named}' is unknown")
            raise limits.unknown_id(named, unknown) if key == "id" else unknown
    return {}


def _checked_image(cloud: Cloud, image_id: str | None, facts: Json) -> Json:
    for image in cloud.world["images"]:
        if image["id"] == image_id:
            if image["arch"] != architecture(facts):
                raise AwsError(
                    "InvalidParameterValue",
                    f"The architecture '{architecture(facts)}' of the specified instance type does not match "
                    f"the architecture '{image['arch']}' of the specified AMI.",
                )
            found: Json = image
            return found
    if image_id is None:
        raise AwsError("MissingParameter", "The request must contain the parameter ImageId")
    text = f"The image id '[{image_id}]' does not exist"
    raise limits.unknown_id(image_id, AwsError("InvalidAMIID.NotFound", text))


def _check_root(image: Json, mapped: Sequence[Json]) -> None:
    """A volume that is made from a snapshot holds all of it."""
    least = root_gib(image)
    for each in mapped:
        size = (each.get("Ebs") or {}).get("VolumeSize")
        if each.get("DeviceName") == "/dev/xvda" and size is not None and int(size) < least:
            raise AwsError(
                "InvalidBlockDeviceMapping",
                f"Volume of size {size}GB is smaller than snapshot 'snap-{image['id']}', expect size>= {least}GB",
            )


def _check_fabric(interfaces: Sequence[Json]) -> None:
    """An interface for the fabric alone has no addresses, and no connections that could be followed."""
    for each in interfaces:
        wrong = sorted(each.keys() & _OF_ADDRESSES) if each.get("InterfaceType") == "efa-only" else []
        if wrong:
            raise AwsError("InvalidParameterValue", f"{wrong[0]} is not supported for interfaces of type efa-only")


def _check_profile(cloud: Cloud, profile: str | None) -> None:
    if profile is None or not cloud.world["checkInstanceProfiles"]:
        return
    if not cloud.moto.has_profile(profile, float(cloud.world["profilesAfter"])):
        raise AwsError(
            "InvalidParameterValue", f"Value ({profile}) for parameter iamInstanceProfile.name is invalid. "
            "Invalid IAM Instance Profile name"
        )  # fmt: skip


def check_room(cloud: Cloud, order: Order) -> None:
    """The pool's declared shortage, the subnet's addresses, the reservation's count."""
    rule = cloud.world.pool_rule("ice", order.pool.as_rule())
    if rule is not None:
        raise AwsError(
            rule.get("code", "InsufficientInstanceCapacity"),
            rule.get("message", "There is no capacity available."),
        )
    if free_addresses(cloud, subnet_named(cloud, order.subnet)) < 1:
        raise AwsError(
            "InsufficientFreeAddressesInSubnet",
            f"There are not enough free addresses in subnet '{order.subnet}' to satisfy the requested number "
            "of instances.",
        )
    wanted = reservation_of(order.data)
    if wanted is not None and reservation_room(cloud, wanted) < 1:
        raise AwsError("ReservationCapacityExceeded", "The requested reservation does not have sufficient capacity.")


def reservation_room(cloud: Cloud, reservation_id: str) -> int:
    """How many more instances a reservation takes; -1 where it does not exist."""
    for each in cloud.world["reservations"]:
        if each["id"] == reservation_id:
            used = sum(1 for instance in cloud.instances.live() if instance.capacity_reservation == reservation_id)
            return max(0, int(each["available"]) - used)
    return -1


def launch(cloud: Cloud, order: Order) -> Instance:
    """The effect: one more instance, its boot decided by the world's rules at this moment."""
    now, world, data = time.time(), cloud.world, order.data
    running_at = now + float(world["runSeconds"])
    number = cloud.instances.next_number
    instance = Instance(
        number=number,
        type=order.pool.type,
        zone=order.pool.zone,
        subnet=order.subnet,
        image=data["ImageId"],
        capacity_type=order.pool.capacity_type,
        launched_at=now,
        running_at=running_at,
        joins_at=_joins_at(cloud, order.pool, running_at),
        template=data,
        tags=dict(order.tags),
        volume_tags=filters.tags_for(data.get("TagSpecifications"), "volume") | order.volume_tags,
        security_groups=groups_of(data) or [each["id"] for each in world["securityGroups"]][:1],
        reservation=order.reservation,
        user_data=user_data_of(data),
        profile=(data.get("IamInstanceProfile") or {}).get("Name"),
        client_token=order.client_token,
        spot_request=f"sir-{number:08x}" if order.pool.capacity_type == "spot" else None,
        capacity_reservation=reservation_of(data),
        reservation_specification=data.get("CapacityReservationSpecification"),
    )
    cloud.instances.add(instance)
    return instance


def _joins_at(cloud: Cloud, pool: Pool, running_at: float) -> float | None:
    never: Any = cloud.world["neverJoin"]
    if never is True or (isinstance(never, list) and cloud.world.pool_rule("neverJoin", pool.as_rule()) is not None):
        return None
    boot: Any = cloud.world["bootSeconds"]
    if isinstance(boot, list):
        rule = cloud.world.pool_rule("bootSeconds", pool.as_rule())
        boot = rule["seconds"] if rule is not None else 0
    return running_at + float(boot)


def tags_from(data: Json, specifications: Any) -> dict[str, str]:
    """Instance tags: the template's, overridden by the call's."""
    return filters.tags_for(data.get("TagSpecifications"), "instance") | filters.tags_for(specifications, "instance")
