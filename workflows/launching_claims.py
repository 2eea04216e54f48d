"""Starting a LaunchNode for each new claim.

Asked by the Scheduler and by DisruptNodes. The children are abandoned on purpose: the default would kill them when
their parent continues as new. One that already runs under the claim's id is the one that is wanted.
"""

import asyncio

from temporalio import workflow
from temporalio.exceptions import WorkflowAlreadyStartedError

with workflow.unsafe.imports_passed_through():
    from core.model.inputs import ClaimInput
    from core.model.steps import ClaimRef
    from core.model.workflow_ids import claim_owner_id, task_queue
    from core.model.workflow_types import LAUNCH_NODE
    from workflows.attributes import attributes


async def start_launches(cluster: str, claims: tuple[ClaimRef, ...]) -> None:
    """One LaunchNode per claim, side by side."""
    await asyncio.gather(*[_start(cluster, claim) for claim in claims])


async def _start(cluster: str, claim: ClaimRef) -> None:
    try:
        await workflow.start_child_workflow(
            LAUNCH_NODE,
            ClaimInput(cluster=cluster, claim=claim),
            id=claim_owner_id(cluster, claim.name),
            task_queue=task_queue(cluster, "control"),
            parent_close_policy=workflow.ParentClosePolicy.ABANDON,
            search_attributes=attributes(pool=claim.pool, claim=claim.name),
            static_summary=f"a node for NodeClaim {claim.name}",
        )
    except WorkflowAlreadyStartedError:
        workflow.logger.info("NodeClaim %s already has its owner", claim.name)
