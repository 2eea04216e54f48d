"""Reads the cloud's warnings and answers them.

A message is acknowledged only after its answer has been started as a workflow; a worker killed before that gets it
again. The trap avoided: one message that cannot be handled holding up all others.
"""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from temporalio import activity
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.service import RPCError

from dovetail.activities.shared.heartbeats import report
from dovetail.activities.shared.revisions import revise_claim
from dovetail.lifecycle.unfinished import reference
from dovetail.messages.interruptions import Answered, AnswerInput, Interruption
from dovetail.messages.workflow_ids import interruptions_id, task_queue
from dovetail.messages.workflow_types import ANSWER_INTERRUPTION
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.notice import Notice
from dovetail.model.pod_rules import format_moment
from dovetail.notices.interruptions import About, terminating, warned
from dovetail.ports.failures import Failure
from dovetail.ports.interruptions import Interruptions, Message
from dovetail.ports.objects import MetadataChange, NodeClaims, Notices
from dovetail.ports.view import ClusterView

_log = logging.getLogger(__name__)

RETURN_SECONDS = 3600.0
CHECK_SECONDS = 60.0  # W-136
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
        checks = asyncio.create_task(self._check())
        try:
            async with asyncio.TaskGroup() as batches:
                await self._read(until, batches)
        finally:
            checks.cancel()
            await asyncio.gather(checks, return_exceptions=True)

    async def _read(self, until: float, batches: asyncio.TaskGroup) -> None:
        slots, pause = asyncio.Semaphore(BATCHES_AT_ONCE), _FIRST_PAUSE
        while self.now() < until:
            try:
                messages = await self.interruptions.receive()
                pause = _FIRST_PAUSE
            except Failure as failure:
                _log.warning("the queue of warnings cannot be read: %s", failure)
                await asyncio.sleep(getattr(failure, "after", None) or pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
                continue
            if messages:
                await slots.acquire()
                batches.create_task(self._batch(messages, slots))

    async def _batch(self, messages: tuple[Message, ...], slots: asyncio.Semaphore) -> None:
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
        """One answer for what came together; the same warnings, while they are being answered, are the same (W-187)."""
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
            static_summary=f"{summary} and {len(others)} more" if others else summary,
        )

    async def _check(self) -> None:
        """EC2's own checks, once a minute; what is answered already is not answered again until it is well."""
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


class Answering:
    """The step that acts."""

    def __init__(
        self, view: ClusterView, claims: NodeClaims, interruptions: Interruptions, now: Callable[[], float]
    ) -> None:
        self.view, self.claims, self.interruptions, self.now = view, claims, interruptions, now

    @activity.defn
    async def answer_interruptions(self, interruptions: tuple[Interruption, ...]) -> tuple[Answered, ...]:
        """Remember what they say of the offerings, then delete the claims of the instances (W-129, W-130).

        All are tried before one that fails is tried again: what cannot be deleted holds nobody else back.
        """
        claims: dict[str, list[NodeClaim]] = {}
        for claim in self.view.snapshot().claims.values():
            if claim.provider_id:
                claims.setdefault(claim.provider_id.rpartition("/")[2], []).append(claim)
        found = await asyncio.gather(*[self._all_of(each, claims) for each in interruptions], return_exceptions=True)
        for each in found:
            if isinstance(each, BaseException):
                raise each
        return tuple(each for each in found if not isinstance(each, BaseException))

    async def _all_of(self, interruption: Interruption, claims: Mapping[str, Sequence[NodeClaim]]) -> Answered:
        met = [claim for instance in interruption.instances for claim in claims.get(instance, ())]
        deleted = [claim for claim in met if await self._answer(interruption, claim)]
        return Answered(
            interruption=interruption,
            claims=tuple(reference(claim) for claim in met),
            nodes=tuple(claim.node_name for claim in met),
            deleted=tuple(claim.name for claim in deleted),
        )

    async def _answer(self, interruption: Interruption, claim: NodeClaim) -> bool:
        await self.interruptions.heed(interruption, claim)
        if not interruption.ends_instances or claim.deleting_since is not None:
            return False
        if interruption.forceful and names.TERMINATION_DEADLINE not in claim.annotations:
            change = MetadataChange(annotations={names.TERMINATION_DEADLINE: format_moment(self.now())})
            if await revise_claim(self.claims, claim, lambda _: change) is None:
                return False
        await self.claims.delete(claim.name, claim.uid)
        return True


class TellingOfInterruptions:
    """The step that says it."""

    def __init__(self, notices: Notices, view: ClusterView) -> None:
        self.notices, self.view = notices, view

    @activity.defn
    async def tell_interruptions(self, answered: tuple[Answered, ...]) -> None:
        """Events on each claim and its node."""
        uids = {node.name: node.uid for node in self.view.snapshot().nodes.values()}
        notices = [notice for each in answered for notice in _said_of(each, uids)]
        await self.notices.publish(*[notice for notice in notices if notice is not None])


def _said_of(answered: Answered, uids: Mapping[str, str]) -> Iterator[Notice | None]:
    reason = answered.interruption.reason
    for claim, node in zip(answered.claims, answered.nodes, strict=True):
        subjects = [About(kind="NodeClaim", name=claim.name, uid=claim.uid)]
        if node in uids:
            subjects.append(About(kind="Node", name=node, uid=uids[node]))
        yield from [warned(reason, subject) for subject in subjects]
        if claim.name in answered.deleted:
            yield from [terminating(subject) for subject in subjects]
