"""Orders: what the Caretaker has to do, one class for each kind.

Made by dovetail.lifecycle from a snapshot and the cloud's list, carried out by one activity per kind. An order says
what was seen; the step that carries it out looks again, live, before it acts.
"""

from dataclasses import dataclass
from typing import Literal, assert_never

from dovetail.messages.requests import CreateRequest
from dovetail.messages.subjects import ClaimRef
from dovetail.messages.writes import Write


@dataclass(frozen=True, slots=True, kw_only=True)
class StartOwner:
    """A claim without its workflow: LaunchNode where it is not initialised, TerminateNode where it is deleting."""

    kind: Literal["start_owner"] = "start_owner"
    claim: ClaimRef
    workflow_type: str
    node: str = ""  # where the claim has one


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRelease:
    """A deleting managed node without a claim (TRM-10)."""

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
    """A claim that has expired (LIF-60), whose instance is gone (GCR-2), whose node is to be repaired or is surplus."""

    kind: Literal["delete_claim"] = "delete_claim"
    claim: ClaimRef
    reason: str  # expired, garbage_collected, unhealthy, static_scale_down, never_initialized
    message: str = ""
    at_once: bool = False  # its pods are not waited for (GCR-15); what carries it out goes by the reason
    condition: str = ""  # the node condition for which it is repaired
    pods: int = 0  # reschedulable pods on its node when it was seen, for the metric


@dataclass(frozen=True, slots=True, kw_only=True)
class RebootNode:
    """An instance whose fault a reboot clears (GCR-19), or whose reboot was begun. Each look at one that was begun is
    an order of its own, or it would be repeated ever more rarely."""

    kind: Literal["reboot_node"] = "reboot_node"
    claim: ClaimRef
    node: str
    turn: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminateOrphan:
    """An instance with this cluster's tag and no claim, seen twice and older than 30 s (GCR-6)."""

    kind: Literal["terminate_orphan"] = "terminate_orphan"
    provider_id: str
    claim_uid: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FillPool:
    """Claims that a pool with a fixed number of nodes lacks, under names that follow from its free numbers (NPL-43).
    `state`: of the pool and its NodeClass; with another one, what came to nothing is asked for again at once."""

    kind: Literal["fill_pool"] = "fill_pool"
    request: CreateRequest
    state: str = ""


Order = StartOwner | StartRelease | TakeOffMark | DeleteClaim | RebootNode | TerminateOrphan | FillPool


def subject_of(order: Order) -> tuple[str, str, str]:
    """What an order is about: the same while the same thing is unfinished, whatever else it says."""
    match order:
        case StartOwner():
            return order.kind, order.claim.uid, order.workflow_type
        case StartRelease():
            return order.kind, order.uid, ""
        case TakeOffMark():
            return order.kind, order.claim.uid, order.owner
        case DeleteClaim():
            return order.kind, order.claim.uid, order.reason
        case RebootNode():
            return order.kind, order.claim.uid, str(order.turn)
        case TerminateOrphan():
            return order.kind, order.provider_id, ""
        case FillPool():
            return order.kind, order.request.plan_id, f"{order.state}-{order.request.indexes}"
        case _:
            assert_never(order)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrdersRequest:
    """Asks for the next orders, in the knowledge of what the last ones have written."""

    must_see: tuple[Write, ...] = ()
    must_see_until: float = 0.0  # after this moment nothing of must_see is waited for


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """What was found in one look, bounded; `more` says that the next look should follow at once."""

    orders: tuple[Order, ...] = ()
    more: bool = False
