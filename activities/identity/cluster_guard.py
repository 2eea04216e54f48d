"""Refuses steps that another cluster's workflow asks for, or a workflow that has no business with them.

Two clusters with one name share task queues, so a worker may be handed steps that are meant for the other cluster: a
node of that name would be drained here. Such a step fails at once and is soon retried, by a worker of the right
cluster. All our workflows carry the header from their start. So a step without it is foreign, and so is one that none
of our workflows with that id would ask for (`askers.py`), or whose workflow was started by a foreign one. This guard is
the outermost interceptor, so that nothing of the step, not even the notice of its failure, reaches this cluster.
"""

from datetime import timedelta
from typing import Any, Final

from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.worker import ExecuteActivityInput

from dovetail.activities.around_steps import AroundSteps, GoOn
from dovetail.activities.identity.askers import begun_by, may_ask
from dovetail.activities.identity.cluster_header import cluster_uid_in

AGAIN: Final = timedelta(seconds=2)
ANSWER_TIMEOUT: Final = timedelta(seconds=5)


class ClusterGuard(AroundSteps):
    """Stands before every activity of a worker that serves the cluster with this name and UID."""

    def __init__(self, cluster: str, cluster_uid: str) -> None:
        self.cluster, self.cluster_uid = cluster, cluster_uid

    async def around(self, input: ExecuteActivityInput, go_on: GoOn) -> Any:
        asked = cluster_uid_in(input.headers)
        if asked != self.cluster_uid:
            whose = f"is for the cluster {asked}" if asked else "names no cluster"
            raise ApplicationError(
                f"no step is taken: it {whose}, and this worker serves {self.cluster_uid or 'a cluster without a UID'}",
                type="OtherCluster",
                next_retry_delay=AGAIN,
            )
        info, given = activity.info(), input.args[0] if input.args else None
        if not may_ask(self.cluster, info.activity_type, given, info.workflow_id or ""):
            raise ApplicationError(
                f"no step is taken: {info.workflow_id} is not the workflow that asks for {info.activity_type} so",
                type="Stranger",
                next_retry_delay=AGAIN,
            )
        decides = begun_by(self.cluster, info.activity_type, info.workflow_id or "")
        if decides is not None:
            await self._check_begun_by(decides, info)
        return await go_on(input)

    async def _check_begun_by(self, decides: str, info: activity.Info) -> None:
        """Check once which workflow started it, since that does not change."""
        asks = activity.client().get_workflow_handle(info.workflow_id or "", run_id=info.workflow_run_id)
        parent = (await asks.describe(rpc_timeout=ANSWER_TIMEOUT)).parent_id
        if parent != decides:
            raise ApplicationError(
                f"no step is taken: {info.workflow_id} was begun by {parent or 'nobody'}, and not by {decides}",
                type="Stranger",
                non_retryable=True,
            )
