"""What the windows of policies hold."""

from dovetail.model.own.policies import closed
from dovetail.model.reasons.disruption_reasons import WhyNot
from dovetail.rules.said import Cause, HeldBy, PoolHold, Said


def by_window(said: Said, cause: Cause) -> PoolHold | None:
    shut = closed(said.policies, said.pool, cause, said.now) if said.pool is not None and cause.is_windowed else None
    if shut is None:
        return None
    return PoolHold(
        rule=HeldBy.WINDOW, why=WhyNot.OUTSIDE_WINDOW, message=shut.says, until=shut.until, ends=shut.says_until
    )
