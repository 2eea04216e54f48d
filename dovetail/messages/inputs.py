"""What each workflow is given, and the state that the Scheduler carries from run to run.

Additive changes only: new code must read the input of an old run. Only tuples cross, sorted, so that every worker
iterates in the same order.
"""

from dataclasses import dataclass, replace
from typing import Final, Literal

from dovetail.messages.plans import (
    DisruptionCommand,
    DisruptionPlan,
    ProposedNode,
    ProvisioningPlan,
    Seen,
    Target,
)
from dovetail.messages.steps import ClaimRef
from dovetail.messages.writes import Write

FRESH_QUIET_SECONDS: Final = 20.0  # of a Scheduler that begins anew


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimInput:
    """For LaunchNode and TerminateNode."""

    cluster: str
    claim: ClaimRef


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeInput:
    """For ReleaseNode: a deleting managed node without a claim."""

    cluster: str
    node: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DisruptInput:
    """For DisruptNodes: one command of a plan, under a plan id of its own."""

    cluster: str
    plan_id: str
    command: DisruptionCommand
    type_lists: tuple[tuple[str, ...], ...] = ()
    seen: Seen


@dataclass(frozen=True, slots=True, kw_only=True)
class CaretakerInput:
    """For the Caretaker."""

    cluster: str
    generation: int = 0
    max_history: int = 0  # tests make it small, so that many generations pass
    must_see: "tuple[Remembered, ...]" = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """A write that the next snapshots must contain, until a moment."""

    write: Write
    until: float


def remembered(known: tuple[Remembered, ...], writes: tuple[Write, ...], until: float) -> tuple[Remembered, ...]:
    """With these writes added; a newer one of the same object replaces an older."""
    latest = {(r.write.kind, r.write.name): r for r in known}
    latest.update({(w.kind, w.name): Remembered(write=w, until=until) for w in writes})
    return tuple(latest[key] for key in sorted(latest))


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A plan that is checked again at a moment, on a fresh snapshot, before it is carried out (D-134)."""

    plan: DisruptionPlan
    due: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitedMark:
    """A disruption that was started and whose mark has not been seen yet."""

    workflow_id: str
    claims: tuple[ClaimRef, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recent:
    """One thing that the Scheduler did, for people."""

    at: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerState:
    """Everything that the Scheduler must not forget."""

    cluster: str
    generation: int = 0
    paused: bool = False
    must_see: tuple[Remembered, ...] = ()
    nominations: tuple[tuple[str, float], ...] = ()  # node -> until
    launching: tuple[ClaimRef, ...] = ()  # claims of the last round, which the next one waits for
    launching_since: float = 0.0
    awaiting: tuple[AwaitedMark, ...] = ()
    held: tuple[Held, ...] = ()
    recent: tuple[Recent, ...] = ()
    quiet_until: float = 0.0  # no disruption plan before: nominations may have been lost with a database
    max_history: int = 0  # tests make it small, so that many generations pass

    def remember(self, writes: tuple[Write, ...], until: float) -> "SchedulerState":
        """With these writes added to must_see."""
        return replace(self, must_see=remembered(self.must_see, writes, until))

    def nominate(self, nodes: tuple[str, ...], until: float) -> "SchedulerState":
        """With these nodes nominated until then, or longer where they already are."""
        latest = dict(self.nominations)
        latest.update({node: max(until, latest.get(node, 0.0)) for node in nodes})
        return replace(self, nominations=tuple(sorted(latest.items())))

    def forget(self, now: float) -> "SchedulerState":
        """Without what has run out."""
        return replace(
            self,
            must_see=tuple(r for r in self.must_see if r.until > now),
            nominations=tuple(n for n in self.nominations if n[1] > now),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisioningRequest:
    """Asks for the next plan for pending pods. A plan that only nominates nodes that are nominated says nothing new."""

    must_see: tuple[Write, ...] = ()
    nominated: tuple[str, ...] = ()
    launching: tuple[ClaimRef, ...] = ()
    launching_since: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DisruptionRequest:
    """Asks for the next disruption plan. Held plans are checked again when due; their nodes are no candidates."""

    must_see: tuple[Write, ...] = ()
    nominations: tuple[tuple[str, float], ...] = ()
    held: tuple[Held, ...] = ()
    quiet_until: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingPlanned:
    """An hour has passed, or the worker is leaving: ask again."""

    kind: Literal["nothing"] = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A plan was found that must be checked again at a moment before it is carried out."""

    kind: Literal["hold"] = "hold"
    plan: DisruptionPlan
    due: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Go:
    """A plan to carry out now. `held` is the index of the held plan that it came from, -1 for a new one."""

    kind: Literal["go"] = "go"
    plan: DisruptionPlan
    held: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """A held plan that no longer holds, and why."""

    kind: Literal["drop"] = "drop"
    held: int
    why: str


ProvisioningAnswer = ProvisioningPlan | NothingPlanned
DisruptionAnswer = Hold | Go | Drop | NothingPlanned


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateRequest:
    """Create the claims of a plan. The plan id makes it the same claims however often it runs."""

    plan_id: str
    proposed: tuple[ProposedNode, ...]
    type_lists: tuple[tuple[str, ...], ...]
    reason: str = "provisioned"
    owner: str = ""  # the disruption that these claims replace nodes for
    seen: Seen | None = None  # what the plan had seen, where creating begins it; a disruption begins with its mark
    indexes: tuple[int, ...] = ()  # of each proposed node in the plan, where they are not 0, 1, 2, …

    def index(self, position: int) -> int:
        """The index under which the proposed node at that position is named."""
        return self.indexes[position] if self.indexes else position


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateOutcome:
    """The claims that stand now, and why others do not."""

    claims: tuple[ClaimRef, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()  # name -> why
    writes: tuple[Write, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkRequest:
    """Mark these targets for this owner, unless what stands there now is not what was decided on."""

    owner: str
    command: DisruptionCommand
    seen: Seen


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkOutcome:
    """Which claims carry the mark, and why others do not."""

    marked: tuple[str, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    writes: tuple[Write, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmarkRequest:
    """Take the mark of this owner off these claims and their nodes. `rest`: leave them alone for a while."""

    owner: str
    claims: tuple[ClaimRef, ...]
    why: str = ""
    rest: Literal["", "failed", "cancelled"] = ""
    reason: str = ""  # what the disruption was for: the rest is from that alone


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRequest:
    """Delete this claim. A plan's delete says whose and why, which is counted; anybody else's says nothing."""

    name: str
    uid: str
    pool: str = ""
    target: Target | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyRequest:
    """Wait until these replacements are initialised, but not beyond a moment."""

    claims: tuple[ClaimRef, ...]
    until: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveBackRequest:
    """Give back the replacements that a plan made and nobody needs, found by name."""

    plan_id: str
    names: tuple[str, ...]
    why: str = ""
    method: str = ""  # whose replacements they are; counted where one never came up


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyOutcome:
    """Whether all replacements are initialised; if not, which failed and why."""

    kind: Literal["ready", "failed"]
    message: str = ""
    destinations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeRequest:
    """Say something about nodes to people."""

    nodes: tuple[str, ...]
    reason: str
    message: str
    warning: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DisruptionRecord:
    """How a disruption ended: what `temporal workflow result` shows."""

    outcome: Literal["done", "cancelled", "failed", "refused"]
    reason: str
    message: str = ""
    deleted: tuple[str, ...] = ()


def fresh_state(cluster: str, now: float, max_history: int = 0) -> SchedulerState:
    """The state of a Scheduler that knows nothing: no disruption for 20 s, because nominations may have been lost."""
    return SchedulerState(cluster=cluster, quiet_until=now + FRESH_QUIET_SECONDS, max_history=max_history)
