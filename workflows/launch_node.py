"""LaunchNode: a claim becomes a node.

Started for each new claim under the claim's own id, which it keeps for the claim's whole life: when the claim is
deleted, or cannot be launched, this workflow goes on as TerminateNode under the same id, so that launch and termination
can never work on one claim at once.
"""

from temporalio import workflow

from dovetail.workflows.attributes import show_phase
from dovetail.workflows.options import launching, quick, waiting
from dovetail.workflows.shielding import shielded
from dovetail.workflows.terminate_node import TerminateNode

with workflow.unsafe.imports_passed_through():
    from dovetail.activities.disruption.delete_claim import DeleteClaims
    from dovetail.activities.disruption.publish_notices import PublishNotices
    from dovetail.activities.launch.await_registered_and_initialized import AwaitRegisteredAndInitialized
    from dovetail.activities.launch.launch_instance import LaunchInstance
    from dovetail.messages.inputs import ClaimInput
    from dovetail.messages.outcomes import JoinOutcome
    from dovetail.messages.requests import DeleteRequest, NoticeRequest
    from dovetail.messages.workflow_types import LAUNCH_NODE
    from dovetail.model.reasons.endings import Ending

_ENDINGS = {
    "no_capacity": Ending.NO_CAPACITY,
    "class_not_ready": Ending.CLASS_NOT_READY,
    "timed_out": Ending.REFUSED,
}


@workflow.defn(name=LAUNCH_NODE)
class LaunchNode:
    """One claim from its creation to an initialised node."""

    @workflow.init
    def __init__(self, given: ClaimInput) -> None:
        self.given = given
        self.phase = "starting"

    @workflow.run
    async def run(self, given: ClaimInput) -> str:
        """Launch, register, initialise; failing that, become the claim's termination."""
        ending = await shielded(self.launch())
        if ending == "deleting":
            workflow.continue_as_new(given, workflow=TerminateNode.run)
        self.enter(ending)
        return ending

    @workflow.query
    def status(self) -> str:
        """The phase that the launch is in."""
        return self.phase

    def enter(self, phase: str) -> None:
        """Show the phase in the Web UI and to searches."""
        show_phase(phase)
        self.show(phase)

    def show(self, phase: str) -> None:
        """Show the phase in the Web UI; searches find the launch by the phase that it began with."""
        self.phase = phase
        workflow.set_current_details(f"**{phase}**: NodeClaim {self.given.claim.name}")

    async def launch(self) -> str:
        """The steps. Returns initialised, gone, or deleting: then the claim must be terminated."""
        self.enter("launching")
        cluster, claim = self.given.cluster, self.given.claim
        launched = await workflow.execute_activity_method(
            LaunchInstance.launch_instance, claim, summary=f"launch an instance for {claim.name}", **launching(cluster)
        )
        match launched.kind:
            case "launched":
                pass
            case "gone":
                # The claim's finalizer is gone too, and removing it includes terminating the instance.
                return "gone"
            case "deleting":
                return "deleting"
            case "no_capacity" | "class_not_ready" | "timed_out":
                return await self.give_up(_ENDINGS[launched.kind], launched.message)
        return await self.join()

    async def join(self) -> str:
        """Wait for a node that is ready for pods, in one step unless something must be published on the way."""
        self.show("joining")
        joined = await workflow.execute_activity_method(
            AwaitRegisteredAndInitialized.await_joined,
            self.given.claim,
            summary="wait for the node to be ready for pods",
            **waiting(self.given.cluster),
        )
        if joined.kind != "done":
            return await self.unjoined(joined)
        if joined.unmarked:
            await self.publish_taint_missing(joined.node)
            return await self.initialise()
        return "initialised"

    async def initialise(self) -> str:
        """Wait until a node that is registered is ready for pods."""
        cluster, claim = self.given.cluster, self.given.claim
        self.enter("initialising")
        initialised = await workflow.execute_activity_method(
            AwaitRegisteredAndInitialized.await_initialized,
            claim,
            summary="wait for the node to be ready for pods",
            **waiting(cluster),
        )
        if initialised.kind != "done":
            return await self.unjoined(initialised)
        return "initialised"

    async def publish_taint_missing(self, node: str) -> None:
        """EVT-7: a notice that pods may have been bound too early."""
        await workflow.execute_activity_method(
            PublishNotices.publish,
            NoticeRequest(
                nodes=(node,),
                reason="UnregisteredTaintMissing",
                message="The node came without the taint karpenter.sh/unregistered: pods may be bound too early",
                warning=True,
            ),
            summary="say that a taint is missing",
            **quick(self.given.cluster),
        )

    async def unjoined(self, outcome: JoinOutcome) -> str:
        """The node did not join: its time ran out, or the claim was deleted."""
        if outcome.kind == "timed_out":
            return await self.give_up(Ending.UNREGISTERED, outcome.message)
        return outcome.kind

    async def give_up(self, ending: str, why: str) -> str:
        """Delete the claim; its pods are pending again."""
        self.enter("giving up")
        workflow.set_current_details(f"**giving up**: NodeClaim {self.given.claim.name}: {why}")
        await workflow.execute_activity_method(
            DeleteClaims.delete_claim,
            DeleteRequest(
                name=self.given.claim.name,
                uid=self.given.claim.uid,
                pool=self.given.claim.pool,
                because=ending,
                because_words=why,
            ),
            summary=f"delete the claim: {why}"[:200],
            **quick(self.given.cluster),
        )
        return "deleting"
