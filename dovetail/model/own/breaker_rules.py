"""When a DisruptionPolicy lets the breakers of its NodePools open, and for how long."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Final

from dovetail.model.own.forms import between
from dovetail.model.values.backoff import Backoff
from dovetail.model.values.brake import Brake

BREAKER: Final = Brake(enough=3, window=3600.0, rests=Backoff(first=1800.0, longest=8 * 3600.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerRule:
    """What a policy says: after so many failures within so long nothing begins, and a try follows after `first`, and
    after twice as long each time that it fails, up to `longest`."""

    failures: int = BREAKER.enough
    within: Annotated[float, between("1m", "168h")] = BREAKER.window
    first: Annotated[float, between("1m", "168h")] = BREAKER.rests.first
    longest: Annotated[float, between("1m", "168h")] = BREAKER.rests.longest

    @property
    def brake(self) -> Brake:
        return Brake(enough=self.failures, window=self.within, rests=Backoff(first=self.first, longest=self.longest))


def strictest(rules: Iterable[Brake]) -> Brake:
    """What several policies require together; without any, the default."""
    found = list(rules) or [BREAKER]
    first, longest = max(rule.rests.first for rule in found), max(rule.rests.longest for rule in found)
    return Brake(
        enough=min(rule.enough for rule in found),
        window=max(rule.window for rule in found),
        rests=Backoff(first=first, longest=longest),
    )
