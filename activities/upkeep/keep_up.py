"""Upkeep: keeps conditions, statuses, labels and hashes true as facts change.

Level-triggered: each look compares what is written on an object with what should be, and writes only the difference, so
there is nothing to remember but which pods were on which node at the last look (DIS-163). After a restart the pods' own
times take the place of that memory (DIQ-12).
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Protocol

from temporalio import activity

from dovetail.activities.shared.cluster_changes import until_changed
from dovetail.activities.shared.heartbeats import beside, report
from dovetail.activities.shared.look import Look, Write, all_due, earliest
from dovetail.activities.shared.snapshots import Snapshots
from dovetail.background.supervised import stop, supervised
from dovetail.model.snapshot import Snapshot
from dovetail.model.watched_kinds import FLEET, OVERLAYS
from dovetail.ports.cloud import NodeClassUpkeep
from dovetail.ports.failures import Conflict, Failure

_log = logging.getLogger(__name__)

READS = FLEET | OVERLAYS

RETURN_SECONDS = 3600.0
AGAIN_SECONDS = 2.0  # after a write that failed, although nothing else changes
CLASSES_SECONDS = 5.0  # until NodeClasses are looked at again after a failure
QUIET_SECONDS = 0.2  # changes come in bursts
AT_ONCE = 20


class UpkeepTask(Protocol):
    """Finds what differs in one respect."""

    async def look(self, snapshot: Snapshot) -> Look[Write]:
        """The writes that are due."""


class Upkeep:
    """The long step."""

    def __init__(
        self,
        snapshots: Snapshots,
        tasks: Callable[[], Sequence[UpkeepTask]],
        classes: NodeClassUpkeep | None,
        now: Callable[[], float],
    ) -> None:
        self.snapshots = snapshots
        self.view = snapshots.view
        self.tasks = tasks  # made anew for each run: what they remember must not outlive it
        self.classes = classes
        self.now = now

    @activity.defn
    async def keep_up(self) -> None:
        """Look, write what differs, sleep until something changes or a moment is due."""
        until = self.now() + RETURN_SECONDS
        classes = supervised("upkeep of NodeClasses", partial(self._keep_classes, until), context=beside())
        try:
            await self._keep_objects(until)
        finally:
            await stop(classes)

    async def _keep_classes(self, until: float) -> None:
        """NodeClasses beside the rest: a cloud that answers slowly holds nothing else up."""
        while self.classes is not None and self.now() < until:
            revision = self.view.revision()
            try:
                again = await self.classes.keep()
            except Failure as failure:
                _log.warning("upkeep of NodeClasses: %s", failure)
                again = self.now() + CLASSES_SECONDS
            await until_changed(self.view, revision, min(until, again) - self.now(), QUIET_SECONDS)

    async def _keep_objects(self, until: float) -> None:
        tasks = self.tasks()
        while self.now() < until:
            revision = self.view.revision()
            snapshot = await self.snapshots.whole(READS)
            wrote, again = await self._once(tasks, snapshot)
            wake = until if again is None else min(until, again)
            report(f"wrote {wrote} objects, look again at the latest in {max(wake - self.now(), 0):.0f} s")
            await until_changed(self.view, revision, wake - self.now(), QUIET_SECONDS)

    async def _once(self, tasks: Sequence[UpkeepTask], snapshot: Snapshot) -> tuple[int, float | None]:
        """All objects once: how many were written, and when to look again.

        What cannot be written is logged and tried again soon; the others go on.
        """
        looks = [await task.look(snapshot) for task in tasks]
        writes = all_due(looks)
        wrote = await _carry_out(writes)
        soon = None if wrote == len(writes) else self.now() + AGAIN_SECONDS
        return wrote, earliest(soon, *[look.again for look in looks])


async def _carry_out(writes: Iterable[Write]) -> int:
    slots = asyncio.Semaphore(AT_ONCE)
    done = await asyncio.gather(*[_one(slots, write) for write in writes])
    return sum(done)


async def _one(slots: asyncio.Semaphore, write: Write) -> int:
    async with slots:
        try:
            await write()
        except Conflict as conflict:
            _log.debug("upkeep, looked at again: %s", conflict)
            return 0
        except Failure as failure:
            _log.warning("upkeep: %s", failure)
            return 0
    return 1
