"""Reads the cloud's warnings and answers them.

Asked by Interruptions (one long step that reads) and by AnswerInterruption (the answer). A message is acknowledged
only after its answer has been started as a workflow; a worker killed before that gets it again. The trap avoided: one
message that cannot be handled holding up all others.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable

from temporalio import activity
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.service import RPCError

from activities.beating import report
from activities.notices.interruptions import terminating, warned
from activities.revising import revise_claim
from core.model import names
from core.model.interruptions import Answered, AnswerInput, Interruption
from core.model.nodes import NodeClaim
from core.model.pod_rules import format_moment
from core.model.steps import ClaimRef
from core.model.workflow_ids import interruptions_id, task_queue
from core.model.workflow_types import ANSWER_INTERRUPTION
from ports.failures import Failure
from ports.interruptions import Interruptions, Message
from ports.objects import MetadataChange, NodeClaims, Notice, Notices
from ports.view import ClusterView

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
            done = await asyncio.gather(*[self._one(message) for message in messages])
            await self.interruptions.acknowledge([receipt for receipt in done if receipt])
            self.seen += len(messages)
            report(f"{self.seen} messages read")
        except Failure as failure:
            _log.warning("messages were not acknowledged and will come again: %s", failure)
        finally:
            slots.release()

    async def _one(self, message: Message) -> str:
        """The receipt to acknowledge; empty where the message must come again."""
        if message.interruption is None:
            _log.error("a message of the queue is thrown away: %s", message.problem)
            return message.receipt
        try:
            await self._start(message.interruption)
        except RPCError as error:
            _log.warning("an answer could not be started, its message will come again: %s", error)
            return ""
        return message.receipt

    async def _start(self, interruption: Interruption) -> None:
        """One answer per instance and reason; one that runs already is the same (W-187)."""
        if not interruption.instances or interruption.reason == "no_op":
            return
        for instance in interruption.instances:
            one = Interruption(
                id=interruption.id, reason=interruption.reason, instances=(instance,), at=interruption.at
            )
            await activity.client().start_workflow(
                ANSWER_INTERRUPTION,
                AnswerInput(cluster=self.cluster, interruption=one),
                id=f"{interruptions_id(self.cluster)}/{instance}/{interruption.reason}",
                task_queue=task_queue(self.cluster, "control"),
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                static_summary=f"{interruption.reason.replace('_', ' ')}: {instance}",
            )

    async def _check(self) -> None:
        """EC2's own checks, once a minute; what is answered already is not answered again until it is well."""
        known: frozenset[tuple[str, str]] = frozenset()
        while True:
            try:
                found = await self.interruptions.troubles()
                fresh = [each for each in found if (each.id, each.reason) not in known]
                for each in fresh:
                    await self._start(each)
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
    async def answer_interruption(self, interruption: Interruption) -> Answered:
        """Remember what it says of the offering, then delete the claims of the instances (W-129, W-130)."""
        snapshot = self.view.snapshot()
        met = [claim for claim in snapshot.claims.values() if _is_of(claim, interruption)]
        deleted = [claim for claim in met if await self._answer(interruption, claim)]
        return Answered(
            interruption=interruption,
            claims=tuple(ClaimRef(name=claim.name, uid=claim.uid) for claim in met),
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
    async def tell_interruption(self, answered: Answered) -> None:
        """Events on each claim and its node."""
        reason = answered.interruption.reason
        uids = {node.name: node.uid for node in self.view.snapshot().nodes.values()}
        found: list[Notice | None] = []
        for claim, node in zip(answered.claims, answered.nodes, strict=True):
            found += [warned(reason, ("NodeClaim", claim.name, claim.uid))]
            found += [warned(reason, ("Node", node, uids[node]))] if node in uids else []
            if claim.name in answered.deleted:
                found += [terminating(("NodeClaim", claim.name, claim.uid))]
                found += [terminating(("Node", node, uids[node]))] if node in uids else []
        await self.notices.publish(*_present(found))


def _present(notices: Iterable[Notice | None]) -> list[Notice]:
    return [notice for notice in notices if notice is not None]


def _is_of(claim: NodeClaim, interruption: Interruption) -> bool:
    return bool(claim.provider_id) and claim.provider_id.rpartition("/")[2] in interruption.instances
