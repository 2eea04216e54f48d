"""Reads the cloud's warnings, and starts a workflow that answers them.

A message is acknowledged only after its answer has been started as a workflow; a worker killed before that gets it
again. A message that cannot be read is logged and thrown away: it would hold up all others.
"""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from temporalio import activity
from temporalio.common import Priority, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.service import RPCError

from dovetail.activities.shared.heartbeats import beside, looked, progressed, report
from dovetail.background.supervised import stop, supervised
from dovetail.messages.interruptions import AnswerInput, Interruption
from dovetail.messages.workflow_ids import interruptions_id, task_queue
from dovetail.messages.workflow_types import ANSWER_INTERRUPTION
from dovetail.ports.failures import Failure, least_wait
from dovetail.ports.interruptions import Interruptions, Message

Answer = Callable[[Sequence[Interruption]], Awaitable[None]]

_log = logging.getLogger(__name__)

RETURN_SECONDS = 3600.0
CHECK_SECONDS = 60.0  # AWS-136
BATCHES_AT_ONCE = 10  # of ten messages each
WARNINGS_OF_AN_ANSWER = 200  # one message about an outage may name thousands of instances
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 10.0
_EMPTY_PAUSE = 1.0


class Watching:
    """The step that reads."""

    def __init__(self, cluster: str, interruptions: Interruptions, now: Callable[[], float]) -> None:
        self.cluster, self.interruptions, self.now = cluster, interruptions, now
        self.seen = 0

    @activity.defn
    async def watch_interruptions(self) -> None:
        """For an hour: read, start answers, acknowledge. What is under way at the end is waited for."""
        until = self.now() + RETURN_SECONDS
        checks = supervised(
            "checks of instances", InstanceChecks(self.interruptions, self._start).run, context=beside()
        )
        try:
            async with asyncio.TaskGroup() as batches:
                await self._read(until, batches)
        finally:
            await stop(checks)

    async def _read(self, until: float, batches: asyncio.TaskGroup) -> None:
        slots, pause = asyncio.Semaphore(BATCHES_AT_ONCE), _FIRST_PAUSE
        while self.now() < until:
            began = self.now()
            progressed()
            try:
                messages = await self.interruptions.receive()
                pause = _FIRST_PAUSE
                looked()
            except Failure as failure:
                _log.warning("the queue of warnings cannot be read: %s", failure)
                await asyncio.sleep(least_wait(failure) or pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
                continue
            if messages:
                await slots.acquire()
                batches.create_task(self._answer(messages, slots))
            elif self.now() - began < _FIRST_PAUSE:
                await asyncio.sleep(_EMPTY_PAUSE)  # the queue does not wait for messages, as it is asked to

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
        ordered = [warnings[key] for key in sorted(warnings)]
        for start in range(0, len(ordered), WARNINGS_OF_AN_ANSWER):
            await self._start_answer(tuple(ordered[start : start + WARNINGS_OF_AN_ANSWER]))

    async def _start_answer(self, warnings: tuple[Interruption, ...]) -> None:
        keys = [(each.instances[0], each.reason) for each in warnings]
        (instance, reason), *others = keys
        base = interruptions_id(self.cluster)
        digest = hashlib.sha256(repr(keys).encode()).hexdigest()[:16]
        summary = f"{reason.replace('_', ' ')}: {instance}"
        await activity.client().start_workflow(
            ANSWER_INTERRUPTION,
            AnswerInput(cluster=self.cluster, interruptions=warnings),
            id=f"{base}/several/{digest}" if others else f"{base}/{instance}/{reason}",
            task_queue=task_queue(self.cluster, "control"),
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            priority=Priority(priority_key=1),  # two minutes are left; it passes launches and disruptions that wait
            static_summary=f"{summary} and {len(others)} more" if others else summary,
        )


class InstanceChecks:
    """The cloud's own checks of its instances, once a minute (AWS-136)."""

    def __init__(self, interruptions: Interruptions, answer: Answer) -> None:
        self._interruptions, self._answer = interruptions, answer
        self._known: frozenset[tuple[str, str]] = frozenset()

    async def run(self) -> None:
        """For ever. What was answered is not answered again until it has been well."""
        while True:
            try:
                found = await self._interruptions.troubles()
                await self._answer([each for each in found if (each.id, each.reason) not in self._known])
                self._known = frozenset((each.id, each.reason) for each in found)
            except (Failure, RPCError) as failure:
                _log.warning("the checks of instances cannot be read: %s", failure)
            await asyncio.sleep(CHECK_SECONDS)
