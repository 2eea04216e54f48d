"""What workflows ask of steps.

An empty text stands for "none": stored histories hold it.
"""

from dataclasses import dataclass
from typing import Literal

from dovetail.messages.plans import ClaimRefusal, DisruptionCommand, ProposedNode, Seen, Target
from dovetail.messages.states import Held
from dovetail.messages.subjects import ClaimRef
from dovetail.messages.writes import Write
from dovetail.model.own.rollout_places import RolloutBasis, RolloutPlace


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisioningRequest:
    """Asks for the next plan for pending pods. One that only nominates nodes that are nominated already is no plan."""

    must_see: tuple[Write, ...] = ()
    nominated: tuple[str, ...] = ()
    launching: tuple[ClaimRef, ...] = ()
    launching_since: float = 0.0
    must_see_until: float = 0.0  # after this moment nothing of must_see is waited for
    refused_pods: tuple[str, ...] = ()  # a claim for them is proposed only once the API server would take it
    claim_refusals: tuple[ClaimRefusal, ...] = ()  # what was found about them


@dataclass(frozen=True, slots=True, kw_only=True)
class DisruptionRequest:
    """Asks for the next disruption plan. Held plans are checked again when due; their nodes are no candidates."""

    must_see: tuple[Write, ...] = ()
    nominations: tuple[tuple[str, float], ...] = ()
    expected: tuple[str, ...] = ()  # those of them that end with the last pod that waits
    expected_seen: int = 0  # once at least these Pods are seen
    held: tuple[Held, ...] = ()
    quiet_until: float = 0.0
    must_see_until: float = 0.0  # after this moment nothing of must_see is waited for
    holds_enough: bool = False  # nothing new is chosen; held plans are checked


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
    places: tuple[RolloutPlace, ...] | None = None  # of roll-outs, that it was decided by; None: nobody asks

    @property
    def basis(self) -> RolloutBasis | None:
        """What it was decided by of roll-outs."""
        return None if self.places is None else RolloutBasis(places=self.places)

    def index(self, position: int) -> int:
        """The index under which the proposed node at that position is named."""
        return self.indexes[position] if self.indexes else position


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkRequest:
    """Mark these targets for this owner, unless what stands there now is not what was decided on."""

    owner: str
    command: DisruptionCommand
    seen: Seen


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
    """Delete this claim. A plan's delete has the target and the reason, for the metrics; any other has neither."""

    name: str
    uid: str
    pool: str = ""
    target: Target | None = None
    reason: str = ""
    because: str = ""  # an Ending, for what is no plan's
    because_words: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletesRequest:
    """Delete the claims of these targets of one disruption."""

    targets: tuple[Target, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyRequest:
    """Wait until these replacements are initialised, but not beyond a moment."""

    claims: tuple[ClaimRef, ...]
    until: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveBackRequest:
    """Give back the replacements that a plan made and that are not needed, found by name."""

    plan_id: str
    names: tuple[str, ...]
    why: str = ""
    method: str = ""  # whose replacements they are; counted where one never came up


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeRequest:
    nodes: tuple[str, ...]
    reason: str
    message: str
    warning: bool = False
