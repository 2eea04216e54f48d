"""What does a NodePool say (API-13, API-14)?

`disruption` absent, `{}` and `{budgets: []}` are three different things; the first two get one budget of 10 %, the last
means no budget at all.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from dovetail.api.karpenter.node_template import NodeClassReference, Taints
from dovetail.api.schema.conditions import Conditions
from dovetail.api.schema.field_types import (
    Duration,
    Int32,
    Int64,
    LabelValue,
    NillableDuration,
    Quantities,
    StringMap,
)
from dovetail.api.schema.label_keys import NODE_POOL_LABEL_RULES
from dovetail.api.schema.object_meta import Metadata
from dovetail.api.schema.requirements import NodePoolRequirements
from dovetail.api.schema.rules import Obeys, Rule, UpdateRule, unique_keys_only, without_nulls
from dovetail.api.schema.structural import ApiModel

BudgetReason = Literal["Underutilized", "Empty", "Drifted", "Unhealthy"]


def _each_once(reasons: tuple[str, ...]) -> tuple[str, ...]:
    unique_keys_only("reason", list(reasons))
    return reasons


class Budget(ApiModel):
    """How many of the pool's nodes may be disrupted at the same time."""

    nodes: Annotated[str, Field(pattern=r"^((100|[0-9]{1,2})%|[0-9]+)$")] = "10%"
    """A number of nodes or a percentage of the pool's nodes."""
    reasons: (
        Annotated[
            tuple[BudgetReason, ...],
            Field(max_length=50, json_schema_extra={"x-kubernetes-list-type": "set"}),
            AfterValidator(_each_once),
        ]
        | None
    ) = None
    """The reasons for disruption that the budget limits; all if absent."""
    schedule: (
        Annotated[
            str,
            Field(
                pattern=r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$"
            ),
        ]
        | None
    ) = None
    """When the budget begins to count, in cron's notation, UTC; always if absent."""
    duration: Annotated[str, Field(pattern=r"^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$")] | None = None
    """How long the budget counts from each time of the schedule, in hours and minutes."""


_SCHEDULE_WITH_DURATION = Rule(
    message="'schedule' must be set with 'duration'",
    cel="self.all(x, has(x.schedule) == has(x.duration))",
    holds=lambda budgets: all((budget.schedule is None) == (budget.duration is None) for budget in budgets),
)


class Disruption(ApiModel):
    """When and how fast the pool's nodes may be disrupted."""

    consolidate_after: NillableDuration = "0s"
    """How long a node must have been left alone by pods before it may be consolidated; Never turns it off."""
    consolidation_policy: Literal["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"] = "WhenEmptyOrUnderutilized"
    """Which nodes consolidation may take."""
    budgets: Annotated[
        tuple[Budget, ...],
        Field(max_length=50, json_schema_extra={"x-kubernetes-list-type": "atomic", "default": [{"nodes": "10%"}]}),
        Obeys(_SCHEDULE_WITH_DURATION),
    ] = (Budget(),)
    """The limits on how many nodes are disrupted at the same time; the strictest that counts now applies."""


class TemplateMetadata(ApiModel):
    """Labels and annotations of the pool's nodes."""

    labels: (
        Annotated[
            dict[str, LabelValue],
            BeforeValidator(without_nulls),
            Field(max_length=100, json_schema_extra={"x-kubernetes-map-type": "atomic"}),
            Obeys(*NODE_POOL_LABEL_RULES),
        ]
        | None
    ) = None
    """Labels of every node of the pool."""
    annotations: Annotated[StringMap, Field(json_schema_extra={"x-kubernetes-map-type": "granular"})] | None = None
    """Annotations of every node of the pool."""


_IMMUTABLE_CLASS = Obeys(
    UpdateRule(
        message="nodeClassRef.group is immutable",
        cel="self.group == oldSelf.group",
        holds=lambda old, new: new.group == old.group,
    ),
    UpdateRule(
        message="nodeClassRef.kind is immutable",
        cel="self.kind == oldSelf.kind",
        holds=lambda old, new: new.kind == old.kind,
    ),
)


class TemplateSpec(ApiModel):
    """What every claim of the pool asks for."""

    node_class_ref: Annotated[NodeClassReference, _IMMUTABLE_CLASS]
    """The NodeClass; group and kind cannot change, the name can."""
    requirements: NodePoolRequirements
    """Conditions on the nodes' labels."""
    taints: Taints | None = None
    """Taints of every node."""
    startup_taints: Taints | None = None
    """Taints that every node starts with and that others take off soon; pods need not tolerate them."""
    termination_grace_period: Duration | None = None
    """How long a node may take to drain before its pods are deleted; without end if absent."""
    expire_after: NillableDuration = "720h"
    """The age at which a node is replaced; Never turns it off."""


class NodeClaimTemplate(ApiModel):
    """What every claim of the pool is made from."""

    metadata: TemplateMetadata | None = None
    """Labels and annotations of the nodes."""
    spec: TemplateSpec
    """What every claim asks for."""


class NodePoolSpec(ApiModel):
    """Which nodes the pool may make, how many, and when they go again."""

    rules = (
        UpdateRule(
            message="Cannot transition NodePool between static (replicas set) and dynamic (replicas unset)"
            " provisioning modes",
            cel="has(self.replicas) == has(oldSelf.replicas)",
            holds=lambda old, new: (new.replicas is None) == (old.replicas is None),
        ),
        Rule(
            message="only 'limits.nodes' is supported on static NodePools",
            cel="!has(self.replicas) || !has(self.limits) || self.limits.all(name, name == 'nodes')",
            holds=lambda spec: spec.replicas is None or set(spec.limits or ()) <= {"nodes"},
        ),
        Rule(
            message="'weight' is not supported on static NodePools",
            cel="!has(self.replicas) || !has(self.weight)",
            holds=lambda spec: spec.replicas is None or spec.weight is None,
        ),
    )

    template: NodeClaimTemplate
    """What every claim of the pool is made from."""
    disruption: Annotated[Disruption, Field(json_schema_extra={"default": {"consolidateAfter": "0s"}})] = Field(
        default_factory=Disruption
    )
    """When and how fast nodes may be disrupted."""
    limits: Quantities | None = None
    """How much the pool may hold in all."""
    weight: Annotated[Int32, Field(ge=1, le=100)] | None = None
    """Pools of greater weight are tried first; absent counts as 0."""
    replicas: Annotated[Int64, Field(ge=0)] | None = None
    """How many nodes to keep whether pods need them or not; absent, pods decide."""


class NodePoolStatus(ApiModel):
    """What is known of the pool."""

    resources: Quantities | None = None
    """How much the pool holds."""
    nodes: Int64 = 0
    """How many nodes the pool has."""
    node_class_observed_generation: Int64 | None = None
    """The generation of the NodeClass that registration health speaks of."""
    conditions: Conditions | None = None
    """What is true of the pool."""


class NodePool(ApiModel):
    """A NodePool says which nodes may be made for pending pods, and when they may be taken away."""

    api_version: Literal["karpenter.sh/v1"]
    kind: Literal["NodePool"]
    metadata: Metadata
    spec: NodePoolSpec
    status: NodePoolStatus | None = None
