"""Records a plan that a person has called off before it was carried out.

The record consists of workflows, so the plan becomes a disruption that is cancelled at its first moment: it marks
nothing, and `log`, `history` and `savings` list it like any other, with its author. A worker of any version can run it.
"""

import logging
from dataclasses import replace
from uuid import NAMESPACE_URL, uuid5

from temporalio import activity
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError

from dovetail.activities.identity.search_attributes import attributes
from dovetail.activities.shared.cancel_authors import called_off_by
from dovetail.messages.inputs import DisruptInput
from dovetail.messages.plans import DisruptionPlan, Target
from dovetail.messages.workflow_ids import disruption_id, task_queue
from dovetail.messages.workflow_types import DISRUPT_NODES
from dovetail.model.own.claim_memory import CalledOff
from dovetail.ports.objects import NodeClaims

_log = logging.getLogger(__name__)


class DroppedPlans:
    def __init__(self, cluster: str, claims: NodeClaims) -> None:
        self.cluster, self.claims = cluster, claims

    async def keep(self, plan: DisruptionPlan, target: Target, off: CalledOff) -> None:
        """Record the command of the plan that contains the target, once, however often the step is retried, and without
        replacements, since none were requested. If it cannot be recorded, the plan is dropped all the same."""
        command = next(command for command in plan.commands if target in command.targets)
        plan_id = str(uuid5(NAMESPACE_URL, f"{target.claim_uid}/{plan.seen.decided_at}"))
        by = await called_off_by(self.claims, target.claim, off.by)
        try:
            await activity.client().start_workflow(
                DISRUPT_NODES,
                DisruptInput(
                    cluster=self.cluster,
                    plan_id=plan_id,
                    command=replace(command, replacements=(), destinations=()),
                    seen=plan.seen,
                ),
                id=disruption_id(self.cluster, plan_id),
                task_queue=task_queue(self.cluster, "control"),
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                start_signal="cancel",
                start_signal_args=(off.why, by),
                search_attributes=attributes(
                    self.cluster,
                    pool=target.pool,
                    claim=target.claim,
                    node=target.node,
                    reason=command.reason,
                    phase="cancelled",
                ),
                static_summary=f"{command.reason}: {target.node}: called off before it began",
            )
        except WorkflowAlreadyStartedError:
            return
        except RPCError as error:
            _log.warning("the plan for %s that was called off could not be recorded: %s", target.node, error)
