"""A look that found nothing to write is not made again until something says otherwise: an object of the kinds that it
depends on, or the time.

With five thousand nodes a pod comes or goes several times a second, and most tasks of upkeep ask nothing about pods.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from dovetail.activities.shared.looks.look import Look, Write
from dovetail.model.objects.watched_kinds import NODES_AND_STANDING_CLAIMS, POLICIES, POOLS, Kinds
from dovetail.model.snapshot import Snapshot

# What people and nodes say, without pods.
BESIDE_PODS: Final[Kinds] = NODES_AND_STANDING_CLAIMS | POOLS | POLICIES | {"Namespace"}


class _Task(Protocol):
    async def look(self, snapshot: Snapshot) -> Look[Write]:
        """The writes that are due."""


@dataclass(frozen=True, slots=True)
class _Settled:
    basis: tuple[object, ...]
    again: float | None


class WhileSettled:
    """A task whose look depends on these kinds, on which watches are broken and on the time of its answer alone."""

    def __init__(self, task: _Task, now: Callable[[], float], kinds: Kinds = BESIDE_PODS) -> None:
        self.task, self.now, self.kinds = task, now, kinds
        self.settled: _Settled | None = None

    async def look(self, snapshot: Snapshot) -> Look[Write]:
        """As of the last look where that is known to be the same."""
        version = snapshot.version_of(self.kinds)
        basis = None if version is None else (*version, snapshot.stale)
        known, self.settled = self.settled, None
        if known is None or known.basis != basis or (known.again is not None and known.again <= self.now()):
            found = await self.task.look(snapshot)
            known = None if basis is None or found.due else _Settled(basis, found.again)
            self.settled = known
            return found
        self.settled = known
        return Look(again=known.again)
