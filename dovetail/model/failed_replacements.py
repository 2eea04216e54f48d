"""What a NodePool remembers of replacements that never became ready, and what is held for them (decision 226).

A bad image would otherwise be tried on node after node, ten minutes each. Kept as an annotation of the NodePool, by the
reason of the disruption, with the hash of the template that it was tried with: another template begins anew. A
replacement that becomes ready, or a person, takes it off. An annotation that somebody has spoilt counts as none.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from dovetail.model import names
from dovetail.model.disruption_reasons import DisruptionReason
from dovetail.model.pools import NodePool
from dovetail.model.time import format_time

ENOUGH: Final = 3  # failures
WITHIN: Final = 3600.0  # seconds
ONE_TRY: Final = 300.0  # failures that are no further apart are of nodes that were replaced side by side
FIRST_REST: Final = 1200.0  # after the last failure; doubled with each further try that fails
LONGEST_REST: Final = 4 * 3600.0
MOST: Final = 20  # failures that are remembered, of each reason

_ENTRY: Final = re.compile(r"([A-Za-z]{1,40})@([0-9a-z]{0,40})=(\d{1,12}(?:\.\d{1,12})*)\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacementBrake:
    """Replacements for one reason that have failed too often. From `until` on one node is tried."""

    reason: str
    failures: int
    until: float

    def says(self, pool: str) -> str:
        """For people."""
        return (
            f"{self.failures} replacements for {self.reason} were not ready in time: one node is tried at "
            f"{format_time(self.until)}, a change of the template or `dovetail resume --pool {pool}` frees all"
        )


def rest_after(tries: int) -> float:
    """How long a NodePool rests after so many tries more that came to nothing; moves that come back rest alike."""
    return min(FIRST_REST * 2.0**tries, LONGEST_REST)


def failures_of(pool: NodePool, reason: str, after: float) -> tuple[float, ...]:
    """Those after that moment, in a row."""
    return tuple(moment for moment in _remembered(pool).get(reason, ()) if moment >= after)


def replacement_brake(pool: NodePool, reason: str, after: float = 0.0) -> ReplacementBrake | None:
    """What holds replacements of the pool for this reason; None where nothing does. `after`: what was before is of
    another image."""
    moments = failures_of(pool, reason, after)
    trips = (i for i in range(ENOUGH - 1, len(moments)) if moments[i] - moments[i - ENOUGH + 1] <= WITHIN)
    tripped = next(trips, None)
    if tripped is None:
        return None
    tries = sum(later - earlier > ONE_TRY for earlier, later in pairwise(moments[tripped:]))
    return ReplacementBrake(reason=reason, failures=len(moments), until=moments[-1] + rest_after(tries))


def replacement_brakes(pool: NodePool) -> tuple[ReplacementBrake, ...]:
    """All that hold."""
    if names.FAILED_REPLACEMENTS not in pool.annotations:
        return ()
    found = (replacement_brake(pool, reason) for reason in DisruptionReason)
    return tuple(brake for brake in found if brake is not None)


def failed_text(pool: NodePool, reason: str, now: float) -> str:
    """The annotation with one more failure."""
    known = dict(_remembered(pool))
    known[reason] = (*known.get(reason, ()), now)[-MOST:]
    template = _template(pool)
    return ",".join(f"{each}@{template}={'.'.join(f'{m:.0f}' for m in known[each])}" for each in sorted(known))


def _remembered(pool: NodePool) -> Mapping[str, tuple[float, ...]]:
    text = pool.annotations.get(names.FAILED_REPLACEMENTS, "")
    entries = [_ENTRY.match(entry) for entry in text.split(",")] if text else []
    return {
        match[1]: tuple(sorted(map(float, match[3].split("."))))
        for match in entries
        if match is not None and match[2] == _template(pool)
    }


def _template(pool: NodePool) -> str:
    return pool.annotations.get(names.NODE_POOL_HASH, "")
