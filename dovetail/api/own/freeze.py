"""What does a Freeze say?

A pause for every NodePool with a beginning and an end, under a right of its own: the person on call may be allowed to
create one without being allowed to change NodePools.
"""

from typing import Annotated, Literal

from pydantic import Field

from dovetail.api.schema.conditions import Conditions
from dovetail.api.schema.field_types import Moment
from dovetail.api.schema.object_meta import Metadata
from dovetail.api.schema.rules import Rule
from dovetail.api.schema.structural import ApiModel

_ENDS_LATER = Rule(
    message="until must be after from",
    cel="!has(self.from) || self.until > self.from",
    holds=lambda spec: spec.from_ is None or spec.until > spec.from_,
)

Activity = Literal["disruption", "expiry", "launches", "drains", "all"]


class FreezeSpec(ApiModel):
    """What is frozen, and for how long."""

    rules = (_ENDS_LATER,)

    from_: Moment | None = Field(None, alias="from")
    """When it begins; as soon as it exists where it is left out."""
    until: Moment
    """When it ends."""
    what: Annotated[
        tuple[Activity, ...], Field(min_length=1, max_length=5, json_schema_extra={"x-kubernetes-list-type": "atomic"})
    ] = ("disruption", "expiry")
    """What may not begin while it holds, in the words of a pause."""
    in_flight: Literal["Finish", "Undo"] = "Finish"
    """What becomes of a disruption that has begun before: it goes on, or it is called off as long as its NodeClaim has
    not been deleted."""
    reason: Annotated[str, Field(max_length=256)] | None = None
    """Why, for people."""


class FreezeStatus(ApiModel):
    """What is known of the freeze."""

    conditions: Conditions | None = None
    """Whether it is understood, and whether it holds now."""


class Freeze(ApiModel):
    """A Freeze keeps nodes of all NodePools from beginning to leave until a moment."""

    api_version: Literal["dovetail.sh/v1alpha1"]
    kind: Literal["Freeze"]
    metadata: Metadata
    spec: FreezeSpec
    status: FreezeStatus | None = None
