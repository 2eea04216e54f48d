"""What does a NodeClaim say (API-15, API-16)?

The spec can never change, not even in how a quantity is written, so a claim is patched in metadata and status and never
written back whole (PLM-8).
"""

from typing import Annotated, Literal

from pydantic import Field

from dovetail.api.karpenter.node_template import NodeClassReference, Taints
from dovetail.api.schema.conditions import LegacyConditions
from dovetail.api.schema.field_types import Duration, Moment, NillableDuration, Quantities
from dovetail.api.schema.object_meta import Metadata
from dovetail.api.schema.requirements import NodeClaimRequirements
from dovetail.api.schema.rules import Obeys, UpdateRule
from dovetail.api.schema.structural import ApiModel


class ResourceRequests(ApiModel):
    """How much the node must hold."""

    requests: Quantities | None = None
    """The least that the node must have of each resource."""


class NodeClaimSpec(ApiModel):
    """The node that is asked for. It can never be changed."""

    node_class_ref: NodeClassReference
    """The NodeClass that describes the machine in the cloud's terms."""
    requirements: NodeClaimRequirements
    """Conditions on the node's labels."""
    resources: ResourceRequests | None = None
    """How much the node must hold."""
    taints: Taints | None = None
    """Taints of the node."""
    startup_taints: Taints | None = None
    """Taints that the node starts with and that others take off soon; pods need not tolerate them."""
    termination_grace_period: Duration | None = None
    """How long the node may take to drain before its pods are deleted; without end if absent."""
    expire_after: NillableDuration = "720h"
    """The age at which the node is replaced; Never turns it off."""


class NodeClaimStatus(ApiModel):
    """What became of the claim."""

    node_name: str | None = None
    """The node's name."""
    provider_id: str | None = Field(default=None, alias="providerID")
    """The machine's identity; equal to the node's spec.providerID."""
    image_id: str | None = Field(default=None, alias="imageID")
    """The image that the machine was started from."""
    capacity: Quantities | None = None
    """How much the machine is expected to have."""
    allocatable: Quantities | None = None
    """How much of it pods may use."""
    last_pod_event_time: Moment | None = None
    """When a pod last came to the node or left it."""
    conditions: LegacyConditions | None = None
    """How far the claim has come."""


_IMMUTABLE = Obeys(
    UpdateRule(message="spec is immutable", cel="self == oldSelf", holds=lambda old, new: bool(new == old))
)


class NodeClaim(ApiModel):
    """A NodeClaim asks for one node and accompanies it until the machine is gone."""

    api_version: Literal["karpenter.sh/v1"]
    kind: Literal["NodeClaim"]
    metadata: Metadata
    spec: Annotated[NodeClaimSpec, _IMMUTABLE]
    status: NodeClaimStatus | None = None
