"""Gate: what a new version must pass before it is given a share of the work.

Nothing of ours starts it. temporal-worker-controller does, pinned to the new version before that has any work, and goes
on with the roll-out once the Gate has succeeded (docs/upgrading.md). It needs no cluster name: the queue on which it
was started is the cluster's.
"""

from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

from dovetail.workflows.options import judging

with workflow.unsafe.imports_passed_through():
    from dovetail.activities.identity.judge_version import NOT_FIT, JudgeVersion
    from dovetail.messages.inputs import GateInput
    from dovetail.messages.workflow_types import GATE


@workflow.defn(name=GATE)
class Gate:
    """One look at a new version by its own workers, repeated for some minutes while something stops it."""

    @workflow.run
    async def run(self, given: GateInput | None = None) -> str:
        """Succeeds, or fails with what stops the roll-out."""
        seconds = (given or GateInput()).seconds
        workflow.set_current_details(f"looking for what must stop this version, again for {seconds:.0f} s")
        try:
            await workflow.execute_activity_method(
                JudgeVersion.judge_version,
                summary="look as dovetail doctor does",
                schedule_to_close_timeout=timedelta(seconds=seconds),
                **judging(workflow.info().task_queue),
            )
        except ActivityError as error:
            why = error.cause or error
            raise ApplicationError(f"this version must not be given work: {why}", type=NOT_FIT) from error
        return "nothing stops this version"
