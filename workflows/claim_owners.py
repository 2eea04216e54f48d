"""Starting the owner of each claim: LaunchNode for a new one, TerminateNode for one that was deleted.

The steps that create claims, and that delete a plan's claims, start the owners themselves and say so in their outcome.
Started here are the terminations of an interruption, and all owners if an older worker took the step.

The children are abandoned on purpose: the default would terminate them when their parent continues as new. A workflow
that already runs under the claim's id is either the one that is wanted or about to become it; if it is neither, or if a
start fails, the Caretaker finds the claim without its owner and starts one.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from temporalio import workflow
from temporalio.common import Priority
from temporalio.exceptions import FailureError, WorkflowAlreadyStartedError

with workflow.unsafe.imports_passed_through():
    from dovetail.activities.identity.search_attributes import FIRST_PHASES, attributes
    from dovetail.messages.inputs import ClaimInput
    from dovetail.messages.outcomes import CreateOutcome
    from dovetail.messages.subjects import ClaimRef
    from dovetail.messages.workflow_ids import claim_owner_id, task_queue
    from dovetail.messages.workflow_types import LAUNCH_NODE, TERMINATE_NODE

T = TypeVar("T")

STARTS_AT_ONCE = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The workflow that a claim should get."""

    claim: ClaimRef
    type: str
    summary: str
    node: str = ""
    priority: Priority = Priority.default


async def start_launches(cluster: str, created: CreateOutcome) -> None:
    """One LaunchNode per claim, in parallel, unless the step that created them has started it."""
    for group in in_parts(() if created.owned else created.claims):
        owners = [Owner(claim=claim, type=LAUNCH_NODE, summary="a node for") for claim in group]
        await asyncio.gather(*[_start(cluster, owner) for owner in owners])


async def start_terminations(
    cluster: str,
    claims: tuple[ClaimRef, ...],
    priority: Priority = Priority.default,
    nodes: Mapping[str, str] | None = None,
) -> None:
    """One TerminateNode per deleted claim, in parallel: a second or two sooner than the Caretaker's look. `nodes`: by
    the names of the claims, if they are known."""
    node_of = nodes or {}
    for group in in_parts(claims):
        owners = [
            Owner(
                claim=claim,
                type=TERMINATE_NODE,
                summary="the end of",
                node=node_of.get(claim.name, ""),
                priority=priority,
            )
            for claim in group
        ]
        await asyncio.gather(*[_start(cluster, owner) for owner in owners])


def in_parts(things: Sequence[T]) -> Iterator[Sequence[T]]:
    """Twenty at a time: a hundred starts in one workflow task may take long enough to count as a deadlock, and may be
    more than the server accepts."""
    for first in range(0, len(things), STARTS_AT_ONCE):
        yield things[first : first + STARTS_AT_ONCE]


async def _start(cluster: str, owner: Owner) -> None:
    claim = owner.claim
    try:
        await workflow.start_child_workflow(
            owner.type,
            ClaimInput(cluster=cluster, claim=claim),
            id=claim_owner_id(cluster, claim.name),
            task_queue=task_queue(cluster, "control"),
            parent_close_policy=workflow.ParentClosePolicy.ABANDON,
            search_attributes=attributes(
                cluster, pool=claim.pool, claim=claim.name, node=owner.node, phase=FIRST_PHASES[owner.type]
            ),
            static_summary=f"{owner.summary} NodeClaim {claim.name}",
            priority=owner.priority,
        )
    except WorkflowAlreadyStartedError:
        workflow.logger.info("NodeClaim %s already has its owner", claim.name)
    except FailureError as failure:
        workflow.logger.warning("%s of NodeClaim %s could not be started: %s", owner.type, claim.name, failure)
