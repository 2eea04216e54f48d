"""What does a CapacityBuffer say (PLC-211)?

Room that is to be kept free, in the API of sig-autoscaling (autoscaling.x-k8s.io), which other autoscalers read too.
The kind exists here so that a cluster that has no other one can have it, and wrong buffers are refused. What may be
said is what that API says; of its versions only v1beta1.
"""

from typing import Annotated, Literal

from pydantic import Field

from dovetail.api.schema.conditions import Conditions
from dovetail.api.schema.field_types import Int32, Int64, Quantities
from dovetail.api.schema.object_meta import Metadata
from dovetail.api.schema.rules import Rule
from dovetail.api.schema.structural import ApiModel

ACTIVE_CAPACITY = "buffer.x-k8s.io/active-capacity"

_SIZED = Rule(
    message="If podTemplateRef is set, replicas or limits must also be set",
    cel="!has(self.podTemplateRef) || has(self.replicas) || has(self.limits)",
    holds=lambda spec: spec.pod_template_ref is None or spec.replicas is not None or spec.limits is not None,
)
_ONE_SOURCE = Rule(
    message="You must define either PodTemplateRef or ScalableRef, but not both",
    cel="!(has(self.podTemplateRef) && has(self.scalableRef))",
    holds=lambda spec: spec.pod_template_ref is None or spec.scalable_ref is None,
)

Name = Annotated[str, Field(min_length=1)]
Count = Annotated[Int32, Field(ge=0)]


class PodTemplateRef(ApiModel):
    """A PodTemplate of the buffer's namespace."""

    name: Name
    """Its name."""


class ScalableRef(ApiModel):
    """A workload of the buffer's namespace."""

    api_group: str | None = None
    """Its group: apps."""
    kind: Name
    """Deployment, StatefulSet or ReplicaSet."""
    name: Name
    """Its name."""


class CapacityBufferSpec(ApiModel):
    """How many pods of which kind room is kept for."""

    rules = (_SIZED, _ONE_SOURCE)

    provisioning_strategy: str = ACTIVE_CAPACITY
    """How the room is kept. Buffers of any other strategy than the default belong to other controllers."""
    pod_template_ref: PodTemplateRef | None = None
    """The pods are like those of this PodTemplate."""
    scalable_ref: ScalableRef | None = None
    """The pods are like those of this workload."""
    replicas: Count | None = None
    """The number of pods to keep room for."""
    percentage: Count | None = None
    """Room for this percentage of the workload's replicas, rounded up; the greater of this and replicas counts."""
    limits: Quantities | None = None
    """The most that all pods together may ask for; alone, as many pods as fit into it."""


class CapacityBufferStatus(ApiModel):
    """What is known of the buffer."""

    pod_template_ref: PodTemplateRef | None = None
    """The PodTemplate that the pods are like."""
    pod_template_generation: Int64 | None = None
    """The generation of that PodTemplate."""
    replicas: Int32 | None = None
    """For how many pods room is kept."""
    provisioning_strategy: str | None = None
    """The strategy in force."""
    conditions: Conditions | None = None
    """Whether the buffer can be used, and whether its room stands."""


class CapacityBuffer(ApiModel):
    """A CapacityBuffer keeps room free for pods that may come."""

    api_version: Literal["autoscaling.x-k8s.io/v1beta1"]
    kind: Literal["CapacityBuffer"]
    metadata: Metadata
    spec: CapacityBufferSpec
    status: CapacityBufferStatus | None = None
