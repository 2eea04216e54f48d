"""How does an EC2NodeClass point at subnets, groups, images and reservations (W-10 to W-16)?

Terms are ORed, what stands in one term is ANDed; the tag value `*` means any value. The trap avoided: for subnets and
security groups Karpenter's own rule on `id` and `name` refuses a list only if every term breaks it. A manifest with
one such term among good ones applies there, so it applies here; the id wins when the term is resolved.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from api.rules import Obeys, Rule, without_nulls
from api.structural import ApiModel

_FULL_TAGS = Rule(
    message="empty tag keys or values aren't supported",
    cel="self.all(key, key != '' && self[key] != '')",
    holds=lambda tags: all(key and value for key, value in tags.items()),
)
Tags = Annotated[dict[str, str], BeforeValidator(without_nulls), Field(max_length=20), Obeys(_FULL_TAGS)]


def _is_set(term: Any, field: str) -> bool:
    return getattr(term, field) is not None


def _cel_any(fields: dict[str, str]) -> str:
    return " || ".join(f"has(term.{api_name})" for api_name in fields)


def _at_least_one(fields: dict[str, str]) -> Rule:
    listed = ", ".join(f"'{api_name}'" for api_name in fields)
    return Rule(
        message=f"expected at least one, got none, [{listed}]",
        cel=f"self.all(term, {_cel_any(fields)})",
        holds=lambda terms: all(any(_is_set(term, field) for field in fields.values()) for term in terms),
    )


def _alone(name: str, others: dict[str, str], where: str) -> Rule:
    """A term with `name` has none of the others."""
    return Rule(
        message=f"'{name}' is mutually exclusive, cannot be set {where}",
        cel=f"!self.exists(term, has(term.{name}) && ({_cel_any(others)}))",
        holds=lambda terms: (
            not any(_is_set(term, name) and any(_is_set(term, field) for field in others.values()) for term in terms)
        ),
    )


def _alone_in_some_term(name: str, others: dict[str, str], where: str) -> Rule:
    """Not every term has `name` together with one of the others."""
    return Rule(
        message=f"'{name}' is mutually exclusive, cannot be set {where}",
        cel=f"!self.all(term, has(term.{name}) && ({_cel_any(others)}))",
        holds=lambda terms: (
            not all(_is_set(term, name) and any(_is_set(term, field) for field in others.values()) for term in terms)
        ),
    )


def _not_empty(field: str) -> Rule:
    return Rule(message=f"{field} cannot be empty", cel="self.size() != 0", holds=lambda terms: len(terms) > 0)


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


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


AMI_FAMILIES = {
    "al2": "AL2",
    "al2023": "AL2023",
    "bottlerocket": "Bottlerocket",
    "windows2019": "Windows2019",
    "windows2022": "Windows2022",
    "windows2025": "Windows2025",
}
_WINDOWS = tuple(alias for alias in AMI_FAMILIES if alias.startswith("windows"))


def _cel_list(names: tuple[str, ...]) -> str:
    return "[" + ", ".join(f"'{name}'" for name in names) + "]"


def _is_alias(text: str) -> bool:
    # As the expression above reads it: letters and digits, an @, and at least one character that is no line break.
    family, at, version = text.partition("@")
    return bool(at) and family.isascii() and family.isalnum() and bool(version) and "\n" not in version


def alias_family(alias: str) -> str:
    return alias.partition("@")[0]


_ALIAS_RULES = Obeys(
    Rule(
        message="'alias' is improperly formatted, must match the format 'family@version'",
        cel="self.matches('^[a-zA-Z0-9]+@.+$')",
        holds=_is_alias,
    ),
    Rule(
        message="family is not supported, must be one of the following: "
        + ", ".join(f"'{alias}'" for alias in AMI_FAMILIES),
        cel=f"self.split('@')[0] in {_cel_list(tuple(AMI_FAMILIES))}",
        holds=lambda alias: alias_family(alias) in AMI_FAMILIES,
    ),
    Rule(
        message="windows families may only specify version 'latest'",
        cel=f"!(self.split('@')[0] in {_cel_list(_WINDOWS)}) || self.split('@')[0] + '@latest' == self",
        holds=lambda alias: alias_family(alias) not in _WINDOWS or alias == f"{alias_family(alias)}@latest",
    ),
)


class AmiSelectorTerm(ApiModel):
    """Images by alias, tags, id, name or SSM parameter."""

    alias: Annotated[str, Field(max_length=30), _ALIAS_RULES] | None = None
    """An EKS image as family@version, for example al2023@latest; must be the only term."""
    tags: Tags | None = None
    """Tags that the images have; `*` means any value."""
    id: Annotated[str, Field(pattern=r"ami-[0-9a-z]+")] | None = None
    """The image's id."""
    name: str | None = None
    """The image's own name, not its Name tag."""
    owner: str | None = None
    """Who owns the image: an account, self, amazon or aws-marketplace."""
    ssm_parameter: str | None = None
    """The SSM parameter that holds the image's id."""


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


def _together(what: str) -> str:
    return f"with a combination of other fields in {what}"


SubnetSelectorTerms = Annotated[
    tuple[SubnetSelectorTerm, ...],
    Field(max_length=30),
    Obeys(
        _not_empty("subnetSelectorTerms"),
        _at_least_one(_same("tags", "id")),
        _alone_in_some_term("id", _same("tags"), _together("a subnet selector term")),
    ),
]
SecurityGroupSelectorTerms = Annotated[
    tuple[SecurityGroupSelectorTerm, ...],
    Field(max_length=30),
    Obeys(
        _not_empty("securityGroupSelectorTerms"),
        _at_least_one(_same("tags", "id", "name")),
        _alone_in_some_term("id", _same("tags", "name"), _together("a security group selector term")),
        _alone_in_some_term("name", _same("tags", "id"), _together("a security group selector term")),
    ),
]
AmiSelectorTerms = Annotated[
    tuple[AmiSelectorTerm, ...],
    Field(min_length=1, max_length=30),
    Obeys(
        _at_least_one({**_same("tags", "id", "name", "alias"), "ssmParameter": "ssm_parameter"}),
        _alone("id", _same("alias", "tags", "name", "owner"), _together("amiSelectorTerms")),
        _alone("alias", _same("id", "tags", "name", "owner"), _together("amiSelectorTerms")),
        Rule(
            message="'alias' is mutually exclusive, cannot be set with a combination of other amiSelectorTerms",
            cel="self.size() == 1 || !self.exists(term, has(term.alias))",
            holds=lambda terms: len(terms) == 1 or all(term.alias is None for term in terms),
        ),
    ),
]
CapacityReservationSelectorTerms = Annotated[
    tuple[CapacityReservationSelectorTerm, ...],
    Field(max_length=30),
    Obeys(
        _at_least_one({**_same("tags", "id"), "instanceMatchCriteria": "instance_match_criteria"}),
        _alone(
            "id",
            {**_same("tags"), "ownerID": "owner_id", "instanceMatchCriteria": "instance_match_criteria"},
            "along with other fields in a capacity reservation selector term",
        ),
    ),
]
