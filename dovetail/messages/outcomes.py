"""What steps answer, and how a disruption ended.

Everything here goes into histories: names, UIDs, numbers and reasons, never an object's body. Answers of one step
differ in `kind`, because the converter would otherwise decode into the first variant that fits. An empty text, and
-1 for an index, stand for "none": stored histories hold them.
"""

from dataclasses import dataclass
from typing import Literal

from dovetail.messages.plans import DisruptionPlan, ProvisioningPlan
from dovetail.messages.subjects import ClaimRef
from dovetail.messages.writes import Write


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutcome:
    """A step is done; what it wrote."""

    message: str = ""
    writes: tuple[Write, ...] = ()
    owned: bool = False  # of a delete: the step has started what terminates them


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
class Due:
    """A held plan, by its index, as it is after its second look."""

    plan: DisruptionPlan
    held: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Go:
    """A plan to carry out now. `held` is the index of the held plan that it came from, -1 for a new one."""

    kind: Literal["go"] = "go"
    plan: DisruptionPlan
    held: int = -1
    others: tuple[Due, ...] = ()  # held plans that are carried out at the same time


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """A held plan that is no longer valid, and why."""

    kind: Literal["drop"] = "drop"
    held: int
    why: str


ProvisioningAnswer = ProvisioningPlan | NothingPlanned


DisruptionAnswer = Hold | Go | Drop | NothingPlanned


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateOutcome:
    """The claims that exist now, and why others do not."""

    claims: tuple[ClaimRef, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()  # name -> why
    writes: tuple[Write, ...] = ()
    refused_pods: tuple[str, ...] = ()  # UIDs of pods whose claims the API server itself refused
    owned: bool = False  # the step has started their launches


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOutcome:
    """How a launch ended.

    launched: the claim says so and has its providerID. no_capacity, class_not_ready: nothing was launched and the claim
    is to be deleted; timed_out: past the launch deadline (LIF-41). deleting: deleted meanwhile. gone: there is no such
    claim.
    """

    kind: Literal["launched", "no_capacity", "class_not_ready", "deleting", "gone", "timed_out"]
    message: str = ""
    provider_id: str = ""
    writes: tuple[Write, ...] = ()
    # What was launched, for the record: its claim is gone one day. Empty where the instance was found on the claim.
    instance_type: str = ""
    zone: str = ""
    capacity_type: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinOutcome:
    """How the wait for a node ended: done, the claim was deleted, it is gone, or its time ran out."""

    kind: Literal["done", "deleting", "gone", "timed_out"]
    message: str = ""
    node: str = ""
    unmarked: bool = False  # the node came without the taint that keeps pods off until it is registered (LIF-22)
    writes: tuple[Write, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkOutcome:
    """The claims that carry the mark, and why others do not."""

    marked: tuple[str, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    writes: tuple[Write, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyOutcome:
    """Whether all replacements are initialised; if not, which failed and why."""

    kind: Literal["ready", "failed"]
    message: str = ""
    destinations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainOutcome(StepOutcome):
    """Drained; or the instance is gone, and volumes are not waited for either (TRM-5)."""

    instance_gone: bool = False
    detached: bool = False  # no volume was attached any more, which is written down
    unwritten: bool = False  # or is to be, with what the next step writes


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminationOutcome(StepOutcome):
    released: bool = False  # and the finalizers are off
    asked: float | None = None  # when it was first asked to end: no hook held it any more
    gone: float | None = None  # when it ended: in the middle between the last two looks at the cloud


@dataclass(frozen=True, slots=True, kw_only=True)
class DisruptionRecord:
    """How a disruption ended: what `temporal workflow result` shows."""

    outcome: Literal["done", "cancelled", "failed", "refused"]
    reason: str
    message: str = ""
    deleted: tuple[str, ...] = ()
    by: str = ""  # who called it off; empty: nobody said

    @property
    def words(self) -> str:
        """Why, and by whom, for people."""
        return f"{self.message} (by {self.by})" if self.by else self.message
