"""Interruptions reads the cloud's warnings; AnswerInterruption acts on them.

Interruptions is a singleton with one long step, which starts an AnswerInterruption for the warnings that the queue
returns together (one, or up to ten in a burst: a workflow for each would cost more than the answers), and acknowledges
them only then. The answer deletes the claims and starts their TerminateNode at once, instead of leaving that to the
Caretaker's next look. Nothing stops an answer: no budget, no do-not-disrupt (AWS-131).
"""

from dataclasses import replace

from temporalio import workflow
from temporalio.common import Priority

from dovetail.workflows.claim_owners import start_terminations
from dovetail.workflows.loops import Loops
from dovetail.workflows.options import impatient, listening, quick
from dovetail.workflows.renewal import renew

with workflow.unsafe.imports_passed_through():
    from dovetail.activities.interruptions.answer_interruptions import AnswerInterruptions
    from dovetail.activities.interruptions.tell_interruptions import InterruptionNotices
    from dovetail.activities.interruptions.watch_interruptions import WatchInterruptions
    from dovetail.messages.interruptions import AnswerInput, InterruptionsInput
    from dovetail.messages.workflow_types import ANSWER_INTERRUPTION, INTERRUPTIONS


@workflow.defn(name=INTERRUPTIONS)
class Interruptions:
    """The singleton that reads the queue."""

    @workflow.init
    def __init__(self, given: InterruptionsInput) -> None:
        self.given = given
        self.loops = Loops(self.show, given.max_history)

    @workflow.run
    async def run(self, given: InterruptionsInput) -> None:
        """Read until the history is long; then continue as new."""
        self.show()
        await self.loops.run(reading=self.read)
        await workflow.wait_condition(workflow.all_handlers_finished)
        renew(replace(self.given, generation=given.generation + 1))

    @workflow.signal
    def poke(self) -> None:
        """Start the reading anew; sent after a deploy, so that the new version is used."""
        self.loops.wake()

    def show(self) -> None:
        """The Web UI's summary."""
        workflow.set_current_details("\n".join(["reading the cloud's warnings", *self.loops.lines()]))

    async def read(self) -> None:
        step = workflow.start_activity_method(
            WatchInterruptions.watch_interruptions, summary="read warnings", **impatient(listening(self.given.cluster))
        )
        await self.loops.waits.wait("reading", step)


# An interrupted instance has two minutes left: its steps come before those of launches and disruptions that wait.
URGENT = Priority(priority_key=1)

# This many warnings at once are a burst: their claims are deleted first, and the Caretaker starts the terminations.
BURST = 10


@workflow.defn(name=ANSWER_INTERRUPTION)
class AnswerInterruption:
    """The answer to the warnings that the queue returned together: mostly one, up to ten in a burst."""

    @workflow.run
    async def run(self, given: AnswerInput) -> str:
        """Delete the claims, then publish notices."""
        lines = [f"{each.reason.replace('_', ' ')}: {', '.join(each.instances)}" for each in given.interruptions]
        workflow.set_current_details("\n\n".join(lines))
        answered = await workflow.execute_activity_method(
            AnswerInterruptions.answer_interruptions,
            given.interruptions,
            summary="delete the claims",
            **quick(given.cluster),
        )
        ordered = [claim for each in answered for claim in each.claims if claim.name in each.deleted]
        if len(given.interruptions) < BURST:
            met = [pair for each in answered for pair in zip(each.claims, each.nodes, strict=False)]
            nodes = {claim.name: node for claim, node in met}
            await start_terminations(given.cluster, tuple(ordered), URGENT, nodes)
        await workflow.execute_activity_method(
            InterruptionNotices.tell_interruptions, answered, summary="publish notices", **quick(given.cluster)
        )
        deleted = [name for each in answered for name in each.deleted]
        return f"deleted {', '.join(deleted)}" if deleted else "nothing to delete"
