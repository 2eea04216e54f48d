"""What does a NodeOverlay say (API-17)?

A correction to the price or capacity of instance types, in Karpenter's alpha API. The kind exists so that a cluster's
overlays stay where they are and wrong ones are refused.
"""

from typing import Annotated, Literal

from pydantic import Field

from dovetail.api.schema.conditions import Conditions
from dovetail.api.schema.field_types import Int32, Quantities
from dovetail.api.schema.object_meta import Metadata
from dovetail.api.schema.requirements import NodeOverlayRequirements
from dovetail.api.schema.rules import Obeys, Rule
from dovetail.api.schema.structural import ApiModel

ORDINARY_RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods")

# Karpenter writes \d; to the API server that is the same as [0-9], to pydantic's engine it is any script's digit.
PRICE = r"^[0-9]+(\.[0-9]+)?$"
PRICE_ADJUSTMENT = r"^(([+-]{1}([0-9]*\.?[0-9]+))|(\+{1}[0-9]*\.?[0-9]+%)|(^(-[0-9]{1,2}(\.[0-9]+)?%)$)|(-100%))$"

_EXTENDED_ONLY = Rule(
    message="invalid resource restricted",
    cel="self.all(name, !(name in ['cpu', 'memory', 'ephemeral-storage', 'pods']))",
    holds=lambda capacity: not set(capacity) & set(ORDINARY_RESOURCES),
)
_ONE_PRICE = Rule(
    message="cannot set both 'price' and 'priceAdjustment'",
    cel="!(has(self.price) && has(self.priceAdjustment))",
    holds=lambda spec: spec.price is None or spec.price_adjustment is None,
)


class NodeOverlaySpec(ApiModel):
    """Which instance types are corrected, and how."""

    rules = (_ONE_PRICE,)

    requirements: NodeOverlayRequirements
    """Conditions on the labels of the instance types."""
    price: Annotated[str, Field(pattern=PRICE)] | None = None
    """The price instead of the cloud's."""
    price_adjustment: (
        Annotated[
            str,
            Field(pattern=PRICE_ADJUSTMENT),
        ]
        | None
    ) = None
    """What is added to the price: a signed number or a signed percentage, not below -100%."""
    capacity: Annotated[Quantities, Obeys(_EXTENDED_ONLY)] | None = None
    """Extended resources that the instance types have in addition."""
    weight: Annotated[Int32, Field(ge=1, le=10000)] | None = None
    """Overlays of greater weight win; absent counts as 0."""


class NodeOverlayStatus(ApiModel):
    """What is known of the overlay."""

    conditions: Conditions | None = None
    """What is true of the overlay."""


class NodeOverlay(ApiModel):
    """A NodeOverlay corrects the price or adds to the capacity of instance types."""

    api_version: Literal["karpenter.sh/v1alpha1"]
    kind: Literal["NodeOverlay"]
    metadata: Metadata
    spec: NodeOverlaySpec
    status: NodeOverlayStatus | None = None
