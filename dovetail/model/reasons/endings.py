"""Why a node leaves without a disruption: a closed list, and how a claim records which reason applies.

The reason is written on a claim before its deletion: afterwards it is no longer known, and the API server does not
record who asked for a deletion. So a claim without a reason of ours was deleted by others.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from dovetail.model.names import DISRUPTION_REASON, ENDED_BECAUSE, INTERRUPTED, NODE_POOL
from dovetail.model.nodes import NodeClaim
from dovetail.model.values.time import time_or_none


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
    # Failed launches
    NO_CAPACITY = "NoCapacity"
    CLASS_NOT_READY = "NodeClassNotReady"
    REFUSED = "LaunchRefused"
    UNREGISTERED = "NeverRegistered"
    UNINITIALIZED = "NeverInitialized"
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
    "never_initialized": Ending.UNINITIALIZED,
}
# The instance ends whatever its pods and budgets say.
INTERRUPTIONS: Final = frozenset(
    {Ending.SPOT, Ending.STOPPED, Ending.TERMINATED, Ending.RESERVATION_OVER, Ending.INSTANCE_GONE}
)
BY_OTHERS_WORDS: Final = "by hand or by another program"
MOST_WORDS: Final = 300
# Workers whose clocks are further apart take no steps: what one of them finds expired, or warned of before a departure,
# is nearly so for each other one.
CLOCKS_APART: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyGone:
    """A disruption's reason or an Ending, and what else is known."""

    because: str
    words: str = ""


def ended_text(ending: Ending, words: str = "") -> str:
    return f"{ending}: {words[:MOST_WORDS]}" if words else ending


def ended_of(claim: NodeClaim, has_pool: Callable[[str], bool]) -> WhyGone:
    """Why the claim is deleted, as it says itself. The garbage collector carries out the deletion of a NodePool and
    records it nowhere: it shows in the pool being gone."""
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
    return warned_at(claim) is not None or because in INTERRUPTIONS


def warned_at(claim: NodeClaim) -> float | None:
    """When the cloud warned of the end of an instance that was leaving already. A warning of before this departure was
    false; one whose time cannot be read counts from its beginning."""
    mark = claim.condition(DISRUPTION_REASON)
    began = mark.changed if mark is not None and mark.status == "True" else claim.deleting_since
    if INTERRUPTED not in claim.annotations or began is None:
        return None
    warned = time_or_none(claim.annotations[INTERRUPTED])
    return began if warned is None else warned if warned >= began - CLOCKS_APART else None
