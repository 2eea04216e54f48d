"""Which nodes their roll-out's step would let begin, but they themselves or their pods prevent it, and why.

The same checks that decide judge the nodes one by one, until as many may leave as the step lets begin: with enough of
those, nobody needs to know of the others.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from dovetail.answers.wording import plural, shown
from dovetail.disruption.nodes.fleet import Fleet
from dovetail.disruption.nodes.screening import judge
from dovetail.disruption.settings import DisruptionSettings
from dovetail.model import names
from dovetail.model.snapshot import Snapshot

NAMED: Final = 3
MOST: Final = 500  # nodes looked at: a question must be cheap, and so many kept nodes say enough


@dataclass(frozen=True)
class KeptNodes:
    snapshot: Snapshot
    settings: DisruptionSettings

    @cached_property
    def _fleet(self) -> Fleet:
        return Fleet(self.snapshot, self.settings)

    def words(self, pool: str, wanted: int) -> str:
        """What keeps the drifted nodes of a NodePool; empty if as many as wanted may begin."""
        kept: list[str] = []
        free = 0
        for member in self._fleet.by_pool.get(pool, ())[:MOST]:
            claim = member.claim
            if claim is None or not claim.is_true(names.DRIFTED) or self._fleet.is_leaving(member):
                continue
            judged = judge(self._fleet, member)
            if judged.candidate is None and judged.block is not None:
                kept.append(f"{member.name}: {judged.block.message}")
                continue
            free += 1
            if free >= wanted:
                return ""
        return f"{plural(len(kept), 'node')} kept, {shown(kept, NAMED, '; ')}" if kept else ""
