"""Plans: what a decision hands to a workflow, complete and small.

Carried through Temporal, carried out by workflows. What crosses into a history holds only tuples (of pairs for
mappings), sorted, because a frozenset iterates in another order in another process and a replay would break.
Lists of instance types are long and shared by many proposed nodes, so a plan stores each list once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, Protocol

from dovetail.model.nodes import NodeClassRef
from dovetail.model.own.rollout_places import RolloutBasis, RolloutPlace
from dovetail.model.pods import Expression
from dovetail.model.scheduling.taints import Taint
from dovetail.model.snapshot import Snapshot

Pairs = tuple[tuple[str, str], ...]

# A plan is begun within this time of its making, or not at all: after a longer delay it is decided anew.
PLAN_SECONDS: Final = 60.0

# STA-10: for so long a node is left alone on which pods are expected, where batches last as long as they do by default.
NOMINATION_SECONDS: Final = 20.0
SHORTEST_NOMINATION: Final = 10.0


def nomination_seconds(longest_batch: float) -> float:
    """How long a node is nominated: twice the longest batch window, and not less than ten seconds."""
    return max(2 * longest_batch, SHORTEST_NOMINATION)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPod:
    """A pod that a plan counts on: enough to nominate it and to distinguish it from a later one of the same name."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedNode:
    """A node that does not exist yet: everything that its NodeClaim will say."""

    pool: str
    pool_uid: str
    node_class: NodeClassRef
    requirements: tuple[Expression, ...]  # without instance types, which stand in the plan's lists
    type_list: int  # index into the plan's `type_lists`, in price order
    min_types: int | None = None  # minValues of the instance-type requirement
    requests: tuple[tuple[str, int], ...] = ()
    labels: Pairs = ()
    annotations: Pairs = ()
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    expire_after: float | None = None
    termination_grace: float | None = None
    pods: tuple[PlannedPod, ...] = ()
    buffers: tuple[tuple[str, int], ...] = ()  # buffer UID -> how many of its virtual pods it is for
    name: str = ""  # of its claim, where the plan's id does not name it: a number of a static pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """How many were refused for one reason, and a few examples in words."""

    reason: str
    count: int
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRefusal:
    """Why the API server takes no NodeClaim of a pool for these pods. `whole`: it takes none for any pod."""

    pool: str
    why: str
    pods: tuple[str, ...]  # UIDs
    whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Up to which resourceVersion of each kind a plan's snapshot had seen, when it was taken, and when the plan was
    ready: a decision about a very large cluster is not discarded because it took long."""

    taken_at: float
    versions: tuple[tuple[str, int], ...] = ()
    ready_at: float = 0.0
    places: tuple[RolloutPlace, ...] = ()  # of each roll-out that may hold nodes back

    @classmethod
    def of(cls, snapshot: Snapshot) -> "Seen":
        known = sorted(snapshot.rollouts.items())
        places = tuple(rollout.place for _, rollout in known if not rollout.is_over)
        return cls(
            taken_at=snapshot.now,
            versions=tuple(sorted(snapshot.seen.items())),
            places=places,
        )

    @property
    def basis(self) -> RolloutBasis:
        """What the plan went by of roll-outs."""
        return RolloutBasis(places=self.places)

    @property
    def decided_at(self) -> float:
        """The moment from which the plan ages."""
        return max(self.taken_at, self.ready_at)

    def ready(self, now: float) -> "Seen":
        """What was seen, for a plan that is handed out now."""
        return replace(self, ready_at=now)

    def why_too_old(self, now: float) -> str | None:
        """Why nothing may be begun on it any more, in words; None while it may."""
        age = now - self.decided_at
        return f"it was decided {age:.0f} s ago, on what may have changed since" if age > PLAN_SECONDS else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisioningPlan:
    """Claims to create for pending pods, and nodes that pending pods are expected to land on."""

    kind: Literal["provisioning"] = "provisioning"
    seen: Seen
    proposed: tuple[ProposedNode, ...] = ()
    type_lists: tuple[tuple[str, ...], ...] = ()
    nominated: tuple[str, ...] = ()  # nodes, for nominations
    refusals: tuple[Refusal, ...] = ()
    more: bool = False  # cut to size: go round again at once
    nominate_for: float = NOMINATION_SECONDS
    claim_refusals: tuple[ClaimRefusal, ...] = ()  # all that are known, of pods that wait


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One node to disrupt; its UIDs distinguish it from any later one of the same name."""

    claim: str
    claim_uid: str
    node: str
    node_uid: str
    provider_id: str
    pool: str
    pods: tuple[str, ...] = ()  # UIDs of the reschedulable pods that the decision knew of
    capacity_type: str = ""  # this and the next two are labels of what is counted
    policy: str = ""
    mode: str = ""
    # The claim's termination grace period, or what a repair policy leaves of it: a drain before the delete lasts no
    # longer.
    grace: float | None = None
    condition: str = ""  # of the node, for which it is repaired


NOBODY: Final = ""  # in the place of a namespace: nodes without pods that would have to move
OTHERS: Final = "*"  # in the place of a namespace: all that are not named


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What part of a command's nodes is for pods of a namespace; the shares of a command add up to one."""

    namespace: str
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DisruptionCommand:
    """One DisruptNodes workflow: targets that leave together, and what must be ready before they do."""

    reason: str  # Empty, Drifted, Underutilized, Unhealthy, Expired, Requested
    method: str
    targets: tuple[Target, ...]
    replacements: tuple[ProposedNode, ...] = ()
    destinations: tuple[str, ...] = ()  # existing nodes that the simulation moved pods to, to be nominated
    reboots: bool = False  # the instance is rebooted in place: nothing is marked or deleted
    terminates_first: str = ""  # why its replacement is not made before it leaves
    drain_first: bool = False  # the pool asks for taint -> replace -> drain -> delete
    summary: str = ""  # the decision in one line, for events and for people
    savings: float = 0.0  # estimated, per hour (DIS-10)
    price: float = 0.0  # of the targets, per hour, when it was decided
    asked_by: str = ""  # the people who asked for it
    shares: tuple[Share, ...] = ()  # whose pods its nodes are for; none where all are empty, and in plans of 0.1.0


class _Decided(Protocol):
    @property
    def reboots(self) -> bool: ...

    @property
    def terminates_first(self) -> str: ...

    @property
    def replacements(self) -> Sequence[object]: ...


def decision_of(command: _Decided) -> str:
    """What is done with the nodes of a command, in upstream's words."""
    if command.reboots:
        return "reboot"
    return "terminate-first" if command.terminates_first else "replace" if command.replacements else "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class DisruptionPlan:
    """What one disruption decision yields: commands that may run side by side, and the wait before they are checked."""

    kind: Literal["disruption"] = "disruption"
    seen: Seen
    commands: tuple[DisruptionCommand, ...]
    type_lists: tuple[tuple[str, ...], ...] = ()
    validate_after: float = 0.0  # seconds; 15 for emptiness and consolidation (DIS-134)
    nominate_for: float = NOMINATION_SECONDS


def plan_label(plan_id: str, index: int) -> str:
    """The value of the annotation dovetail.sh/plan on a claim."""
    return f"{plan_id}/{index}"


def claim_name(pool: str, plan_id: str, index: int) -> str:
    """The name of the claim that a plan creates at that index: the same however often the step runs.

    The tail of a uuid7 is its random part; names stay under 63 characters as node labels need.
    """
    return f"{pool[:40]}-{plan_id.replace('-', '')[-10:]}-{index}"


def name_of(proposed: ProposedNode, plan_id: str, index: int) -> str:
    return proposed.name or claim_name(proposed.pool, plan_id, index)
