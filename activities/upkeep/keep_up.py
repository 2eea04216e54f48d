"""Keeps conditions, hashes and stamps true as facts change.

Level-triggered: each look compares what stands on an object with what should, and writes only the difference, so there
is nothing to remember but which pods stood on which node at the last look (D-163). After a restart the pods' own times
stand in for that memory (Q-12).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol

from temporalio import activity

from dovetail.activities.shared.cluster_changes import until_changed
from dovetail.activities.shared.heartbeats import report
from dovetail.activities.shared.snapshots import Snapshots
from dovetail.model.snapshot import Snapshot
from dovetail.ports.cloud import NodeClassUpkeep
from dovetail.ports.failures import Conflict, Failure

_log = logging.getLogger(__name__)

RETURN_SECONDS = 3600.0
AGAIN_SECONDS = 2.0  # after a write that failed, although nothing else changes
CLASSES_SECONDS = 5.0  # until NodeClasses are looked at again after a failure
QUIET_SECONDS = 0.2  # changes come in bursts
AT_ONCE = 20


class UpkeepTask(Protocol):
    """Finds what differs in one respect."""

    async def differences(self, snapshot: Snapshot) -> tuple[list[Callable[[], Awaitable[object]]], float]:
        """The writes that are due, and when to look again although nothing has changed."""


class Upkeep:
    """The long step."""

    def __init__(
        self,
        snapshots: Snapshots,
        keepers: Callable[[], Sequence[UpkeepTask]],
        classes: NodeClassUpkeep | None,
        now: Callable[[], float],
    ) -> None:
        self.snapshots = snapshots
        self.view = snapshots.view
        self.keepers = keepers  # made anew for each run: what they remember must not outlive it
        self.classes = classes
        self.now = now

    @activity.defn
    async def keep_up(self) -> None:
        """Look, write what differs, sleep until something changes or a moment is due."""
        until = self.now() + RETURN_SECONDS
        classes = asyncio.create_task(self._keep_classes(until))
        try:
            await self._keep_objects(until)
        finally:
            classes.cancel()

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
        keepers = self.keepers()
        while self.now() < until:
            revision = self.view.revision()
            snapshot = await self.snapshots.whole()
            wrote, again = await self._once(keepers, snapshot)
            report(f"wrote {wrote} objects, look again at the latest in {max(again - self.now(), 0):.0f} s")
            await until_changed(self.view, revision, min(until, again) - self.now(), QUIET_SECONDS)

    async def _once(self, keepers: Sequence[UpkeepTask], snapshot: Snapshot) -> tuple[int, float]:
        """All objects once. What cannot be written is said and tried again soon; the others go on."""
        found = [await keeper.differences(snapshot) for keeper in keepers]
        writes = [write for differences, _ in found for write in differences]
        wrote = await _carry_out(writes)
        again = min(moment for _, moment in found)
        return wrote, again if wrote == len(writes) else min(again, self.now() + AGAIN_SECONDS)


async def _carry_out(writes: Iterable[Callable[[], Awaitable[object]]]) -> int:
    slots = asyncio.Semaphore(AT_ONCE)
    done = await asyncio.gather(*[_one(slots, write) for write in writes])
    return sum(done)


async def _one(slots: asyncio.Semaphore, write: Callable[[], Awaitable[object]]) -> int:
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
