"""What is a scheduling requirement, and which lists of them are refused (API-9, API-10, API-17)?

NodePool, NodeClaim and NodeOverlay share the shape and differ in the keys they may name. `values` may be absent: a CEL
rule that reads it without `has` fails with "no such key" instead of the rule's own message.
"""

import re
from typing import Annotated, Literal

from pydantic import Field

from dovetail.api.schema import label_keys
from dovetail.api.schema.field_types import QUALIFIED_NAME, Int
from dovetail.api.schema.rules import Obeys, Rule
from dovetail.api.schema.structural import ApiModel

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"]
COMPARISONS = ("Gt", "Lt", "Gte", "Lte")

Key = Annotated[str, Field(max_length=316, pattern=QUALIFIED_NAME)]
Values = Annotated[tuple[str, ...], Field(json_schema_extra={"x-kubernetes-list-type": "atomic"})]


class Requirement(ApiModel):
    """A condition on one label of the nodes."""

    key: Key
    """The label."""
    operator: Operator
    """How the label's value relates to the values."""
    values: Values | None = None
    """The values; exactly one whole number for Gt, Lt, Gte and Lte, none for Exists and DoesNotExist."""


class FlexibleRequirement(Requirement):
    """A condition on one label of the nodes, with how much choice must remain."""

    min_values: Annotated[Int, Field(ge=1, le=50)] | None = None
    """How many different values the instance types of a new node must offer at least."""


class NodePoolRequirement(FlexibleRequirement):
    """A condition on one label of the pool's nodes."""

    key: Annotated[Key, Obeys(*label_keys.NODE_POOL_KEY_RULES)]
    """The label; Karpenter's own domains are restricted."""


class NodeClaimRequirement(FlexibleRequirement):
    """A condition on one label of the claim's node."""

    key: Annotated[Key, Obeys(*label_keys.NODE_CLAIM_KEY_RULES)]
    """The label; Karpenter's own domains are restricted."""


class NodeOverlayRequirement(Requirement):
    """A condition on one label of the instance types that the overlay changes."""

    key: Annotated[Key, Obeys(*label_keys.NODE_OVERLAY_KEY_RULES)]
    """The label; Karpenter's own domains are restricted."""


def is_whole_number(text: str) -> bool:
    """As the API server's CEL reads it: decimal, optional sign, 64 bits; and not negative."""
    found = re.fullmatch(r"([+-]?)0*+([0-9]{0,19})", text)  # no more digits than 64 bits have are converted
    if found is None or not text[-1:].isdigit():
        return False
    return 0 <= int(f"{found[1]}{found[2] or 0}") < 2**63


def _has_values(operator: str) -> Rule:
    return Rule(
        message=f"requirements with operator '{operator}' must have a value defined",
        cel=f"self.all(x, x.operator != '{operator}' || (has(x.values) && x.values.size() > 0))",
        holds=lambda items: all(item.operator != operator or item.values for item in items),
    )


def _compares(item: Requirement) -> bool:
    return item.operator not in COMPARISONS or (
        item.values is not None and len(item.values) == 1 and is_whole_number(item.values[0])
    )


def _is_flexible(item: FlexibleRequirement) -> bool:
    return item.operator != "In" or item.min_values is None or len(item.values or ()) >= item.min_values


_COMPARISON_VALUE = Rule(
    message="requirements operator 'Gt', 'Lt', 'Gte', or 'Lte' must have a single positive integer value",
    cel="self.all(x, !(x.operator in ['Gt', 'Lt', 'Gte', 'Lte'])"
    " || (has(x.values) && x.values.size() == 1 && int(x.values[0]) >= 0))",
    holds=lambda items: all(_compares(item) for item in items),
)
_ENOUGH_VALUES = Rule(
    message="requirements with 'minValues' must have at least that many values specified in the 'values' field",
    cel="self.all(x, x.operator != 'In' || !has(x.minValues) || (has(x.values) && x.values.size() >= x.minValues))",
    holds=lambda items: all(_is_flexible(item) for item in items),
)

MOST_REQUIREMENTS = 100
_LIST = Field(max_length=MOST_REQUIREMENTS, json_schema_extra={"x-kubernetes-list-type": "atomic"})
_RULES = Obeys(_has_values("In"), _COMPARISON_VALUE, _ENOUGH_VALUES)

NodePoolRequirements = Annotated[tuple[NodePoolRequirement, ...], _LIST, _RULES]
NodeClaimRequirements = Annotated[tuple[NodeClaimRequirement, ...], _LIST, _RULES]
NodeOverlayRequirements = Annotated[
    tuple[NodeOverlayRequirement, ...],
    _LIST,
    Obeys(_has_values("NotIn"), _has_values("In"), _COMPARISON_VALUE),
]
