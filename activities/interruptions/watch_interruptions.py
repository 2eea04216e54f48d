"""Reads the cloud's warnings, and starts a workflow that answers them.

A message is acknowledged only after its answer has been started as a workflow; a worker killed before that gets it
again. A message that cannot be read is logged and thrown away: it would hold up all others.
"""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from temporalio import activity
from temporalio.common import Priority, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.service import RPCError

from dovetail.activities.shared.heartbeats import beside, progressed, report
from dovetail.messages.interruptions import AnswerInput, Interruption
from dovetail.messages.workflow_ids import interruptions_id, task_queue
from dovetail.messages.workflow_types import ANSWER_INTERRUPTION
from dovetail.ports.failures import Failure, least_wait
from dovetail.ports.interruptions import Interruptions, Message

_log = logging.getLogger(__name__)

RETURN_SECONDS = 3600.0
CHECK_SECONDS = 60.0  # AWS-136
BATCHES_AT_ONCE = 10  # of ten messages each
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 10.0


class Watching:
    """The step that reads."""

    def __init__(self, cluster: str, interruptions: Interruptions, now: Callable[[], float]) -> None:
        self.cluster, self.interruptions, self.now = cluster, interruptions, now
        self.seen = 0

    @activity.defn
    async def watch_interruptions(self) -> None:
        """For an hour: read, start answers, acknowledge. What is under way at the end is waited for."""
        until = self.now() + RETURN_SECONDS
        checks = asyncio.create_task(self._check(), context=beside())
        try:
            async with asyncio.TaskGroup() as batches:
                await self._read(until, batches)
        finally:
            checks.cancel()
            await asyncio.gather(checks, return_exceptions=True)

    async def _read(self, until: float, batches: asyncio.TaskGroup) -> None:
        slots, pause = asyncio.Semaphore(BATCHES_AT_ONCE), _FIRST_PAUSE
        while self.now() < until:
            progressed()
            try:
                messages = await self.interruptions.receive()
                pause = _FIRST_PAUSE
            except Failure as failure:
                _log.warning("the queue of warnings cannot be read: %s", failure)
                await asyncio.sleep(least_wait(failure) or pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
                continue
            if messages:
                await slots.acquire()
                batches.create_task(self._answer(messages, slots))

    async def _answer(self, messages: tuple[Message, ...], slots: asyncio.Semaphore) -> None:
        try:
            for message in messages:
                if message.interruption is None:
                    _log.error("a message of the queue is thrown away: %s", message.problem)
            await self._start([message.interruption for message in messages if message.interruption is not None])
            await self.interruptions.acknowledge([message.receipt for message in messages])
            self.seen += len(messages)
            report(f"{self.seen} messages read")
        except RPCError as error:
            _log.warning("an answer could not be started, its messages will come again: %s", error)
        except Failure as failure:
            _log.warning("messages were not acknowledged and will come again: %s", failure)
        finally:
            slots.release()

    async def _start(self, interruptions: Sequence[Interruption]) -> None:
        """One answer for what came together; the same warnings, while they are being answered, are the same
        (AWS-187)."""
        warnings = {
            (instance, each.reason): replace(each, instances=(instance,))
            for each in interruptions
            if each.reason != "no_op"
            for instance in each.instances
        }
        if not warnings:
            return
        (instance, reason), *others = sorted(warnings)
        base = interruptions_id(self.cluster)
        digest = hashlib.sha256(repr(sorted(warnings)).encode()).hexdigest()[:16]
        summary = f"{reason.replace('_', ' ')}: {instance}"
        await activity.client().start_workflow(
            ANSWER_INTERRUPTION,
            AnswerInput(cluster=self.cluster, interruptions=tuple(warnings.values())),
            id=f"{base}/several/{digest}" if others else f"{base}/{instance}/{reason}",
            task_queue=task_queue(self.cluster, "control"),
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            priority=Priority(priority_key=1),  # two minutes are left; it passes launches and disruptions that wait
            static_summary=f"{summary} and {len(others)} more" if others else summary,
        )

    async def _check(self) -> None:
        """EC2's own checks, once a minute; what was answered is not answered again until it has been well."""
        known: frozenset[tuple[str, str]] = frozenset()
        while True:
            try:
                found = await self.interruptions.troubles()
                fresh = [each for each in found if (each.id, each.reason) not in known]
                await self._start(fresh)
                known = frozenset((each.id, each.reason) for each in found)
            except (Failure, RPCError) as failure:
                _log.warning("the checks of instances cannot be read: %s", failure)
            await asyncio.sleep(CHECK_SECONDS)
