"""Starts the workflow that a claim needs, from the step that causes the need.

The id is the lock: a workflow that already runs under it is the wanted one, or about to become it. If it is neither, or
the start fails, the Caretaker finds the claim without its owner. A child workflow would cost two actions instead of
one, and would report its start and end to its parent.
"""

import logging

from temporalio import activity
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError

from dovetail.activities.identity.search_attributes import FIRST_PHASES, attributes
from dovetail.messages.inputs import ClaimInput
from dovetail.messages.subjects import ClaimRef
from dovetail.messages.workflow_ids import claim_owner_id, task_queue

_log = logging.getLogger(__name__)


class OwnerStarts:
    def __init__(self, cluster: str) -> None:
        self.cluster = cluster

    async def start(self, kind: str, claim: ClaimRef, node: str = "") -> None:
        """Start it; WorkflowAlreadyStartedError where one runs."""
        await activity.client().start_workflow(
            kind,
            ClaimInput(cluster=self.cluster, claim=claim),
            id=claim_owner_id(self.cluster, claim.name),
            task_queue=task_queue(self.cluster, "control"),
            id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            search_attributes=attributes(
                self.cluster, pool=claim.pool, claim=claim.name, node=node, phase=FIRST_PHASES.get(kind, "")
            ),
            static_summary=f"{kind} of NodeClaim {claim.name}",
        )

    async def try_to_start(self, kind: str, claim: ClaimRef, node: str = "") -> None:
        """Start it at the end of a step's own work: if that fails, it is left to the Caretaker."""
        try:
            await self.start(kind, claim, node)
        except WorkflowAlreadyStartedError:
            _log.info("NodeClaim %s already has its owner", claim.name)
        except RPCError as error:
            _log.warning("%s of NodeClaim %s could not be started: %s", kind, claim.name, error)
