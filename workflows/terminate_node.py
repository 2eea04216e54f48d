"""TerminateNode: carries out the deletion of a claim.

A plan, expiry, an interruption, a failed launch or `kubectl delete` all end here, under the claim's own id: taint,
drain with grace period, volumes detached, instance terminated, finalizers released. There is no way back, so nothing
cancels it; each step finds out for itself what is already done.
"""

from dataclasses import replace

from temporalio import workflow

from dovetail.workflows.attributes import show_phase
from dovetail.workflows.options import leaving, quick, waiting
from dovetail.workflows.shielding import shielded

with workflow.unsafe.imports_passed_through():
    from dovetail.activities.termination.await_detached import AwaitDetached
    from dovetail.activities.termination.begin_and_end_departure import BeginAndEndDeparture
    from dovetail.activities.termination.drain_node import DrainNode
    from dovetail.activities.termination.terminate_instance import TerminateInstance
    from dovetail.messages.inputs import ClaimInput
    from dovetail.messages.subjects import Departure
    from dovetail.messages.workflow_types import TERMINATE_NODE


@workflow.defn(name=TERMINATE_NODE)
class TerminateNode:
    """One claim from its deletion to its last finalizer."""

    @workflow.init
    def __init__(self, given: ClaimInput) -> None:
        self.given = given
        self.phase = "starting"

    @workflow.run
    async def run(self, given: ClaimInput) -> str:
        """Drain, detach, terminate, release."""
        return await shielded(self.terminate())

    @workflow.query
    def status(self) -> str:
        """The phase that the termination is in."""
        return self.phase

    def enter(self, phase: str, *, unless_known: bool = False) -> None:
        """Show the phase in the Web UI and to searches."""
        self.phase = phase
        show_phase(phase, unless_known=unless_known)
        workflow.set_current_details(f"**{phase}**: NodeClaim {self.given.claim.name}")

    async def terminate(self) -> str:
        cluster = self.given.cluster
        self.enter("tainting")
        departure = await workflow.execute_activity_method(
            BeginAndEndDeparture.begin_departure,
            self.given.claim,
            summary="taint the node, fix the deadline",
            **quick(cluster),
        )
        if departure.claim_gone:
            self.enter("gone")
            return "gone"
        if departure.nodes and not departure.instance_gone:
            departure = replace(departure, emptied=await self.empty(departure))
        self.enter("terminating")
        ended = await workflow.execute_activity_method(
            TerminateInstance.terminate_instance, departure, summary="terminate the instance", **leaving(cluster)
        )
        if not ended.released:
            self.enter("releasing")
            await workflow.execute_activity_method(
                BeginAndEndDeparture.release_claim, departure, summary="release the finalizers", **quick(cluster)
            )
        self.enter("terminated")
        return "terminated"

    async def empty(self, departure: Departure) -> bool:
        """Drain pods, then detach volumes; whether the claim must still record that, with the end of its instance."""
        cluster = self.given.cluster
        self.enter("draining", unless_known=True)
        drained = await workflow.execute_activity_method(
            DrainNode.drain_node,
            replace(departure, hands_over=True),
            summary=f"drain {', '.join(departure.nodes)}",
            **waiting(cluster),
        )
        if drained.instance_gone or drained.detached:
            return drained.unwritten
        self.enter("detaching")
        await workflow.execute_activity_method(
            AwaitDetached.await_detached, departure, summary="wait for volumes to detach", **waiting(cluster)
        )
        return False
