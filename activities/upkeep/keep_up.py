"""Upkeep: keeps conditions, statuses, labels and hashes true as facts change.

Level-triggered: each look compares what is written on an object with what should be, and writes only the difference, so
the only memory is which pods were on which node at the last look (DIS-163). After a restart the pods' own times replace
that memory (DIQ-12).
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Protocol

from temporalio import activity

from dovetail.activities.shared.every_step.heartbeats import beside, part_failed, part_works, report
from dovetail.activities.shared.looks.look import Look, Write, all_due, earliest
from dovetail.activities.shared.looks.snapshots import Snapshots
from dovetail.activities.shared.waits.cluster_changes import ClusterSleep, quiet_after
from dovetail.activities.upkeep.questions import MetricQuestions
from dovetail.background.supervised import stop, supervised
from dovetail.model.objects.watched_kinds import FLEET, OVERLAYS
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.backoff import Backoff
from dovetail.ports.cloud import NodeClassUpkeep
from dovetail.ports.failures import Conflict, Failure

_log = logging.getLogger(__name__)

READS = FLEET | OVERLAYS

RETURN_SECONDS = 3600.0
AGAIN = Backoff(first=2.0, longest=60.0)  # after looks with a failure, although nothing else changes
CLASSES_SECONDS = 5.0  # until NodeClasses are looked at again after a failure
QUIET_SECONDS = 0.2  # changes come in bursts
AT_ONCE = 20


class UpkeepTask(Protocol):
    """Finds what differs in one respect."""

    async def look(self, snapshot: Snapshot) -> Look[Write]:
        """The writes that are due."""


class KeepUp:
    def __init__(
        self,
        snapshots: Snapshots,
        tasks: Callable[[], Sequence[UpkeepTask]],
        classes: NodeClassUpkeep | None,
        now: Callable[[], float],
        questions: MetricQuestions,
    ) -> None:
        self.questions = questions
        self.snapshots = snapshots
        self.view = snapshots.view
        self.tasks = tasks  # made anew for each run: what they remember must not outlive it
        self.classes = classes
        self.now = now

    @activity.defn
    async def keep_up(self) -> None:
        """Look, write what differs, sleep until something changes or a moment is due."""
        until = self.now() + RETURN_SECONDS
        tasks = (
            supervised("upkeep of NodeClasses", partial(self._keep_classes, until), context=beside()),
            supervised("questions to Prometheus", self.questions.keep_asking, context=beside()),
        )
        try:
            await self._keep_objects(until)
        finally:
            await stop(*tasks)

    async def _keep_classes(self, until: float) -> None:
        """Keep NodeClasses up to date beside the rest: a cloud that answers slowly holds nothing else up."""
        sleep = ClusterSleep(self.view)
        while self.classes is not None and self.now() < until:
            revision = self.view.revision()
            try:
                again = await self.classes.keep()
                part_works("NodeClasses")
            except Failure as failure:
                _log.warning("upkeep of NodeClasses: %s", failure)
                part_failed("NodeClasses", failure)
                again = self.now() + CLASSES_SECONDS
            await sleep.until_changed(revision, min(until, again) - self.now(), QUIET_SECONDS)

    async def _keep_objects(self, until: float) -> None:
        tasks, sleep, failed = self.tasks(), ClusterSleep(self.view), 0
        while self.now() < until:
            revision = self.view.revision()
            snapshot = await self.snapshots.whole(READS)
            began = time.thread_time()
            looks = await looked(tasks, snapshot)
            quiet = quiet_after(time.thread_time() - began, QUIET_SECONDS)
            wrote, all_well, again = await self.carried_out(looks)
            failed = 0 if all_well else failed + 1
            soon = None if all_well else self.now() + AGAIN.pause(failed)
            wake = earliest(until, again, soon) or until
            report(f"wrote {wrote} objects, look again at the latest in {max(wake - self.now(), 0):.0f} s")
            await self._sleep(sleep.until_changed(revision, wake - self.now(), quiet))

    async def _sleep(self, sleep: Coroutine[None, None, None]) -> None:
        """Sleep, or wait until Prometheus has answered something."""
        slept, answered = asyncio.create_task(sleep), asyncio.create_task(self.questions.until_answered(QUIET_SECONDS))
        try:
            await asyncio.wait((slept, answered), return_when=asyncio.FIRST_COMPLETED)
        finally:
            await stop(slept, answered)
        if not slept.cancelled():
            slept.result()

    async def carried_out(self, looks: Sequence[Look[Write] | None]) -> tuple[int, bool, float | None]:
        """How many objects were written, whether all succeeded, and when to look again.

        What cannot be read or written is logged and retried soon; the other objects are unaffected.
        """
        found = [look for look in looks if look is not None]
        writes = all_due(found)
        wrote = await _carry_out(writes)
        all_well = wrote == len(writes) and len(found) == len(looks)
        return wrote, all_well, earliest(*[look.again for look in found])


async def looked(tasks: Sequence[UpkeepTask], snapshot: Snapshot) -> list[Look[Write] | None]:
    """Look at all objects once. Each task takes a while in a large cluster, so other work runs between them."""
    found = []
    for task in tasks:
        found.append(await _look(task, snapshot))
        await asyncio.sleep(0)
    return found


async def _look(task: UpkeepTask, snapshot: Snapshot) -> Look[Write] | None:
    """What the task finds; None where its look fails, by whatever error: the other tasks go on."""
    name = type(task).__name__
    try:
        look = await task.look(snapshot)
    except Exception as error:
        _log_error(name, error)
        part_failed(name, error)
        return None
    part_works(name)
    return look


async def _carry_out(writes: Iterable[Write]) -> int:
    """How many were written. One that fails is made again at each look, so writes fail as one part of the step."""
    slots = asyncio.Semaphore(AT_ONCE)
    errors = await asyncio.gather(*[_one(slots, write) for write in writes])
    wrong = [error for error in errors if error is not None and not isinstance(error, Conflict)]
    if wrong:
        part_failed("writes", wrong[0])
    else:
        part_works("writes")
    return errors.count(None)


async def _one(slots: asyncio.Semaphore, write: Write) -> Exception | None:
    """Why it was not written; None if it was."""
    async with slots:
        try:
            await write()
        except Exception as error:
            _log_error("a write", error)
            return error
    return None


def _log_error(what: str, error: Exception) -> None:
    """With its trace, where nobody foresaw it."""
    if isinstance(error, Failure):
        _log.log(logging.DEBUG if isinstance(error, Conflict) else logging.WARNING, "upkeep, %s: %s", what, error)
    else:
        _log.error("upkeep, %s", what, exc_info=error)
