"""Notices about a cloud's warning, on the claim and on its node.

Reasons and types are upstream's (W-168), so that alerts made for it keep working.
"""

from typing import Final, Literal

from dovetail.messages.interruptions import InterruptionReason
from dovetail.model.notice import Notice

_UNHEALTHY: Final = ("Warning", "InstanceUnhealthy", "An unhealthy warning was triggered for the instance")
_WORDS: Final[dict[InterruptionReason, tuple[str, str, str]]] = {
    "spot_interrupted": ("Warning", "SpotInterrupted", "Spot interruption warning was triggered"),
    "rebalance_recommendation": (
        "Normal",
        "SpotRebalanceRecommendation",
        "Spot rebalance recommendation was triggered",
    ),
    "capacity_reservation_interrupted": (
        "Warning",
        "CapacityReservationInstanceInterrupted",
        "Capacity Reservation interruption warning was triggered",
    ),
    "instance_stopped": ("Warning", "InstanceStopping", "Instance is stopping"),
    "instance_terminated": ("Warning", "InstanceTerminating", "Instance is terminating"),
    "scheduled_change": _UNHEALTHY,
    "instance_status": _UNHEALTHY,
    "system_status": _UNHEALTHY,
    "event_status": _UNHEALTHY,
}

About = tuple[Literal["NodeClaim", "Node"], str, str]  # kind, name, uid


def warned(reason: InterruptionReason, about: About) -> Notice | None:
    """The warning itself; None for a reason without an Event."""
    words = _WORDS.get(reason)
    return None if words is None else _notice(words, about)


def terminating(about: About) -> Notice:
    """Its claim has been deleted for the warning."""
    return _notice(
        ("Warning", "TerminatingOnInterruption", f"Interruption triggered termination for the {about[0]}"), about
    )


def _notice(words: tuple[str, str, str], about: About) -> Notice:
    kind, name, uid = about
    return Notice(
        kind=kind,
        name=name,
        uid=uid,
        type="Warning" if words[0] == "Warning" else "Normal",
        reason=words[1],
        message=words[2],
    )
