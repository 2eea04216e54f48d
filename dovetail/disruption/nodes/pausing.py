"""What a person pauses to keep a node."""

from dovetail.model.disruption_reasons import DisruptionReason
from dovetail.model.pauses import Activity


def activities_of(reason: str, *, replaced: bool) -> tuple[Activity, ...]:
    """What must not be paused for a disruption of that reason.

    A replacement before expiry is part of expiry. `replaced`: the node leaves only after its replacement is launched.
    """
    activity = Activity.EXPIRY if reason == DisruptionReason.EXPIRED else Activity.DISRUPTION
    return (activity, Activity.LAUNCHES) if replaced else (activity,)
