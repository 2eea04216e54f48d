"""Notices about a cloud's warning, on the claim and on its node.

Reasons and types are upstream's (AWS-168), so that alerts made for it keep working.
"""

from dataclasses import dataclass
from typing import Final, Literal

from dovetail.messages.interruptions import InterruptionReason
from dovetail.notices.notice import Notice


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    kind: Literal["NodeClaim", "Node"]
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class _Words:
    type: Literal["Normal", "Warning"]
    reason: str
    message: str


_UNHEALTHY: Final = _Words("Warning", "InstanceUnhealthy", "An unhealthy warning was triggered for the instance")
_WORDS: Final[dict[InterruptionReason, _Words]] = {
    "spot_interrupted": _Words("Warning", "SpotInterrupted", "Spot interruption warning was triggered"),
    "rebalance_recommendation": _Words(
        "Normal",
        "SpotRebalanceRecommendation",
        "Spot rebalance recommendation was triggered",
    ),
    "capacity_reservation_interrupted": _Words(
        "Warning",
        "CapacityReservationInstanceInterrupted",
        "Capacity Reservation interruption warning was triggered",
    ),
    "instance_stopped": _Words("Warning", "InstanceStopping", "Instance is stopping"),
    "instance_terminated": _Words("Warning", "InstanceTerminating", "Instance is terminating"),
    "scheduled_change": _UNHEALTHY,
    "instance_status": _UNHEALTHY,
    "system_status": _UNHEALTHY,
    "event_status": _UNHEALTHY,
}


def warned(reason: InterruptionReason, about: About) -> Notice | None:
    """The notice of the warning itself; None for a reason without an Event."""
    words = _WORDS.get(reason)
    return None if words is None else _notice(words, about)


def terminating(about: About) -> Notice:
    """Its claim has been deleted because of the warning."""
    message = f"Interruption triggered termination for the {about.kind}"
    return _notice(_Words("Warning", "TerminatingOnInterruption", message), about)


def _notice(words: _Words, about: About) -> Notice:
    return Notice(
        kind=about.kind,
        name=about.name,
        uid=about.uid,
        type=words.type,
        reason=words.reason,
        message=words.message,
    )
