"""DisruptNodes: one disruption command, from the mark to the last instance.

Started by the Scheduler for each command of a plan. Its first step marks the nodes, so a mark never exists without a
workflow that owns it. Until the delete everything is undone on a failure or a cancel; from the delete on it only goes
forward. A cancel comes as an update, which is refused when too late, or as a plain signal, which is then answered by a
notice.
"""

import asyncio
from typing import Literal

from temporalio import workflow
from temporalio.exceptions import ApplicationError, FailureError, is_cancelled_exception

from dovetail.workflows.attributes import show_phase
from dovetail.workflows.claim_owners import start_launches, start_terminations
from dovetail.workflows.loops import said
from dovetail.workflows.options import ending, impatient, quick, waiting, watching
from dovetail.workflows.shielding import shielded

with workflow.unsafe.imports_passed_through():
    from dovetail.activities.disruption.await_progress import AwaitProgress
    from dovetail.activities.disruption.delete_claim import DeleteClaims
    from dovetail.activities.disruption.give_back import GiveBack
    from dovetail.activities.disruption.mark_and_unmark_nodes import MarkAndUnmarkNodes
    from dovetail.activities.disruption.publish_notices import PublishNotices
    from dovetail.activities.provisioning.create_node_claims import CreateNodeClaims
    from dovetail.activities.termination.drain_node import DrainNode
    from dovetail.messages.inputs import DisruptInput
    from dovetail.messages.outcomes import DisruptionRecord, StepOutcome
    from dovetail.messages.plans import Target, name_of
    from dovetail.messages.requests import (
        CreateRequest,
        DeleteRequest,
        DeletesRequest,
        GiveBackRequest,
        MarkRequest,
        NoticeRequest,
        ReadyRequest,
        UnmarkRequest,
    )
    from dovetail.messages.subjects import ClaimRef, Departure
    from dovetail.messages.workflow_types import DISRUPT_NODES
    from dovetail.telemetry.metrics.ours.outcomes import realised

# DIS-155: replacements have this long to be initialised; then the command is undone.
REPLACEMENT_SECONDS = 600.0

# A cancel waits for a step that writes: the undo must not overlap it.
TO_THE_END = workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED


class Undone(Exception):
    """The command cannot be carried out: undo what was done."""


@workflow.defn(name=DISRUPT_NODES)
class DisruptNodes:
    """One command of a disruption plan."""

    @workflow.init
    def __init__(self, given: DisruptInput) -> None:
        self.given = given
        self.phase = "starting"
        self.committed = False
        self.cancel_reason = ""
        self.called_off_by = ""
        self.marked: tuple[Target, ...] = ()
        self.body: asyncio.Task[None] | None = None

    @workflow.run
    async def run(self, given: DisruptInput) -> DisruptionRecord:
        """Forward to the delete; then to the end, or back."""
        self.body = asyncio.create_task(self.up_to_the_delete())
        try:
            await self.body
        except (asyncio.CancelledError, FailureError, Undone) as error:
            record = self.record(error)
            await shielded(self.undo(record))
        else:
            record = self.rebooting() if given.command.reboots else await shielded(self.from_the_delete())
            self.count(record)
        await workflow.wait_condition(workflow.all_handlers_finished)
        return record

    @workflow.update
    async def cancel_disruption(self, reason: str, by: str = "") -> str:
        """Cancel before the delete: remove marks, give replacements back. `by`: who asks. Commands of 0.1 send it."""
        self.call_off(reason, by)
        return f"cancelled while {self.phase}"

    @cancel_disruption.validator
    def refuse_when_too_late(self, reason: str, by: str = "") -> None:
        """After the delete nothing can be undone; refusing writes no history."""
        if self.committed:
            raise ApplicationError(f"too late: {self.names()} is being deleted ({self.phase})", type="TooLate")
        if self.cancel_reason:
            raise ApplicationError(f"already being cancelled: {self.cancel_reason}", type="AlreadyCancelling")

    @workflow.signal
    async def cancel(self, reason: str = "", by: str = "") -> None:
        """A cancel by signal, for the `temporal` command and scripts. A signal cannot be refused, so a late one gets a
        notice."""
        if not self.committed:
            self.call_off(reason or "by signal", by)
            return
        message = f"a cancel came too late: {self.names()} is already being deleted"
        workflow.set_current_details(f"**{self.phase}**: {message}")
        nodes = tuple(t.node for t in self.given.command.targets)
        request = NoticeRequest(nodes=nodes, reason="DisruptionCancelTooLate", message=message, warning=True)
        await workflow.execute_activity_method(
            PublishNotices.publish, request, summary="say that the cancel came too late", **quick(self.given.cluster)
        )

    @workflow.query
    def status(self) -> str:
        """The phase that the disruption is in."""
        return self.phase

    def call_off(self, reason: str, by: str) -> None:
        """Stop the way forward; `run` undoes."""
        self.cancel_reason = reason or "no reason given"
        self.called_off_by = by
        if self.body is not None:
            self.body.cancel(self.cancel_reason)

    def names(self) -> str:
        return ", ".join(t.node or t.claim for t in self.given.command.targets)

    def enter(self, phase: str) -> None:
        """Show the phase; before the delete, stop here if a cancel has arrived."""
        self.phase = phase
        show_phase(phase)
        workflow.set_current_details(f"**{phase}**: {self.given.command.summary or self.names()}")
        if not self.committed and (self.cancel_reason or workflow.cancellation_reason() is not None):
            raise asyncio.CancelledError(self.cancel_reason)

    def record(self, error: BaseException) -> DisruptionRecord:
        """Record how it ended if it did not reach the delete."""
        command = self.given.command
        if self.cancel_reason or is_cancelled_exception(error):
            why = self.cancel_reason or workflow.cancellation_reason() or "cancelled"
            return DisruptionRecord(outcome="cancelled", reason=command.reason, message=why, by=self.called_off_by)
        cause = error.__cause__ if isinstance(error, FailureError) and error.__cause__ else error
        outcome: Literal["failed", "refused"] = "failed" if self.marked else "refused"
        return DisruptionRecord(outcome=outcome, reason=command.reason, message=str(cause))

    async def up_to_the_delete(self) -> None:
        """Mark, then replacements until they are initialised. Everything here can be undone."""
        self.enter("marking")
        await self.mark()
        if self.given.command.reboots:
            self.committed = True
            return
        if self.given.command.replacements:
            self.enter("launching replacements")
            claims = await self.create_replacements()
            self.enter("waiting for replacements")
            await self.await_replacements(claims)
        if self.given.command.drain_first:
            self.enter("draining before the delete")
            await asyncio.gather(*[self.drain(target) for target in self.marked])
        self.enter("deleting")
        self.committed = True

    async def mark(self) -> None:
        """DIS-145: with replacements planned, or nothing marked, a refusal ends the command; a mere delete goes on."""
        command = self.given.command
        request = MarkRequest(owner=workflow.info().workflow_id, command=command, seen=self.given.seen)
        outcome = await workflow.execute_activity_method(
            MarkAndUnmarkNodes.mark_nodes,
            request,
            summary=f"mark {self.names()}"[:200],
            cancellation_type=TO_THE_END,
            **impatient(quick(self.given.cluster, len(command.targets))),
        )
        self.marked = tuple(t for t in command.targets if t.claim in outcome.marked)
        if outcome.refused and (command.replacements or not self.marked):
            raise Undone("; ".join(f"{name}: {why}" for name, why in outcome.refused))

    async def create_replacements(self) -> tuple[ClaimRef, ...]:
        """The plan's claims, and a LaunchNode for each."""
        given = self.given
        request = CreateRequest(
            plan_id=given.plan_id,
            proposed=given.command.replacements,
            type_lists=given.type_lists,
            reason=given.command.reason.lower(),
            owner=workflow.info().workflow_id,
            places=given.seen.places,
        )
        outcome = await workflow.execute_activity_method(
            CreateNodeClaims.create_node_claims,
            request,
            summary="create the replacements",
            cancellation_type=TO_THE_END,
            **impatient(quick(given.cluster)),
        )
        await start_launches(given.cluster, outcome)
        if outcome.refused:
            raise Undone("; ".join(f"{name}: {why}" for name, why in outcome.refused))
        return outcome.claims

    async def await_replacements(self, claims: tuple[ClaimRef, ...]) -> None:
        """Wait until all are initialised. Raises Undone if one of them failed."""
        request = ReadyRequest(claims=claims, until=workflow.now().timestamp() + REPLACEMENT_SECONDS)
        outcome = await workflow.execute_activity_method(
            AwaitProgress.await_ready,
            request,
            summary="wait until the replacements are ready",
            **impatient(watching(self.given.cluster)),
        )
        if outcome.kind == "failed":
            raise Undone(outcome.message)

    async def drain(self, target: Target) -> None:
        """Evict the pods while a cancel is still possible, for as long as PDBs hold them; by force only if claim or
        repair gives a grace period, which counts from here instead of from the delete, and nobody asked for it."""
        deadline = workflow.now().timestamp() + target.grace if target.grace is not None else None
        departure = Departure(
            claim=ClaimRef(name=target.claim, uid=target.claim_uid, pool=target.pool),
            provider_id=target.provider_id,
            nodes=(target.node,),
            node_uids=(target.node_uid,),
            deadline=deadline,
            reason=self.given.command.reason,
        )
        await workflow.execute_activity_method(
            DrainNode.drain_node, departure, summary=f"drain {target.node}", **impatient(waiting(self.given.cluster))
        )

    async def undo(self, record: DisruptionRecord) -> None:
        """Remove marks, give replacements back. Neither needs the other to succeed; the first failure is raised
        last."""
        self.phase = "undoing"
        show_phase(self.phase)
        workflow.set_current_details(f"**undoing**: {self.names()}: {record.words}")
        failures: list[FailureError] = []
        for way_back in (self.unmark, self.give_back):
            try:
                await way_back(record)
            except FailureError as failure:
                failures.append(failure)
        if failures:
            texts = "; ".join(said(failure) for failure in failures)
            workflow.set_current_details(f"**not undone**: {self.names()}: {texts}")
            raise failures[0]
        self.phase = record.outcome
        workflow.set_current_details(f"**{record.outcome}**: {self.names()}: {record.words}")

    async def unmark(self, record: DisruptionRecord) -> None:
        """Remove the marks. Retried without end: a node must not stay marked."""
        given = self.given
        targets = tuple(ClaimRef(name=t.claim, uid=t.claim_uid, pool=t.pool) for t in given.command.targets)
        rest: Literal["", "failed", "cancelled"] = "cancelled" if record.outcome == "cancelled" else "failed"
        unmark = UnmarkRequest(
            owner=workflow.info().workflow_id, claims=targets, why=record.words, rest=rest, reason=record.reason
        )
        await workflow.execute_activity_method(
            MarkAndUnmarkNodes.unmark_nodes, unmark, summary="take the marks off", **quick(given.cluster, len(targets))
        )

    async def give_back(self, record: DisruptionRecord) -> None:
        """Give replacements back, if any were planned."""
        given = self.given
        if not given.command.replacements:
            return
        names = tuple(name_of(r, given.plan_id, i) for i, r in enumerate(given.command.replacements))
        request = GiveBackRequest(plan_id=given.plan_id, names=names, why=record.words, method=given.command.method)
        await workflow.execute_activity_method(
            GiveBack.give_back, request, summary="give the replacements back", **quick(given.cluster, len(names))
        )

    async def from_the_delete(self) -> DisruptionRecord:
        """Delete the claims, then wait until each node is drained and its instance gone."""
        given = self.given
        claims = tuple(ClaimRef(name=t.claim, uid=t.claim_uid, pool=t.pool) for t in self.marked)
        if not (await self.delete_all()).owned:
            await start_terminations(given.cluster, claims, nodes={t.claim: t.node for t in self.marked})
        self.enter("draining")
        await workflow.execute_activity_method(
            AwaitProgress.await_gone, claims, summary="wait until the nodes are gone", **ending(given.cluster)
        )
        self.enter("done")
        return DisruptionRecord(outcome="done", reason=given.command.reason, deleted=tuple(c.name for c in claims))

    def rebooting(self) -> DisruptionRecord:
        """The Caretaker continues what the mark has begun."""
        self.enter("rebooting")
        return DisruptionRecord(outcome="done", reason=self.given.command.reason, message="its instance is rebooted")

    def count(self, record: DisruptionRecord) -> None:
        """Count the savings in its record. A replay has already counted them."""
        command = self.given.command
        if not workflow.unsafe.is_replaying():
            realised(command.reason.lower(), command.savings, len(record.deleted) / len(command.targets))

    async def delete_all(self) -> StepOutcome:
        if len(self.marked) == 1:
            return await self.delete(self.marked[0])
        return await workflow.execute_activity_method(
            DeleteClaims.delete_claims,
            DeletesRequest(targets=self.marked, reason=self.given.command.reason),
            summary=f"delete {len(self.marked)} claims",
            **quick(self.given.cluster, len(self.marked)),
        )

    async def delete(self, target: Target) -> StepOutcome:
        """Delete the claim; TerminateNode carries that out, whether or not this workflow runs on."""
        return await workflow.execute_activity_method(
            DeleteClaims.delete_claim,
            DeleteRequest(
                name=target.claim,
                uid=target.claim_uid,
                pool=target.pool,
                target=target,
                reason=self.given.command.reason,
            ),
            summary=f"delete {target.claim}",
            **quick(self.given.cluster),
        )
