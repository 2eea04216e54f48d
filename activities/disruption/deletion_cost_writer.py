"""Writes on pods, once a minute, which of them a shrinking ReplicaSet should delete first (decision 232).

It runs beside the decision and is best effort: what cannot be written now is worked out anew in the next turn.
"""

import asyncio
import logging
import math
from collections.abc import Callable
from typing import Final

from dovetail.disruption.deletion_costs import DeletionCost, deletion_costs
from dovetail.disruption.settings import DisruptionSettings
from dovetail.model import names
from dovetail.model.snapshot import Snapshot
from dovetail.ports.failures import Conflict, Failure
from dovetail.ports.objects import Pods

_log = logging.getLogger(__name__)

EVERY_SECONDS: Final = 60.0
AT_ONCE: Final = 20


class DeletionCostWriter:
    """Writes deletion costs where the gate PodDeletionCostManagement is open."""

    def __init__(self, pods: Pods, settings: DisruptionSettings, now: Callable[[], float]) -> None:
        self.pods, self.settings, self.now = pods, settings, now
        self.next = 0.0
        self.slots = asyncio.Semaphore(AT_ONCE)
        self.turn: asyncio.Task[None] | None = None

    def write_beside(self, snapshot: Snapshot) -> float:
        """Begin a turn if one is due and none is under way. Returns when to look at the cluster again for it: after a
        turn, not before something changes."""
        if self.now() < self.next:
            return self.next
        self.next = self.now() + EVERY_SECONDS
        if self.turn is not None and not self.turn.done():
            return self.next
        self.turn = asyncio.create_task(self.write(snapshot), name="deletion costs of pods")
        return math.inf

    async def write(self, snapshot: Snapshot) -> None:
        due = await asyncio.to_thread(deletion_costs, snapshot, self.settings)
        for failure in await asyncio.gather(*[self._write(each) for each in due], return_exceptions=True):
            if isinstance(failure, Failure):
                _log.warning("the deletion cost of a pod could not be written: %s", failure)
                break  # the others have most likely the same to say
            if isinstance(failure, BaseException):
                raise failure

    async def _write(self, due: DeletionCost) -> None:
        async with self.slots:
            try:
                await self.pods.annotate(due.pod, names.POD_DELETION_COST, due.value)
            except Conflict:
                return  # it has changed; the next turn looks at it again
