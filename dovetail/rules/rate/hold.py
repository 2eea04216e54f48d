"""What the rates of policies hold."""

from collections.abc import Iterator
from math import inf

from dovetail.model.own.policies import Policy
from dovetail.model.own.rates import Rate
from dovetail.model.reasons.disruption_reasons import WhyNot
from dovetail.model.values.time import format_time
from dovetail.rules.rate.rates import RateState, pace_of
from dovetail.rules.said import Cause, HeldBy, PoolHold, Said


def by_rate(said: Said, cause: Cause) -> PoolHold | None:
    """The rate that lets no more of them begin; of several, the one that holds longest."""
    full = [(policy, number, rate, pace) for policy, number, rate, pace in _paces(said, cause) if pace.left == 0]
    if said.pool is None or not full:
        return None
    policy, number, rate, pace = max(full, key=lambda each: inf if each[3].until is None else each[3].until)
    end = "until it is changed" if pace.until is None else f"until {format_time(pace.until)}"
    begun = f"{pace.begun} of at most {pace.allowed} nodes have begun within {rate.words}"
    ends = f"{end}, by DisruptionPolicy {policy.name}: rates[{number}], {begun}"
    message = f"no more for {cause} may begin for NodePool {said.pool.name} {ends}"
    return PoolHold(rule=HeldBy.RATE, why=WhyNot.RATE_REACHED, message=message, until=pace.until, ends=ends)


def left_of_rates(said: Said, cause: Cause) -> int | None:
    """How many more nodes rates let begin for that cause now; None if no rate applies."""
    return min((pace.left for *_, pace in _paces(said, cause)), default=None)


def _paces(said: Said, cause: Cause) -> Iterator[tuple[Policy, int, Rate, RateState]]:
    if said.pool is None or not cause.is_paced:
        return
    for policy in said.policies:
        for number, rate in enumerate(policy.rates):
            if rate.names(cause):
                yield policy, number, rate, pace_of(rate, said.pool, said.now)
