"""Does what cannot wait while Temporal is away, and hands it back when Temporal answers again.

An instance ends within two minutes of its warning, whether or not a workflow can be started. So this worker reads the
queue of warnings itself (where the step that reads it does not run here), answers them, and drains the nodes that
leave. It does nothing else: no node is launched, marked or terminated.

A worker whose own connection is broken, while Temporal serves others, cannot tell the difference. It need not: the
others' workflows do the same things, step for step, and each step recognises what is already done.

Once Temporal answers, nothing new begins here. A drain that is under way continues until the claim's own workflow runs:
if it stopped earlier, nobody would care for a node that has seconds to live.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from temporalio.service import RPCError

from dovetail.activities.interruptions.direct_answers import DirectAnswers
from dovetail.activities.interruptions.watch_interruptions import InstanceChecks, WarningReader
from dovetail.background.supervised import stop, supervised
from dovetail.connection.presence import TemporalPresence
from dovetail.messages.workflow_ids import interruptions_id
from dovetail.model.objects.watched_kinds import POOLS
from dovetail.notices.about import warnings_on_pools
from dovetail.ports.failures import Failure
from dovetail.ports.interruptions import Interruptions
from dovetail.ports.objects import Notices
from dovetail.ports.view import ClusterView
from dovetail.worker.absence.departures import Departures

LOOK_SECONDS: Final = 2.0  # between two looks when nothing changes
QUIET_SECONDS: Final = 0.2
HAND_OVER_SECONDS: Final = 1.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Warnings:
    """The cloud's warnings: where they are read, and how they are answered here."""

    queue: Interruptions
    answers: DirectAnswers


@dataclass(slots=True, kw_only=True)
class StandIn:
    """What one worker does while Temporal is away. `warnings` is None where the cloud gives none."""

    presence: TemporalPresence
    departures: Departures
    view: ClusterView
    notices: Notices
    warnings: Warnings | None
    why_unfit: Callable[[], str]
    reading: list[asyncio.Task[None]] = field(default_factory=list)
    answering: asyncio.Task[None] | None = None  # of what was begun
    begun_answered: bool = False

    async def run(self) -> None:
        try:
            while True:
                await self.presence.until_away()
                await self._stand_in()
                await self._hand_over()
        finally:
            await stop(*self.reading, *([] if self.answering is None else [self.answering]))
            await self.departures.stop()

    async def _stand_in(self) -> None:
        """Look again and again for as long as Temporal is away."""
        self.begun_answered = False
        while self.presence.is_away:
            revision = self.view.revision()
            if self.why_unfit():
                await self.departures.stop()  # another acts, or this clock cannot be trusted
            else:
                await self._look()
            await self._until_changed(revision)

    async def _look(self) -> None:
        """Do everything that is due; a failure holds up nothing else."""
        for act in (self._answer_what_was_begun, self._read, self._take_up, self._publish_absence):
            try:
                await act()
            except Failure as failure:
                _log.warning("without Temporal: %s", failure)

    async def _answer_what_was_begun(self) -> None:
        """Answer, once, the warnings whose workflows were under way when Temporal fell silent: beside the look, because
        whether some are true is asked of a cloud that may hang."""
        if self.warnings is None or self.begun_answered or not (self.answering is None or self.answering.done()):
            return
        self.answering = asyncio.create_task(self._answer_begun(self.warnings.answers))

    async def _answer_begun(self, answers: DirectAnswers) -> None:
        try:
            await answers.answer_what_was_begun()
        except Failure as failure:
            _log.warning("without Temporal: %s", failure)
        except Exception:
            _log.exception("the warnings that were begun cannot be answered now")
        else:
            self.begun_answered = True

    async def _take_up(self) -> None:
        self.departures.take_up()

    async def _hand_over(self) -> None:
        """Hand over each drain as soon as its claim's workflow runs."""
        while self.departures.in_hand and not self.presence.is_away and self.presence.client is not None:
            try:
                await self.departures.hand_over(self.presence.client)
            except RPCError as error:
                _log.info("what was drained without Temporal cannot be handed over yet: %s", error)
            await asyncio.sleep(HAND_OVER_SECONDS)

    async def _read(self) -> None:
        """Read the queue and make the cloud's checks, unless the step for that runs in this process."""
        self.reading = [task for task in self.reading if not task.done()]
        if self.warnings is None or self.reading or self._is_read_by_its_step():
            return
        queue, answers = self.warnings.queue, self.warnings.answers
        reader, checks = WarningReader(queue, answers.answer), InstanceChecks(queue, answers.answer)
        self.reading = [
            supervised("warnings without Temporal", lambda: reader.read(self._goes_on)),
            supervised("checks of instances without Temporal", lambda: checks.run(self._goes_on)),
        ]

    def _is_read_by_its_step(self) -> bool:
        return self.departures.runs_here("watch_interruptions", interruptions_id(self.departures.cluster))

    def _goes_on(self) -> bool:
        """Whether to keep reading warnings here. Those received by then are still answered, rather than left for the
        queue to deliver again."""
        return self.presence.is_away and not self.why_unfit()

    async def _publish_absence(self) -> None:
        """A notice on each pool, where a person looks whose pods stay pending."""
        message = (
            "Temporal does not answer: no node is launched or disrupted. Nodes that are interrupted or being deleted "
            "are drained without it"
        )
        pools = self.view.snapshot(POOLS).pools.values()
        await self.notices.publish(*warnings_on_pools(pools, "TemporalAway", message))

    async def _until_changed(self, revision: int) -> None:
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                await self.view.changed(revision)
        except TimeoutError:
            return
        await asyncio.sleep(QUIET_SECONDS)
