"""What is known of an EC2NodeClass: what its selectors resolved to (AWS-26)?

Written by the resolving of the class, read by launches and by drift. Unlike the spec it is our own output; the shapes
are Karpenter's, so that either side can read what the other left.
"""

from typing import Annotated, Literal

from pydantic import Field

from dovetail.api.schema.conditions import Conditions
from dovetail.api.schema.field_types import Bool, Moment
from dovetail.api.schema.requirements import Values
from dovetail.api.schema.structural import ApiModel


class Subnet(ApiModel):
    """A subnet that instances may be launched into."""

    id: str
    """The subnet's id."""
    zone: str
    """The zone's name."""
    zone_id: str | None = Field(default=None, alias="zoneID")
    """The zone's id."""


class SecurityGroup(ApiModel):
    """A security group of every instance."""

    id: str
    """The security group's id."""
    name: str | None = None
    """The security group's name."""


class AmiRequirement(ApiModel):
    """A condition on the instance types that an image is for."""

    key: str
    """The label."""
    operator: str
    """How the label's value relates to the values."""
    values: Values | None = None
    """The values."""


class Ami(ApiModel):
    """An image that instances may be started from."""

    id: str
    """The image's id."""
    name: str | None = None
    """The image's name."""
    deprecated: Bool | None = None
    """Whether its owner has deprecated it."""
    requirements: tuple[AmiRequirement, ...]
    """Which instance types the image is for."""


class CapacityReservation(ApiModel):
    """A capacity reservation that launches may use."""

    id: Annotated[str, Field(pattern=r"^cr-[0-9a-z]+$")]
    """The reservation's id."""
    availability_zone: str
    """The zone's name."""
    instance_type: str
    """The reserved instance type."""
    instance_match_criteria: Literal["open", "targeted"]
    """Which launches the reservation takes in."""
    owner_id: Annotated[str, Field(pattern=r"^[0-9]{12}$", alias="ownerID")]
    """The account that owns the reservation."""
    reservation_type: Literal["default", "capacity-block"] = "default"
    """An ordinary reservation or a capacity block."""
    state: Literal["active", "expiring"] = "active"
    """Expiring: a capacity block whose instances the cloud is about to take back."""
    end_time: Moment | None = None
    """When the reservation ends."""
    interruptible: Bool | None = None
    """Whether its instances may be taken back before."""


class EC2NodeClassStatus(ApiModel):
    """What the class resolved to."""

    subnets: tuple[Subnet, ...] | None = None
    """The subnets that instances may be launched into."""
    security_groups: tuple[SecurityGroup, ...] | None = None
    """The security groups of every instance."""
    amis: tuple[Ami, ...] | None = None
    """The images, newest first."""
    capacity_reservations: tuple[CapacityReservation, ...] | None = None
    """The capacity reservations that launches may use."""
    instance_profile: str | None = None
    """The instance profile that instances carry."""
    conditions: Conditions | None = None
    """What is true of the class."""
