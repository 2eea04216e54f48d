"""What does a DisruptionPolicy say?

When nodes of the selected NodePools may begin to leave. Whether a zone or a date exists is beyond a schema: the parser
judges it, and the condition Ready says so.
"""

from typing import Annotated, Literal, TypeVar

from pydantic import Field

from dovetail.api.own.questions import FiringAlerts
from dovetail.api.own.rollout_strategy import NodeRolloutStrategy, NodeShare
from dovetail.api.schema.conditions import Conditions
from dovetail.api.schema.field_types import QUALIFIED_NAME, Bool, Duration, Int, LabelValue, Moment, StringMap
from dovetail.api.schema.object_meta import Metadata
from dovetail.api.schema.rules import Rule
from dovetail.api.schema.structural import ApiModel

MOST_WINDOWS = 50

TIME_OF_DAY = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"
_DAY = r"(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
DATES = rf"^({_DAY}(/{_DAY})?|[0-9]{{4}}-{_DAY}(/[0-9]{{4}}-{_DAY})?)$"

_LIST = {"x-kubernetes-list-type": "atomic"}
Reason = Literal["Empty", "Underutilized", "Drifted", "Unhealthy", "Expired", "Requested"]
Reasons = Annotated[tuple[Reason, ...], Field(min_length=1, max_length=6, json_schema_extra=_LIST)]
Day = Literal["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
TimeOfDay = Annotated[str, Field(max_length=5, pattern=TIME_OF_DAY)]
T = TypeVar("T")
Few = Annotated[tuple[T, ...], Field(max_length=MOST_WINDOWS, json_schema_extra=_LIST)]
Known = Annotated[tuple[T, ...], Field(json_schema_extra=_LIST)]

_HAS_VALUES = Rule(
    message="In and NotIn need values, Exists and DoesNotExist have none",
    cel="(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
    holds=lambda e: (e.operator in ("In", "NotIn")) == bool(e.values),
)


class SelectorExpression(ApiModel):
    """A condition on one label of a NodePool."""

    rules = (_HAS_VALUES,)

    key: Annotated[str, Field(max_length=316, pattern=QUALIFIED_NAME)]
    """The label."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """How the label's value relates to the values."""
    values: Few[LabelValue] | None = None
    """The values, for In and NotIn."""


class NodePoolSelector(ApiModel):
    """Labels of NodePools; nothing in it selects every NodePool."""

    match_labels: StringMap | None = None
    """Labels with exactly these values."""
    match_expressions: Few[SelectorExpression] | None = None
    """Conditions, all of which must hold."""


class PolicyWindow(ApiModel):
    """Times of day, on some days, for some reasons; what is left out restricts nothing."""

    days: Annotated[tuple[Day, ...], Field(min_length=1, max_length=7, json_schema_extra=_LIST)] | None = None
    """Days of the week; of a window over midnight, the day on which it begins."""
    dates: Annotated[Few[Annotated[str, Field(max_length=21, pattern=DATES)]], Field(min_length=1)] | None = None
    """Dates, or first and last of several days: 2026-12-24/2027-01-02, or 05-01 for that day of every year."""
    from_: TimeOfDay = Field("00:00", alias="from")
    """When it begins by the wall clock."""
    to: TimeOfDay = "00:00"
    """When it ends by the wall clock; where that is not after its beginning, on the next day."""
    reasons: Reasons | None = None
    """The reasons for which nodes leave that it is about; all where it names none."""


class PolicyRate(ApiModel):
    """How many nodes may begin to leave within any period of a length."""

    nodes: Annotated[str, Field(max_length=10, pattern=r"^((100|[0-9]{1,2})%|[0-9]{1,9})$")]
    """A number of nodes of each NodePool, or a percentage of those that it has, rounded down and at least one; 0% is
    none."""
    per: Duration
    """The length of the period, from 1m to 168h: no such period has more, whenever it begins."""
    reasons: Reasons | None = None
    """The reasons for which nodes leave that it counts and holds; all where it names none."""


_SAYS_SOMETHING = Rule(
    message="spread or hardAfter must be given",
    cel="has(self.spread) || has(self.hardAfter)",
    holds=lambda e: e.spread is not None or e.hard_after is not None,
)


class PolicyExpiry(ApiModel):
    """How nodes that grow old are replaced before they are deleted."""

    rules = (_SAYS_SOMETHING,)

    spread: Duration | None = None
    """Nodes of one age are replaced over so long before their expireAfter, instead of all at once."""
    hard_after: Duration | None = None
    """How long after its expireAfter a node that could not be replaced is deleted in any case; left out, at once."""


class PolicyRolloutWhen(ApiModel):
    """What is a change that goes step by step."""

    drifted: NodeShare = "1"
    """So many nodes that a change of the NodePool, its NodeClass or images concerns, or a percentage, rounded up."""


class PolicyRollout(NodeRolloutStrategy):
    """How changes of its NodePools, their NodeClasses and images reach the nodes. The NodeRollout that is made of each
    change has a copy of all but `when`."""

    when: PolicyRolloutWhen | None = None
    """Fewer nodes go by budgets alone; left out, one is enough."""


Blocker = Literal[
    "HookWaits",
    "DoNotDisrupt",
    "SeveralPdbs",
    "PdbBlocks",
    "MoveHeld",
    "EvictionFails",
    "VolumesAttached",
    "PodTerminates",
    "TurnWaits",
]


class PolicyEscalation(ApiModel):
    """What is done once something has held a drain for a while."""

    after: Duration
    """How long the same thing has held the drain."""
    do: Literal["Notify", "Ask", "Force"]
    """Notify: Events. Ask: a person decides with `dovetail decide`. Force: the pods are deleted, each with its own
    grace period; hooks and volumes are waited for unless `blockers` names HookWaits or VolumesAttached."""
    default: Literal["Wait"] = "Wait"
    """Of Ask, what happens until somebody decides: nothing, until the next step."""
    reasons: Reasons | None = None
    """The reasons for which nodes leave that it is about; all where it names none."""
    blockers: Annotated[tuple[Blocker, ...], Field(min_length=1, max_length=9, json_schema_extra=_LIST)] | None = None
    """What holds the drain; everything where it names nothing, but Force then leaves HookWaits, DoNotDisrupt
    and VolumesAttached alone."""


class PolicyHooks(ApiModel):
    """What becomes of hooks that nobody takes off."""

    timeout: Duration = "1h"
    """How long each is waited for."""
    on_timeout: Literal["Hold", "Proceed"] = "Hold"
    """Hold: a person is asked. Proceed: the node goes on without it."""


class PolicyDrain(ApiModel):
    """What is done about drains that something holds."""

    escalation: Few[PolicyEscalation] | None = None
    """The steps, by their times."""
    hooks: PolicyHooks | None = None
    """How long hooks hold."""


class PolicyHealth(ApiModel):
    """How well the nodes must be for others to begin to leave."""

    max_not_ready: Annotated[str, Field(max_length=10, pattern=r"^((100|[0-9]{1,2})%|[0-9]{1,9})$")] = "10%"
    """How many nodes of the selected NodePools, taken together, may be not ready: a number, or a percentage of them."""
    alerts: FiringAlerts | None = None
    """Nor while such an alert fires, or while nobody can tell for 2m: the Prometheus of the worker's settings is asked.
    It is about all selected NodePools."""
    stable_for: Duration = "10m"
    """How long it must have passed without a break after it failed, up to 168h."""


class PolicyBreaker(ApiModel):
    """When replacements that come to nothing hold the others of their NodePool for the same reason."""

    failures: Annotated[Int, Field(ge=1, le=20)] = 3
    """So many failures open it: a replacement that was not ready in time, or not ready within 5m of having been so."""
    within: Duration = "1h"
    """The time within which so many must fail, from 1m to 168h."""
    first: Duration = "30m"
    """How long nothing begins after it opened; then exactly one is tried, and each time that fails it is twice as
    long."""
    longest: Duration = "8h"
    """How long it is at most, up to 168h."""


class DisruptionPolicySpec(ApiModel):
    """When nodes may begin to leave, and how those that grow old do."""

    node_pool_selector: NodePoolSelector | None = None
    """The NodePools that it is about; every NodePool where it is left out."""
    time_zone: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_+/-]+$")] = "UTC"
    """The zone of its times, by its IANA name: Europe/Berlin."""
    allow: Few[PolicyWindow] | None = None
    """When nodes may begin to leave. A reason that one of these names is closed outside all that name it."""
    deny: Few[PolicyWindow] | None = None
    """When nodes may not begin to leave; wins over allow."""
    rates: Few[PolicyRate] | None = None
    """How many nodes of a NodePool may begin to leave within a time. What a person requests counts and is not held."""
    expiry: PolicyExpiry | None = None
    """Nodes are replaced first when they expire, as they are when they have drifted; left out, they are deleted."""
    rollout: PolicyRollout | None = None
    """A NodeRollout is made of each change, and no node goes before that. One policy of a NodePool may have it."""
    drain: PolicyDrain | None = None
    """What is done about drains that something holds; left out, they are waited for."""
    health: PolicyHealth | None = None
    """Nothing voluntary begins while too many nodes are not ready; what a person requests does."""
    breaker: PolicyBreaker | None = None
    """When failed replacements hold others; left out, its defaults hold. Of several policies the strictest counts."""


class PolicyOpening(ApiModel):
    """What the policy says of one reason now."""

    reason: Reason
    """The reason for which nodes leave."""
    open: Bool
    """Whether nodes may begin to leave for it."""
    until: Moment | None = None
    """When that changes next."""
    why: Annotated[str, Field(max_length=1024)] | None = None
    """What keeps it closed."""


class PolicyTakenRate(ApiModel):
    """What of a rate a NodePool has taken."""

    node_pool: Annotated[str, Field(max_length=253)]
    """The NodePool."""
    rate: Annotated[Int, Field(ge=0)]
    """The place of the rate in the list, from 0."""
    begun: Annotated[Int, Field(ge=0)]
    """How many of its nodes have begun to leave within the period."""
    allowed: Annotated[Int, Field(ge=0)]
    """How many may, within any."""
    until: Moment | None = None
    """When the next one may begin, where none may now."""


class PolicyHealthState(ApiModel):
    """What the last look found of the nodes' health."""

    state: Literal["Passing", "Failing"]
    """Failing: nothing voluntary begins."""
    since: Moment
    """Since when."""
    until: Moment | None = None
    """When nodes may begin to leave again, if it passes until then."""
    message: Annotated[str, Field(max_length=1024)] | None = None
    """What failed, or did last."""


class PolicyAlertsState(ApiModel):
    """What Prometheus said of the alerts of `health`."""

    result: Literal["Passing", "Unknown", "Failing"]
    """Only Passing lets something begin."""
    since: Moment | None = None
    """Since when."""
    asked: Moment | None = None
    """When it was answered last, to the minute while it says the same."""
    message: Annotated[str, Field(max_length=1024)] | None = None
    """Which alerts, or why nothing is known."""


class DisruptionPolicyStatus(ApiModel):
    """What is known of the policy."""

    node_pools: Known[str] | None = None
    """The NodePools that it selects."""
    openings: Known[PolicyOpening] | None = None
    """What it says of each reason that it names."""
    rates: Known[PolicyTakenRate] | None = None
    """What of its rates is taken, by NodePool; where nothing is, nothing is said."""
    health: PolicyHealthState | None = None
    """The health that it asks for; nothing before it failed for the first time."""
    alerts: PolicyAlertsState | None = None
    """The alerts that its health asks for."""
    conditions: Conditions | None = None
    """Whether it is understood."""


class DisruptionPolicy(ApiModel):
    """A DisruptionPolicy says when nodes of some NodePools may begin to leave."""

    api_version: Literal["dovetail.sh/v1alpha1"]
    kind: Literal["DisruptionPolicy"]
    metadata: Metadata
    spec: DisruptionPolicySpec
    status: DisruptionPolicyStatus | None = None
