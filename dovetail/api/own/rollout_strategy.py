"""How does a change reach the nodes of a NodePool?

By a few first, then more. A DisruptionPolicy says it of every change of its NodePools, a NodeRollout of its own.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from dovetail.api.schema.field_types import Duration, LabelValue
from dovetail.api.schema.rules import AnyRule, Rule, unique_keys_only
from dovetail.api.schema.structural import ApiModel

NodeShare = Annotated[str, Field(max_length=4, pattern=r"^(100%|[1-9][0-9]?%|[1-9][0-9]{0,3})$")]

NewLaunches = Literal["Target", "Stable"]
OnFailure = Literal["Pause", "RollBack"]


class StepApproval(ApiModel):
    """A person is asked once the step has soaked and its gates pass."""

    expires_after: Duration = "24h"
    """How long the question stands."""
    on_expiry: Literal["Pause"] = "Pause"
    """What becomes of it then: it is Paused, until somebody writes its intent anew and it is asked again."""


class NodeRolloutStep(ApiModel):
    """How many nodes may be at the target, and how long they prove themselves before the next step."""

    name: Annotated[LabelValue, Field(min_length=1)]
    """What people call it: canary."""
    to: NodeShare
    """A number of nodes, or a percentage of the NodePool's, rounded up. Nodes that came for pending pods count."""
    soak: Duration = "0s"
    """How long so many nodes stay at the target before the next step begins."""
    approve: StepApproval | None = None
    """The next step begins only when a person approves that; left out, nobody is asked."""


def _names_once(steps: tuple[NodeRolloutStep, ...]) -> tuple[NodeRolloutStep, ...]:
    unique_keys_only("name", [step.name for step in steps])
    return steps


BY_NAME = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
Steps = Annotated[
    tuple[NodeRolloutStep, ...],
    AfterValidator(_names_once),
    Field(min_length=1, max_length=20, json_schema_extra=BY_NAME),
]


_ASKS_BEFORE_THE_END = Rule(
    message="the last step cannot have approve: no step comes after it",
    cel="!has(self.steps[size(self.steps) - 1].approve)",
    holds=lambda spec: spec.steps[-1].approve is None,
)
_ENDS_WITH_ALL = Rule(
    message="the last step must be to 100%",
    cel="self.steps[size(self.steps) - 1].to == '100%'",
    holds=lambda spec: spec.steps[-1].to == "100%",
)


class RolloutStrategy(ApiModel):
    """The steps, and what becomes of launches and failures meanwhile."""

    rules: ClassVar[tuple[AnyRule, ...]] = (_ENDS_WITH_ALL, _ASKS_BEFORE_THE_END)

    steps: Steps
    """The steps, in their order; a change of them counts for what is still to come."""
    new_launches: NewLaunches = "Target"
    """The images of nodes that come for another reason meanwhile. Stable: those that nodes ran before the change."""
    on_failure: OnFailure = "Pause"
    """What it does where its gate has failed for three minutes, or three replacements in a row were not ready."""
    max_stable_age: Duration = "720h"
    """For how long launches are kept from the images of the target, so that no security patch is kept out for ever."""
