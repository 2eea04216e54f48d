"""ReleaseNode: a deleting managed Node without a NodeClaim leaves (TRM-10).

Started by the Caretaker. The node is drained and its volumes are detached, then the finalizer is removed; this workflow
does not terminate its instance, if there is one.
"""

from temporalio import workflow

from dovetail.workflows.attributes import show_phase
from dovetail.workflows.options import quick, waiting
from dovetail.workflows.shielding import shielded

with workflow.unsafe.imports_passed_through():
    from dovetail.activities.termination.await_detached import AwaitDetached
    from dovetail.activities.termination.begin_and_end_departure import BeginAndEndDeparture
    from dovetail.activities.termination.drain_node import DrainNode
    from dovetail.messages.inputs import NodeInput
    from dovetail.messages.workflow_types import RELEASE_NODE


@workflow.defn(name=RELEASE_NODE)
class ReleaseNode:
    """One claimless node from its deletion to its finalizer."""

    @workflow.init
    def __init__(self, given: NodeInput) -> None:
        self.given = given

    @workflow.run
    async def run(self, given: NodeInput) -> str:
        return await shielded(self.release())

    def enter(self, phase: str) -> None:
        show_phase(phase)
        workflow.set_current_details(f"**{phase}**: Node {self.given.node}, which has no NodeClaim")

    async def release(self) -> str:
        cluster = self.given.cluster
        self.enter("tainting")
        departure = await workflow.execute_activity_method(
            BeginAndEndDeparture.begin_release, self.given, summary="taint the node", **quick(cluster)
        )
        if departure.nodes and not departure.instance_gone:
            self.enter("draining")
            drained = await workflow.execute_activity_method(
                DrainNode.drain_node, departure, summary=f"drain {self.given.node}", **waiting(cluster)
            )
            if not drained.instance_gone:
                self.enter("detaching")
                await workflow.execute_activity_method(
                    AwaitDetached.await_detached, departure, summary="wait for volumes to detach", **waiting(cluster)
                )
        self.enter("releasing")
        await workflow.execute_activity_method(
            BeginAndEndDeparture.release_node, departure, summary="release the finalizer", **quick(cluster)
        )
        self.enter("released")
        return "released"
