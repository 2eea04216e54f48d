"""What does a status condition look like (API-13, API-16)?

NodePool, NodeOverlay and EC2NodeClass demand reason and message; NodeClaim does not, because clusters hold claims of
older versions whose conditions have neither. Making both strict would refuse every status write on such a claim.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from dovetail.api.schema.field_types import Int64, Moment
from dovetail.api.schema.rules import unique_keys_only
from dovetail.api.schema.structural import ApiModel

CONDITION_TYPE = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)


class LegacyCondition(ApiModel):
    """A condition of which only type, status and time of the last change are certain."""

    type: Annotated[str, Field(max_length=316, pattern=CONDITION_TYPE)]
    """What the condition speaks of, in CamelCase."""
    status: Literal["True", "False", "Unknown"]
    """Whether it holds."""
    last_transition_time: Moment
    """When the status last changed."""
    reason: Annotated[str, Field(max_length=1024, pattern=r"^([A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?|)$")] | None = None
    """One word for programs: why it stands so."""
    message: Annotated[str, Field(max_length=32768)] | None = None
    """A sentence for people; may be empty."""
    observed_generation: Annotated[Int64, Field(ge=0)] | None = None
    """The metadata.generation that was looked at."""


class Condition(LegacyCondition):
    """A condition: what is true of the object now, since when and why."""

    reason: Annotated[str, Field(min_length=1, max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")]
    """One word for programs: why it stands so."""
    message: Annotated[str, Field(max_length=32768)]
    """A sentence for people; may be empty."""


def _one_per_type(conditions: tuple[LegacyCondition, ...]) -> tuple[LegacyCondition, ...]:
    unique_keys_only("type", [condition.type for condition in conditions])
    return conditions


_BY_TYPE = Field(json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]})

Conditions = Annotated[tuple[Condition, ...], AfterValidator(_one_per_type), _BY_TYPE]
LegacyConditions = Annotated[tuple[LegacyCondition, ...], AfterValidator(_one_per_type), _BY_TYPE]
