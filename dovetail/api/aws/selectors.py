"""How does an EC2NodeClass point at subnets, groups and reservations (AWS-10, AWS-11, AWS-15, AWS-16)?

Terms are ORed, what stands in one term is ANDed; the tag value `*` means any value. For subnets and security groups
Karpenter's own rule on `id` and `name` refuses a list only if every term breaks it. A manifest with one such term among
good ones applies there, so it applies here; the id wins when the term is resolved.
"""

from typing import Annotated, Literal

from pydantic import Field

from dovetail.api.aws.terms import (
    Tags,
    alone,
    alone_in_some_term,
    at_least_one,
    list_not_empty,
    same_names,
    together,
)
from dovetail.api.schema.rules import Obeys, Rule
from dovetail.api.schema.structural import ApiModel


class SubnetSelectorTerm(ApiModel):
    """Subnets by tags or by id."""

    tags: Tags | None = None
    """Tags that the subnets have; `*` means any value."""
    id: Annotated[str, Field(pattern=r"subnet-[0-9a-z]+")] | None = None
    """The subnet's id."""


class SecurityGroupSelectorTerm(ApiModel):
    """Security groups by tags, id or name."""

    tags: Tags | None = None
    """Tags that the security groups have; `*` means any value."""
    id: Annotated[str, Field(pattern=r"sg-[0-9a-z]+")] | None = None
    """The security group's id."""
    name: str | None = None
    """The security group's own name, not its Name tag."""


class CapacityReservationSelectorTerm(ApiModel):
    """Capacity reservations by tags, id or match criteria."""

    tags: Tags | None = None
    """Tags that the reservations have; `*` means any value."""
    id: Annotated[str, Field(pattern=r"^cr-[0-9a-z]+$")] | None = None
    """The reservation's id."""
    owner_id: Annotated[str, Field(pattern=r"^[0-9]{12}$")] | None = Field(default=None, alias="ownerID")
    """The account that owns the reservation."""
    instance_match_criteria: Literal["open", "targeted"] | None = None
    """Which launches the reservation takes in."""


class PlacementGroupSelector(ApiModel):
    """The placement group of all instances, by name or by id."""

    rules = (
        Rule(
            message="expected at least one, got none, ['name', 'id']",
            cel="has(self.name) || has(self.id)",
            holds=lambda selector: selector.name is not None or selector.id is not None,
        ),
        Rule(
            message="'name' and 'id' are mutually exclusive",
            cel="!(has(self.name) && has(self.id))",
            holds=lambda selector: selector.name is None or selector.id is None,
        ),
    )

    name: Annotated[str, Field(min_length=1)] | None = None
    """The placement group's name."""
    id: Annotated[str, Field(pattern=r"^pg-[0-9a-z]+$")] | None = None
    """The placement group's id."""


SubnetSelectorTerms = Annotated[
    tuple[SubnetSelectorTerm, ...],
    Field(max_length=30),
    Obeys(
        list_not_empty("subnetSelectorTerms"),
        at_least_one(same_names("tags", "id")),
        alone_in_some_term("id", same_names("tags"), together("a subnet selector term")),
    ),
]
SecurityGroupSelectorTerms = Annotated[
    tuple[SecurityGroupSelectorTerm, ...],
    Field(max_length=30),
    Obeys(
        list_not_empty("securityGroupSelectorTerms"),
        at_least_one(same_names("tags", "id", "name")),
        alone_in_some_term("id", same_names("tags", "name"), together("a security group selector term")),
        alone_in_some_term("name", same_names("tags", "id"), together("a security group selector term")),
    ),
]
CapacityReservationSelectorTerms = Annotated[
    tuple[CapacityReservationSelectorTerm, ...],
    Field(max_length=30),
    Obeys(
        at_least_one({**same_names("tags", "id"), "instanceMatchCriteria": "instance_match_criteria"}),
        alone(
            "id",
            {**same_names("tags"), "ownerID": "owner_id", "instanceMatchCriteria": "instance_match_criteria"},
            "along with other fields in a capacity reservation selector term",
        ),
    ),
]
