"""What does a KWOKNodeClass say? Every field may be left out."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from dovetail.api.schema.conditions import Conditions
from dovetail.api.schema.field_types import Duration, Int64
from dovetail.api.schema.object_meta import Metadata
from dovetail.api.schema.rules import Obeys, Rule, without_nulls
from dovetail.api.schema.structural import ApiModel

_RESERVED = ("cpu", "memory", "ephemeral-storage", "pid")
_RESERVED_RULES = Obeys(
    Rule(
        message="valid keys for reservedResources are ['cpu','memory','ephemeral-storage','pid']",
        cel="self.all(x, x in ['cpu', 'memory', 'ephemeral-storage', 'pid'])",
        holds=lambda amounts: all(name in _RESERVED for name in amounts),
    ),
    Rule(
        message="reservedResources value cannot be a negative resource quantity",
        cel="self.all(x, !self[x].startsWith('-'))",
        holds=lambda amounts: not any(text.startswith("-") for text in amounts.values()),
    ),
)

# The API server gives a new class this status: kwok has nothing to look up first.
_READY_AT_ONCE: dict[str, Any] = {
    "conditions": [
        {
            "type": "Ready",
            "status": "True",
            "reason": "Ready",
            "message": "",
            "lastTransitionTime": "2024-01-01T01:01:01Z",
        }
    ]
}


class KWOKNodeClassSpec(ApiModel):
    """How the instances are made."""

    max_pods: Annotated[Int64, Field(ge=0)] | None = None
    """How many pods a node takes, whatever its type says."""
    node_registration_delay: Duration | None = None
    """How long an instance boots until its Node joins the cluster."""
    reserved_resources: Annotated[dict[str, str], BeforeValidator(without_nulls), _RESERVED_RULES] | None = None
    """What of a node's capacity pods cannot have; 100m of cpu and 10Mi of memory if absent."""


class KWOKNodeClassStatus(ApiModel):
    """Whether the class can be used."""

    conditions: Conditions | None = None
    """Ready, and what it is made of."""


class KWOKNodeClass(ApiModel):
    """A KWOKNodeClass says how the nodes of a pool are made where kwok plays them."""

    api_version: Literal["karpenter.kwok.sh/v1alpha1"]
    kind: Literal["KWOKNodeClass"]
    metadata: Metadata
    spec: KWOKNodeClassSpec | None = None
    status: Annotated[KWOKNodeClassStatus, Field(json_schema_extra={"default": _READY_AT_ONCE})] | None = None
