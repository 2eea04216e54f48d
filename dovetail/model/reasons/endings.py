"""Why a node leaves where no disruption takes it: a closed list, and how a claim says which of it is true.

Who deletes a claim writes that on it first: with the claim's deletion the moment in which it is known is over, and the
API server notes of no deletion who asked for it. So what nobody of ours has said was deleted by others.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from dovetail.model.names import DISRUPTION_REASON, ENDED_BECAUSE, INTERRUPTED, NODE_POOL
from dovetail.model.nodes import NodeClaim


class Ending(StrEnum):
    """The value is what the annotation and the record say."""

    # The cloud's warnings
    SPOT = "SpotInterrupted"
    MAINTENANCE = "ScheduledChange"
    STOPPED = "InstanceStopped"
    TERMINATED = "InstanceTerminated"
    RESERVATION_OVER = "CapacityReservationInterrupted"
    HEALTH = "InstanceUnhealthy"
    # The Caretaker's orders
    EXPIRED = "Expired"
    INSTANCE_GONE = "InstanceGone"
    REPAIRED = "NodeRepaired"
    SCALED_DOWN = "ScaledDown"
    NODE_DELETED = "NodeDeleted"
    # Launches that came to nothing
    NO_CAPACITY = "NoCapacity"
    CLASS_NOT_READY = "NodeClassNotReady"
    REFUSED = "LaunchRefused"
    UNREGISTERED = "NeverRegistered"
    GIVEN_BACK = "GivenBack"
    # What others delete
    POOL_DELETED = "NodePoolDeleted"
    BY_OTHERS = "Deleted"


# How warnings and orders spell it, in histories and metrics.
OF_REASONS: Final = {
    "spot_interrupted": Ending.SPOT,
    "scheduled_change": Ending.MAINTENANCE,
    "instance_stopped": Ending.STOPPED,
    "instance_terminated": Ending.TERMINATED,
    "capacity_reservation_interrupted": Ending.RESERVATION_OVER,
    "instance_status": Ending.HEALTH,
    "system_status": Ending.HEALTH,
    "event_status": Ending.HEALTH,
    "expired": Ending.EXPIRED,
    "garbage_collected": Ending.INSTANCE_GONE,
    "unhealthy": Ending.REPAIRED,
    "static_scale_down": Ending.SCALED_DOWN,
    "node_deleted": Ending.NODE_DELETED,
}
# The instance ends whatever its pods and budgets say.
INTERRUPTIONS: Final = frozenset(
    {Ending.SPOT, Ending.STOPPED, Ending.TERMINATED, Ending.RESERVATION_OVER, Ending.INSTANCE_GONE}
)
BY_OTHERS_WORDS: Final = "by hand or by another program"
MOST_WORDS: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyGone:
    """A disruption's reason or an Ending, and what else is known."""

    because: str
    words: str = ""


def ended_text(ending: Ending, words: str = "") -> str:
    return f"{ending}: {words[:MOST_WORDS]}" if words else ending


def ended_of(claim: NodeClaim, has_pool: Callable[[str], bool]) -> WhyGone:
    """Why the claim is deleted, as it says itself. A NodePool's deletion is the garbage collector's to carry out, which
    says so nowhere: it is seen by the pool that is gone."""
    marked = claim.condition(DISRUPTION_REASON)
    if marked is not None and marked.status == "True":
        return WhyGone(because=marked.reason)
    because, _, words = claim.annotations.get(ENDED_BECAUSE, "").partition(": ")
    if because:
        return WhyGone(because=because, words=words)
    pool = claim.labels.get(NODE_POOL, "")
    if pool and not has_pool(pool):
        return WhyGone(because=Ending.POOL_DELETED, words=f"NodePool {pool} was deleted")
    return WhyGone(because=Ending.BY_OTHERS, words=BY_OTHERS_WORDS)


def is_interrupted(claim: NodeClaim) -> bool:
    """Whether its instance ends soon whatever its pods and their budgets say."""
    because, _, _ = claim.annotations.get(ENDED_BECAUSE, "").partition(": ")
    return INTERRUPTED in claim.annotations or because in INTERRUPTIONS
