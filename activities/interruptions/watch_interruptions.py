"""Reads the cloud's warnings, and starts a workflow that answers them.

A message is acknowledged only after a workflow was started to answer it, or, if Temporal did not accept that, after it
was answered directly; if a worker is killed before that, the queue delivers it again. A message that cannot be read is
logged and thrown away, because it would hold up all others. The step goes on while the queue cannot be read or messages
cannot be answered: both are listed as failing steps, and neither is a reason to restart the worker.
"""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from temporalio import activity
from temporalio.client import Client
from temporalio.common import Priority, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.service import RPCError

from dovetail.activities.identity.search_attributes import attributes
from dovetail.activities.interruptions.direct_answers import DirectAnswers
from dovetail.activities.shared.every_step.ending import ended_by_stop
from dovetail.activities.shared.every_step.heartbeats import (
    beside,
    looked,
    part_failed,
    part_works,
    progressed,
    report,
)
from dovetail.activities.shared.every_step.step_health import READING
from dovetail.background.supervised import stop, supervised
from dovetail.messages.interruptions import AnswerInput, Interruption
from dovetail.messages.workflow_ids import interruptions_id, task_queue
from dovetail.messages.workflow_types import ANSWER_INTERRUPTION
from dovetail.model.values.backoff import Backoff
from dovetail.ports.failures import Failure, least_wait
from dovetail.ports.interruptions import Interruptions, Message

Answer = Callable[[Sequence[Interruption]], Awaitable[None]]
GoesOn = Callable[[], bool]

_log = logging.getLogger(__name__)

RETURN_SECONDS = 3600.0
CHECK_SECONDS = 60.0  # AWS-136
BATCHES_AT_ONCE = 10  # of ten messages each
WARNINGS_OF_AN_ANSWER = 200  # one message about an outage may name thousands of instances
START_SECONDS = 5.0  # for Temporal to take an answer; then it is given at once
_PAUSES = Backoff(first=0.1, longest=10.0)
_EMPTY_PAUSE = 1.0


def always() -> bool:
    """The default of `goes_on`: read until cancelled."""
    return True


class WarningReader:
    """Reads messages and has them answered, several batches at a time."""

    def __init__(self, interruptions: Interruptions, answer: Answer) -> None:
        self.interruptions, self.answer = interruptions, answer
        self.seen = 0
        self.stopped = asyncio.Event()

    async def read(self, goes_on: GoesOn) -> None:
        """Read for as long as `goes_on` says, or until stopped. Answers that are under way at the end are waited
        for."""
        async with asyncio.TaskGroup() as batches:
            reading = batches.create_task(self._read(goes_on, batches))
            stopping = asyncio.create_task(self.stopped.wait())
            try:
                await asyncio.wait([reading, stopping], return_when=asyncio.FIRST_COMPLETED)
            finally:
                stopping.cancel()
            reading.cancel()

    async def _read(self, goes_on: GoesOn, batches: asyncio.TaskGroup) -> None:
        slots, pause = asyncio.Semaphore(BATCHES_AT_ONCE), _PAUSES.first
        clock = asyncio.get_running_loop().time
        while goes_on():
            began = clock()
            progressed()
            try:
                messages = await self.interruptions.receive()
                pause = _PAUSES.first
                looked()
                part_works(READING)
            except Failure as failure:
                _log.warning("the queue of warnings cannot be read: %s", failure)
                part_failed(READING, failure)
                await asyncio.sleep(least_wait(failure) or pause)
                pause = _PAUSES.after(pause)
                continue
            if messages:
                await slots.acquire()
                batches.create_task(self._answer(messages, slots))
            elif clock() - began < _PAUSES.first:
                await asyncio.sleep(_EMPTY_PAUSE)  # the queue does not wait for messages, as it is asked to

    async def _answer(self, messages: tuple[Message, ...], slots: asyncio.Semaphore) -> None:
        try:
            for message in messages:
                if message.interruption is None:
                    _log.error("discarded a message of the queue: %s", message.problem)
            await self.answer([message.interruption for message in messages if message.interruption is not None])
            await self.interruptions.acknowledge([message.receipt for message in messages])
            self.seen += len(messages)
            report(f"{self.seen} messages read")
            part_works("answering")
        except Failure as failure:
            part_failed("answering", failure)
            _log.warning("messages could not be acknowledged and will be delivered again: %s", failure)
        finally:
            slots.release()


class WatchInterruptions:
    def __init__(
        self,
        cluster: str,
        interruptions: Interruptions,
        now: Callable[[], float],
        answers: DirectAnswers,
        client: Callable[[], Client],
    ) -> None:
        self.cluster, self.interruptions, self.now, self.answers = cluster, interruptions, now, answers
        self.client = client  # the one of this moment: it is exchanged while this step runs

    @activity.defn
    async def watch_interruptions(self) -> None:
        """Read, start answers and acknowledge for an hour."""
        until = self.now() + RETURN_SECONDS
        checks = supervised(
            "checks of instances", InstanceChecks(self.interruptions, self._start).run, context=beside()
        )
        reader = WarningReader(self.interruptions, self._start)
        stops = asyncio.create_task(_stop_with_worker(reader))
        try:
            await reader.read(lambda: self.now() < until)
        finally:
            await stop(checks, stops)
        if reader.stopped.is_set():
            raise ended_by_stop()

    async def _start(self, interruptions: Sequence[Interruption]) -> None:
        """One workflow for the warnings that came together and concern this cluster; the same warnings join the
        workflow that already answers them (AWS-187)."""
        warnings = {
            (instance, each.reason): replace(each, instances=(instance,))
            for each in interruptions
            if each.reason != "no_op"
            for instance in each.instances
        }
        ordered = self.answers.answering.ours([warnings[key] for key in sorted(warnings)])
        for start in range(0, len(ordered), WARNINGS_OF_AN_ANSWER):
            await self._begin(tuple(ordered[start : start + WARNINGS_OF_AN_ANSWER]))

    async def _begin(self, warnings: tuple[Interruption, ...]) -> None:
        """Answer by a workflow, or directly if Temporal does not accept it."""
        if self.answers.is_away():
            await self.answers.answer(warnings)
            return
        try:
            async with asyncio.timeout(START_SECONDS):
                await self._start_answer(warnings)
        except (RPCError, TimeoutError) as error:
            _log.warning("no workflow could be started for warnings: %s", str(error) or type(error).__name__)
            await self.answers.answer(warnings)
        else:
            self.answers.remember(warnings)

    async def _start_answer(self, warnings: tuple[Interruption, ...]) -> None:
        keys = [(each.instances[0], each.reason) for each in warnings]
        (instance, reason), *others = keys
        base = interruptions_id(self.cluster)
        digest = hashlib.sha256(repr(keys).encode()).hexdigest()[:16]
        summary = f"{reason.replace('_', ' ')}: {instance}"
        await self.client().start_workflow(
            ANSWER_INTERRUPTION,
            AnswerInput(cluster=self.cluster, interruptions=warnings),
            id=f"{base}/several/{digest}" if others else f"{base}/{instance}/{reason}",
            task_queue=task_queue(self.cluster, "control"),
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            search_attributes=attributes(self.cluster, reason=reason),
            priority=Priority(priority_key=1),  # two minutes are left; it passes launches and disruptions that wait
            static_summary=f"{summary} and {len(others)} more" if others else summary,
        )


async def _stop_with_worker(reader: WarningReader) -> None:
    """Stop reading when the worker stops: waiting for an empty queue would use up the whole grace."""
    await activity.wait_for_worker_shutdown()
    reader.stopped.set()


class InstanceChecks:
    """The cloud's own checks of its instances, once a minute (AWS-136)."""

    def __init__(self, interruptions: Interruptions, answer: Answer) -> None:
        self._interruptions, self._answer = interruptions, answer
        self._known: frozenset[tuple[str, str]] = frozenset()

    async def run(self, goes_on: GoesOn = always) -> None:
        """Check for as long as `goes_on` says. An instance whose trouble was answered is not answered again until it
        has been well."""
        while goes_on():
            try:
                found = await self._interruptions.troubles()
                await self._answer([each for each in found if (each.id, each.reason) not in self._known])
                self._known = frozenset((each.id, each.reason) for each in found)
                part_works("checks of instances")
            except Failure as failure:
                part_failed("checks of instances", failure)
                _log.warning("the checks of instances cannot be read: %s", failure)
            await asyncio.sleep(CHECK_SECONDS)
