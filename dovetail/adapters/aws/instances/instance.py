"""An EC2 instance as the port describes it, and what its NodeClaim records of it (AWS-94, AWS-101 to AWS-105).

Labels and sizes come from the type as its class sizes it. If the class is gone or no longer has subnets they are left
out, so that one such class does not make the whole list fail (upstream's does, AWS-177).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from dovetail.adapters.aws import names
from dovetail.adapters.aws.instance_types.sized_types import SizedType
from dovetail.adapters.aws.tags import from_tags
from dovetail.model import names as core
from dovetail.model.values.json import Json
from dovetail.model.values.resources import Resources, subtract
from dovetail.ports.cloud import Instance

INSTANCE_ID: Final = re.compile(r"i-(?:[0-9a-f]{17}|[0-9a-f]{8})")  # EC2 refuses every other length
_PROVIDER_ID: Final = re.compile(rf"aws:///(?P<zone>[^/]+)/(?P<id>{INSTANCE_ID.pattern})")

LIVE_STATES: Final = ("pending", "running", "shutting-down", "stopped", "stopping")
_STATES: Final[dict[str, Literal["pending", "running", "stopping", "stopped", "terminating"]]] = {
    "pending": "pending",
    "running": "running",
    "stopping": "stopping",
    "stopped": "stopped",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceFacts:
    """One instance, according to its launch or to EC2's description."""

    id: str
    instance_type: str
    zone: str
    zone_id: str
    image: str
    capacity_type: str
    tenancy: str
    subnet: str = ""
    security_groups: frozenset[str] = frozenset()
    reservation_id: str | None = None
    reservation_type: str = ""
    interruptible: bool = False
    group_id: str | None = None
    partition: str | None = None
    partitioned: bool = False  # whether its group has partitions, where that is known
    state: str = "pending"
    launched: float = 0.0
    profile: str = ""
    efa: bool = False
    tags: Mapping[str, str]

    @property
    def provider_id(self) -> str:
        """aws:///zone/id (AWS-2)."""
        return f"aws:///{self.zone}/{self.id}"


def instance_id(provider_id: str) -> str:
    """The id at the end of a providerID; empty if it is not one of EC2's (AWS-2), which is asked about no other."""
    found = _PROVIDER_ID.fullmatch(provider_id)
    return found["id"] if found else ""


def zone_of(provider_id: str) -> str:
    """The zone that a providerID names; empty if it is not one of EC2's."""
    found = _PROVIDER_ID.fullmatch(provider_id)
    return found["zone"] if found else ""


def is_zone_of(zone: str, region: str) -> bool:
    """Whether a zone belongs to a region: us-west-2a, and the local zone us-west-2-lax-1a, belong to us-west-2."""
    rest = zone.removeprefix(region)
    return rest != zone and (rest[:1] == "-" or rest.isalpha())


def read_instance(raw: Json, *, reserved_capacity: bool = True) -> InstanceFacts:
    placement = raw.get("Placement") or {}
    tags = from_tags(raw.get("Tags"))
    kind, reservation = _capacity_type(raw, reserved_capacity=reserved_capacity)
    lifecycle = raw.get("InstanceLifecycle") or ""
    launched = raw.get("LaunchTime")
    partition = placement.get("PartitionNumber")
    arn = (raw.get("IamInstanceProfile") or {}).get("Arn") or ""
    return InstanceFacts(
        id=raw["InstanceId"],
        instance_type=raw.get("InstanceType", ""),
        zone=placement.get("AvailabilityZone", ""),
        zone_id=placement.get("AvailabilityZoneId") or "",
        image=raw.get("ImageId", ""),
        capacity_type=kind,
        tenancy=placement.get("Tenancy") or "default",
        subnet=raw.get("SubnetId", ""),
        security_groups=frozenset(group["GroupId"] for group in raw.get("SecurityGroups") or ()),
        reservation_id=reservation,
        reservation_type=("capacity-block" if lifecycle == "capacity-block" else "default") if reservation else "",
        interruptible=lifecycle == "interruptible-capacity-reservation",
        group_id=placement.get("GroupId") or None,
        partition=None if partition is None else str(partition),
        state=(raw.get("State") or {}).get("Name", "pending"),
        launched=launched.timestamp() if isinstance(launched, datetime) else 0.0,
        profile=arn.rpartition("/")[2],
        efa=any("efa" in (i.get("InterfaceType") or "") for i in raw.get("NetworkInterfaces") or ()),
        tags=tags,
    )


def _capacity_type(raw: Json, *, reserved_capacity: bool) -> tuple[str, str | None]:
    """Capacity type and reservation (AWS-104). Either sign of spot is enough (MOT-11)."""
    if raw.get("SpotInstanceRequestId") or raw.get("InstanceLifecycle") == "spot":
        return core.CAPACITY_SPOT, None
    reservation = raw.get("CapacityReservationId") or ""
    preference = (raw.get("CapacityReservationSpecification") or {}).get("CapacityReservationPreference")
    if reserved_capacity and reservation and preference == "capacity-reservations-only":
        return core.CAPACITY_RESERVED, reservation
    return core.CAPACITY_ON_DEMAND, None


def instance_of(facts: InstanceFacts, sized: SizedType | None, annotations: Mapping[str, str]) -> Instance:
    capacity = _capacity(facts, sized)
    overhead = sized.sizes.overhead if sized else {}
    return Instance(
        provider_id=facts.provider_id,
        claim_uid=facts.tags.get(core.CLAIM_UID_TAG, ""),
        claim_name=facts.tags.get(names.CLAIM_TAG, ""),
        group=facts.tags.get(core.LAUNCH_GROUP_TAG, ""),
        state=_STATES.get(facts.state, "terminating"),
        launched=facts.launched,
        image_id=facts.image,
        labels=labels_of(facts, sized),
        annotations=annotations,
        capacity=capacity,
        allocatable=subtract(capacity, {name: amount for name, amount in overhead.items() if name in capacity}),
    )


def _capacity(facts: InstanceFacts, sized: SizedType | None) -> Resources:
    if sized is None:
        return {}
    return {
        name: amount for name, amount in sized.sizes.capacity.items() if amount and (name != names.EFA or facts.efa)
    }


_PER_LAUNCH: Final = frozenset({core.ZONE, names.ZONE_ID, core.CAPACITY_TYPE, names.TENANCY})


def labels_of(facts: InstanceFacts, sized: SizedType | None) -> dict[str, str]:
    """Labels for which the type leaves no choice, and where and how it was launched (AWS-94)."""
    labels: dict[str, str] = {core.INSTANCE_TYPE: facts.instance_type}
    if sized is not None:
        for expression in sized.expressions:
            single = expression.operator == "In" and len(expression.values) == 1
            if single and expression.key not in _PER_LAUNCH:
                labels[expression.key] = expression.values[0]
    labels[core.ZONE] = facts.zone
    labels[core.CAPACITY_TYPE] = facts.capacity_type
    labels[names.TENANCY] = "dedicated" if facts.tenancy == "dedicated" else "default"
    if facts.zone_id:
        labels[names.ZONE_ID] = facts.zone_id
    pool = facts.tags.get(core.NODE_POOL)
    if pool:
        labels[core.NODE_POOL] = pool
    if facts.reservation_id:
        labels[names.RESERVATION_ID] = facts.reservation_id
        labels[names.RESERVATION_TYPE] = facts.reservation_type
        labels[names.INTERRUPTIBLE] = "true" if facts.interruptible else "false"
    if facts.group_id:
        labels[names.PLACEMENT_GROUP] = facts.group_id
    if facts.partitioned or facts.partition:
        labels[names.PARTITION] = facts.partition or ""  # empty until EC2 has chosen one (AWS-94)
    return labels
