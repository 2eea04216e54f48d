"""How does an EC2NodeClass point at images (AWS-12 to AWS-14)?

Either one alias, which follows the images that EKS publishes, or terms by tags, id, name or SSM parameter. The trap
avoided: the family of an alias is written in lower case, amiFamily is not.
"""

from typing import Annotated

from pydantic import Field

from dovetail.api.aws.terms import Tags, alone, at_least_one, same_names, together
from dovetail.api.schema.rules import Obeys, Rule
from dovetail.api.schema.structural import ApiModel

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


AmiSelectorTerms = Annotated[
    tuple[AmiSelectorTerm, ...],
    Field(min_length=1, max_length=30),
    Obeys(
        at_least_one({**same_names("tags", "id", "name", "alias"), "ssmParameter": "ssm_parameter"}),
        alone("id", same_names("alias", "tags", "name", "owner"), together("amiSelectorTerms")),
        alone("alias", same_names("id", "tags", "name", "owner"), together("amiSelectorTerms")),
        Rule(
            message="'alias' is mutually exclusive, cannot be set with a combination of other amiSelectorTerms",
            cel="self.size() == 1 || !self.exists(term, has(term.alias))",
            holds=lambda terms: len(terms) == 1 or all(term.alias is None for term in terms),
        ),
    ),
]
