"""What a pause or a Freeze holds."""

from dovetail.model.own.pauses import Activity
from dovetail.model.reasons.disruption_reasons import WhyNot
from dovetail.rules.pause.pauses import holding
from dovetail.rules.said import HeldBy, PoolHold, Said


def by_pause(said: Said, activity: Activity) -> PoolHold | None:
    """The pause or the Freeze that holds the activity."""
    pause = holding(said.pauses, activity)
    if pause is None:
        return None
    rule = HeldBy.FREEZE if pause.freeze else HeldBy.PAUSE
    return PoolHold(rule=rule, why=WhyNot.PAUSED, message=pause.announces(activity), until=pause.until)
