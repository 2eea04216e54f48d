"""Starting the owner of each claim: LaunchNode for a new one, TerminateNode for one that was deleted.

The children are abandoned on purpose: the default would terminate them when their parent continues as new. A workflow
that runs under the claim's id already is either the one that is wanted or about to become it; where it is neither, and
where a start fails, the Caretaker finds the claim without its owner and starts one.
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import TypeVar

from temporalio import workflow
from temporalio.common import Priority
from temporalio.exceptions import FailureError, WorkflowAlreadyStartedError

with workflow.unsafe.imports_passed_through():
    from dovetail.messages.inputs import ClaimInput
    from dovetail.messages.subjects import ClaimRef
    from dovetail.messages.workflow_ids import claim_owner_id, task_queue
    from dovetail.messages.workflow_types import LAUNCH_NODE, TERMINATE_NODE
    from dovetail.workflows.attributes import attributes

T = TypeVar("T")

STARTS_AT_ONCE = 20
FIRST_PHASES = {LAUNCH_NODE: "launching", TERMINATE_NODE: "tainting"}


async def start_launches(cluster: str, claims: tuple[ClaimRef, ...]) -> None:
    """One LaunchNode per claim, side by side."""
    for group in in_parts(claims):
        await asyncio.gather(*[_start(cluster, claim, LAUNCH_NODE, "a node for") for claim in group])


async def start_terminations(cluster: str, claims: tuple[ClaimRef, ...], priority: Priority = Priority.default) -> None:
    """One TerminateNode per deleted claim, side by side: a second or two sooner than the Caretaker's look."""
    for group in in_parts(claims):
        starts = [_start(cluster, claim, TERMINATE_NODE, "the end of", priority) for claim in group]
        await asyncio.gather(*starts)


def in_parts(things: Sequence[T], patch: str = "") -> Iterator[Sequence[T]]:
    """Twenty at a time: a hundred starts in one workflow task may take long enough to count as a deadlock, and may be
    more than the server takes. `patch` names the change since which a history has parts; without one it always had."""
    size = STARTS_AT_ONCE
    if patch and len(things) > size and not workflow.patched(patch):
        size = len(things)
    for first in range(0, len(things), size):
        yield things[first : first + size]


async def _start(
    cluster: str, claim: ClaimRef, workflow_type: str, summary: str, priority: Priority = Priority.default
) -> None:
    try:
        await workflow.start_child_workflow(
            workflow_type,
            ClaimInput(cluster=cluster, claim=claim, joins_in_one_step=True),
            id=claim_owner_id(cluster, claim.name),
            task_queue=task_queue(cluster, "control"),
            parent_close_policy=workflow.ParentClosePolicy.ABANDON,
            search_attributes=attributes(pool=claim.pool, claim=claim.name, phase=FIRST_PHASES[workflow_type]),
            static_summary=f"{summary} NodeClaim {claim.name}",
            priority=priority,
        )
    except WorkflowAlreadyStartedError:
        workflow.logger.info("NodeClaim %s already has its owner", claim.name)
    except FailureError as failure:
        workflow.logger.warning("%s of NodeClaim %s could not be started: %s", workflow_type, claim.name, failure)
