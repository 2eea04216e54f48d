"""How does a change reach the nodes of a NodePool?

By a few first, then more. A DisruptionPolicy says it of every change of its NodePools, a NodeRollout of its own.
"""

from typing import Annotated, ClassVar, Literal, Protocol, TypeVar

from pydantic import AfterValidator, Field

from dovetail.api.own.questions import Bound, FiringAlerts
from dovetail.api.schema.field_types import Bool, Duration, Int, LabelValue
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


class _Named(Protocol):
    name: str


N = TypeVar("N", bound=_Named)


def _names_once(named: tuple[N, ...]) -> tuple[N, ...]:
    unique_keys_only("name", [each.name for each in named])
    return named


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


_CHOSEN = Rule(
    message="exactly one of alerts and query must be given",
    cel="has(self.alerts) != has(self.query)",
    holds=lambda gate: (gate.alerts is None) != (gate.query is None),
)
_OWN_NAME = Rule(
    message="the gate nodes is always there; choose another name",
    cel="self.name != 'nodes'",
    holds=lambda gate: gate.name != "nodes",
)
_BOUNDED = Rule(
    message="min or max must be given",
    cel="has(self.min) || has(self.max)",
    holds=lambda query: query.min is not None or query.max is not None,
)


class GateQuery(ApiModel):
    """An expression that Prometheus evaluates."""

    rules = (_BOUNDED,)

    expr: Annotated[str, Field(min_length=1, max_length=2048)]
    """In PromQL. Every series of its answer must be within the bounds; an empty answer, or no number, is Unknown."""
    min: Bound | None = None
    """The least that passes."""
    max: Bound | None = None
    """The most that passes."""
    failures: Annotated[Int, Field(ge=1, le=20)] = 1
    """So many answers in a row must fail it."""
    every: Duration = "1m"
    """How often it is asked, from 15s to 10m."""


class RolloutGateRule(ApiModel):
    """What the Prometheus of the worker's settings is asked. What is not known lets nothing begin."""

    rules = (_CHOSEN, _OWN_NAME)

    name: Annotated[LabelValue, Field(min_length=1)]
    """What people call it: slo."""
    alerts: FiringAlerts | None = None
    """Passes while no such alert fires."""
    query: GateQuery | None = None
    """Passes while a value is within bounds."""


Gates = Annotated[
    tuple[RolloutGateRule, ...],
    AfterValidator(_names_once),
    Field(max_length=10, json_schema_extra=BY_NAME),
]


class Tolerance(ApiModel):
    """By how many more pods than before one owner may do worse; the larger counts."""

    pods: Annotated[Int, Field(ge=0, le=10_000)] | None = None
    """A number of pods; with 1 no application of one replica is ever judged."""
    percent: Annotated[Int, Field(ge=0, le=100)] | None = None
    """A percentage of the pods that the owner wants, rounded down."""


class NodesGateRule(ApiModel):
    """How strict the gate nodes is."""

    enabled: Bool = True
    """Whether pods are compared at all; where not, it passes and says so."""
    tolerance: Tolerance | None = None
    """So many more pods are no objection; left out, none."""


class NodeRolloutStrategy(ApiModel):
    """The steps, and what becomes of launches and failures meanwhile."""

    rules: ClassVar[tuple[AnyRule, ...]] = (_ENDS_WITH_ALL, _ASKS_BEFORE_THE_END)

    steps: Steps
    """The steps, in their order; a change of them counts for what is still to come."""
    gates: Gates | None = None
    """What is asked beside the gate nodes, which every roll-out has."""
    nodes_gate: NodesGateRule | None = None
    """How strict the gate nodes is, which compares pods with those on other nodes and with the step's beginning."""
    order: Literal["Age", "Zone"] = "Age"
    """Which nodes a step takes first. Age: the oldest. Zone: one zone after another."""
    max_duration: Duration | None = None
    """After so long no further node and no further step begins, until a person decides; left out, it never ends."""
    progress_deadline: Duration | None = None
    """After so long without one more node at the target it is Stalled, from 10m to 720h; left out, an hour."""
    new_launches: NewLaunches = "Target"
    """The images of nodes that come for another reason meanwhile. Stable: those that nodes ran before the change."""
    on_failure: OnFailure = "Pause"
    """What it does where a gate has failed for three minutes, or three replacements in a row were not ready."""
    max_stable_age: Duration = "720h"
    """For how long launches are kept from the images of the target, so that no security patch is kept out for ever."""
