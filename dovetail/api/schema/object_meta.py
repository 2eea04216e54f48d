"""Which part of an object's metadata do the models know?

The API server owns and validates metadata whatever a CRD says, so the CRD only says "object" and this model only
reads. Fields that no part of Dovetail asks for (managedFields, selfLink) are pruned.
"""

from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from dovetail.api.schema.field_types import Bool, Int, Moment, StringMap
from dovetail.api.schema.rules import without_nulls
from dovetail.api.schema.structural import ApiModel


class OwnerReference(ApiModel):
    api_version: str
    kind: str
    name: str
    uid: str
    controller: Bool | None = None
    block_owner_deletion: Bool | None = None


class ObjectMeta(ApiModel):
    name: str | None = None
    generate_name: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: Int | None = None
    creation_timestamp: Moment | None = None
    deletion_timestamp: Moment | None = None
    deletion_grace_period_seconds: Int | None = None
    labels: StringMap = Field(default_factory=dict)
    annotations: StringMap = Field(default_factory=dict)
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


Metadata = Annotated[ObjectMeta, BeforeValidator(without_nulls), WithJsonSchema({"type": "object"})]
