"""What does a NodeRollout say?

How a change of one NodePool reaches its nodes: a few first, then more, each step after those before have proved
themselves. Dovetail writes how far it is into its status, which is all that is known of it.
"""

from typing import Annotated, Literal

from pydantic import Field

from dovetail.api.own.rollout_strategy import BY_NAME, NodeRolloutStrategy
from dovetail.api.schema.conditions import Conditions
from dovetail.api.schema.field_types import Int, Int32, Int64, LabelValue, Moment
from dovetail.api.schema.object_meta import Metadata
from dovetail.api.schema.rules import UpdateRule
from dovetail.api.schema.structural import ApiModel

State = Literal[
    "Waiting",
    "Replacing",
    "Soaking",
    "Judging",
    "Awaiting",
    "Paused",
    "Complete",
    "RollingBack",
    "Failed",
]
UserName = Annotated[str, Field(min_length=1, max_length=1024)]


class RolloutApproval(ApiModel):
    """What a person approves. An admission policy sees to it that `by` is who writes it."""

    step: Annotated[LabelValue, Field(min_length=1)]
    """The step that has proved itself, so that the one after it may begin."""
    digest: Annotated[str, Field(min_length=1, max_length=64)]
    """status.awaits.digest as that person has seen it."""
    by: UserName
    """As whom the API server knows that person."""
    at: Moment
    """When."""


class NodeRolloutSpec(NodeRolloutStrategy):
    """Which NodePool it is about, and by which steps its nodes are replaced."""

    rules = (
        *NodeRolloutStrategy.rules,
        UpdateRule(
            message="nodePool is immutable",
            cel="self.nodePool == oldSelf.nodePool",
            holds=lambda old, new: new.node_pool == old.node_pool,
        ),
    )

    node_pool: Annotated[str, Field(min_length=1, max_length=253)]
    """The NodePool whose drifted nodes it holds back. It waits for a change where none has drifted."""
    intent: Literal["Run", "Pause", "Abort", "Promote", "RollBack"] = "Run"
    """Pause and Abort let no further node and no further step begin; Promote goes to the last step at once; RollBack
    replaces the nodes at the target by such as were there before."""
    approval: RolloutApproval | None = None
    """Lets the next step begin, if what is asked for is still that; `dovetail rollout approve` writes it."""


class RolloutStepNow(ApiModel):
    """At which step it is."""

    name: str
    """The step that is permitted; empty while it waits for a change."""
    state: State
    """What it does there. Judging: nodes at the target are not ready after their soak, or a gate fails. Awaiting: a
    person's approval. Paused: nobody approved in time. RollingBack: nodes at the target leave. Failed: the target is
    refused until the spec is changed, or there is another target."""
    since: Moment
    """When it came there."""
    until: Moment | None = None
    """When the soak is over."""


class RolloutNodes(ApiModel):
    """The NodePool's nodes by what they are to the change."""

    total: Int32
    """All of them."""
    target: Int32
    """Those at the target."""
    leaving: Int32
    """Those that leave for it and have no replacement yet."""
    old: Int32
    """The others."""


class RolloutTarget(ApiModel):
    """What is rolled out."""

    node_pool_hash: str
    """The hash of the NodePool's template; of a later version of it than v3, with that before it: v4:1234."""
    begun: Moment
    """Since when."""
    launches: Annotated[str, Field(max_length=64)] | None = None
    """A digest of what the NodeClass makes of a launch; by a later version of its hash than v6, with that before it."""


class RolloutImage(ApiModel):
    """An image that nodes ran before the change."""

    id: Annotated[str, Field(min_length=1, max_length=256)]
    """The cloud's name of it."""
    instance_types: Annotated[tuple[str, ...], Field(max_length=10)] | None = None
    """Types that ran it; they say which image of the target it stands for."""


class RolloutStable(ApiModel):
    """What nodes ran before the change."""

    since: Moment
    """When the roll-out began."""
    images: Annotated[tuple[RolloutImage, ...], Field(max_length=20)] | None = None
    """The newest node's first."""
    why_not: Annotated[str, Field(max_length=256)] | None = None
    """Why launches are not kept to them."""


class RolloutFailed(ApiModel):
    """Why the target is refused."""

    generation: Annotated[Int64, Field(ge=0)]
    """The metadata.generation that failed; a later one is tried again."""
    message: Annotated[str, Field(max_length=1024)]
    """What was seen."""


class RolloutGate(ApiModel):
    """What a gate says; only a passing one lets a further step begin."""

    name: Annotated[str, Field(min_length=1, max_length=63)]
    """nodes: whether each owner's pods do as well on nodes at the target as on the others."""
    result: Literal["Passing", "Unknown", "Failing"]
    """Failing lets no further node begin either, nor does Unknown of a gate that is asked."""
    since: Moment | None = None
    """Since when it says that; of nodes, since when pods do worse at the target."""
    asked: Moment | None = None
    """When it was answered last, to the minute while it says the same; of nodes, when pods were seen to do worse."""
    failed: Annotated[Int, Field(ge=0)] | None = None
    """How often it has failed since it last passed, up to the number that fails it."""
    message: Annotated[str, Field(max_length=1024)] | None = None
    """Whose pods, which alerts, what value, or why nothing is known."""


class RolloutPassage(ApiModel):
    """What became of a step."""

    step: Annotated[str, Field(max_length=63)]
    """Its name."""
    began: Moment
    """When it began."""
    ended: Moment | None = None
    """When it ended; left out while it goes on."""
    result: Literal["Passed", "Promoted", "Failed", "RolledBack", "Superseded", "Left"] | None = None
    """How. Left: it began again at an earlier step."""
    message: Annotated[str, Field(max_length=256)] | None = None
    """Why."""


class RolloutAwaits(ApiModel):
    """What a person is asked."""

    digest: Annotated[str, Field(max_length=64)]
    """Of the target, the question, the steps to come, the nodes that are concerned and what the gates say."""
    since: Moment
    """When it was asked."""
    expires: Moment
    """Until when it can be approved."""
    shows: Annotated[str, Field(max_length=1024)] | None = None
    """What an approval lets happen."""
    generation: Annotated[Int64, Field(ge=0)] | None = None
    """The metadata.generation at which it expired; with a later one it is asked again."""


class RolloutAnswered(ApiModel):
    """What became of the last approval."""

    step: str
    """The step that it was for."""
    digest: Annotated[str, Field(max_length=64)]
    """What it was of."""
    by: UserName
    """Who approved."""
    at: Moment
    """When."""
    refused: Annotated[str, Field(max_length=1024)] | None = None
    """Why it let nothing begin; left out where it was accepted."""


class NodeRolloutStatus(ApiModel):
    """How far it is."""

    observed_generation: Annotated[Int64, Field(ge=0)] | None = None
    """The metadata.generation that was looked at."""
    step: RolloutStepNow | None = None
    """The step that is permitted, and what it does there."""
    target: RolloutTarget | None = None
    """The change that it is about."""
    nodes: RolloutNodes | None = None
    """How many nodes are where."""
    gates: Annotated[tuple[RolloutGate, ...], Field(max_length=20, json_schema_extra=BY_NAME)] | None = None
    """What the gates say."""
    owners: Annotated[str, Field(max_length=2048)] | None = None
    """How owners of the NodePool's pods fared when the step began: a digest of each one, then how many pods it wanted
    and, where some were not ready, after a colon how many."""
    history: (
        Annotated[
            tuple[RolloutPassage, ...], Field(max_length=20, json_schema_extra={"x-kubernetes-list-type": "atomic"})
        ]
        | None
    ) = None
    """The steps that it has been at, the latest last; older ones than 20 are left out."""
    stable: RolloutStable | None = None
    """What nodes ran before the change."""
    failure: RolloutFailed | None = None
    """Why the target is refused."""
    promoted_before: bool | None = None
    """Whether the intent Promote was given for an earlier target, so that this one goes step by step."""
    awaits: RolloutAwaits | None = None
    """What a person is asked."""
    answered: RolloutAnswered | None = None
    """What became of the last approval."""
    conditions: Conditions | None = None
    """Ready when complete, Reconciling while it goes on, Stalled where a person is needed, Healthy by its gates."""


class NodeRollout(ApiModel):
    """A NodeRollout lets one change of a NodePool reach its nodes step by step."""

    api_version: Literal["dovetail.sh/v1alpha1"]
    kind: Literal["NodeRollout"]
    metadata: Metadata
    spec: NodeRolloutSpec
    status: NodeRolloutStatus | None = None
