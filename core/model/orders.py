"""Orders: what the Caretaker found that must be done, one kind each.

Made by core.lifecycle from a snapshot and the cloud's list, carried out by one activity per kind. An order says what
was seen; the step that carries it out looks again, live, before it acts.
"""

from dataclasses import dataclass
from typing import Literal

from core.model.steps import ClaimRef


@dataclass(frozen=True, slots=True, kw_only=True)
class StartOwner:
    """A claim without its workflow: LaunchNode where it is not initialised, TerminateNode where it is deleting."""

    kind: Literal["start_owner"] = "start_owner"
    claim: ClaimRef
    workflow_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRelease:
    """A deleting managed node without a claim (T-10)."""

    kind: Literal["start_release"] = "start_release"
    node: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeOffMark:
    """A mark whose owner does not run."""

    kind: Literal["take_off_mark"] = "take_off_mark"
    claim: ClaimRef
    owner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteClaim:
    """A claim that has expired (L-60), whose instance is gone (G-2), whose node is to be repaired or is surplus."""

    kind: Literal["delete_claim"] = "delete_claim"
    claim: ClaimRef
    reason: str  # expired, garbage_collected, unhealthy, static_scale_down
    message: str = ""
    at_once: bool = False  # write a deadline that has passed first (G-15)


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminateOrphan:
    """An instance with this cluster's tag and no claim, seen twice and older than 30 s (G-6)."""

    kind: Literal["terminate_orphan"] = "terminate_orphan"
    provider_id: str
    claim_uid: str = ""


Order = StartOwner | StartRelease | TakeOffMark | DeleteClaim | TerminateOrphan


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """What was found in one look, bounded; `more` says that the next look should follow at once."""

    orders: tuple[Order, ...] = ()
    more: bool = False
