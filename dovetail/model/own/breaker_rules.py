"""When a DisruptionPolicy lets the breakers of its NodePools open, and for how long."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from dovetail.model.own.forms import between
from dovetail.model.values.backoff import Backoff


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerRule:
    """After that many failures within that many seconds nothing begins. A try follows after `first`, and after twice as
    long each time that it fails, up to `longest`."""

    failures: int = 3
    within: Annotated[float, between("1m", "168h")] = 3600.0
    first: Annotated[float, between("1m", "168h")] = 1800.0
    longest: Annotated[float, between("1m", "168h")] = 8 * 3600.0

    def rest(self, tries: int) -> float:
        """How long it stays open after that many failed tries."""
        return Backoff(first=self.first, longest=self.longest).pause(tries + 1)


def strictest(rules: Iterable[BreakerRule]) -> BreakerRule:
    """What several policies require together; without any, the default."""
    found = list(rules)
    if not found:
        return BreakerRule()
    return BreakerRule(
        failures=min(each.failures for each in found),
        within=max(each.within for each in found),
        first=max(each.first for each in found),
        longest=max(each.longest for each in found),
    )
