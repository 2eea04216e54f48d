"""A look that found nothing to write is not repeated until something may have changed: an object of the kinds that it
depends on, or the time.

With five thousand nodes a pod comes or goes several times a second, and most tasks of upkeep do not depend on pods.
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

    def __init__(self, task: _Task, now: Callable[[], float]) -> None:
        self.task, self.now = task, now
        self.settled: _Settled | None = None

    async def look(self, snapshot: Snapshot) -> Look[Write]:
        """As of the last look where that is known to be the same."""
        version = snapshot.version_of(BESIDE_PODS)
        basis = None if version is None else (*version, snapshot.stale)
        known = self.settled
        if known is not None and known.basis == basis and (known.again is None or self.now() < known.again):
            return Look(again=known.again)
        self.settled = None  # of a look that fails nothing is known
        found = await self.task.look(snapshot)
        if basis is not None and not found.due:
            self.settled = _Settled(basis, found.again)
        return found
