"""What the breaker of a NodePool holds."""

from dovetail.model.reasons.disruption_reasons import WhyNot
from dovetail.rules.brake.breakers import Breaker, breaker_of
from dovetail.rules.said import Cause, HeldBy, PoolHold, Said


def by_breaker(said: Said, cause: Cause) -> PoolHold | None:
    """The failures that hold the reason, unless a try is due."""
    rule, known = said.breaker_rule, _breaker(said, cause)
    if said.pool is None or known is None or known.opened is None or known.is_due(rule, said.now):
        return None
    until = known.until(rule) if known.probe is None else None
    ends = known.says(said.pool.name, rule, said.now)
    message = f"no more for {cause} may begin for NodePool {said.pool.name}: {ends}"
    return PoolHold(rule=HeldBy.BREAKER, why=WhyNot.BREAKER_OPEN, message=message, until=until, ends=ends)


def left_of_breaker(said: Said, cause: Cause) -> int | None:
    """One if a try is due, none if the breaker holds; None if it is closed."""
    known = _breaker(said, cause)
    return None if known is None or known.opened is None else int(known.is_due(said.breaker_rule, said.now))


def _breaker(said: Said, cause: Cause) -> Breaker | None:
    found = breaker_of(said.pool, cause) if said.pool is not None and cause.is_paced else None
    back = said.back_since(cause)
    is_over = found is not None and back is not None and found.last < back  # a roll-out that goes back has other images
    return None if is_over else found
