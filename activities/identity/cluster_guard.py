"""Takes no step that was asked for by another cluster's workflow, or by one that has no business with it.

Two clusters of one name share task queues, so a worker may be handed what is meant for the other: a node of that name
would be drained here. The step fails at once and is tried again soon, by a worker of the right cluster. Every workflow
of ours has the header since it was started, so a step without one comes from a stranger, and so does one that none of
our workflows asks for under the id that it has (`askers.py`), or whose workflow a stranger has begun. This guard stands
outside all others, so that nothing of the step, not even the notice of its failure, reaches this cluster.
"""

from datetime import timedelta
from typing import Any, Final

from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from dovetail.activities.identity.askers import BEGUN_BY, may_ask
from dovetail.activities.identity.cluster_header import cluster_uid_in

AGAIN: Final = timedelta(seconds=2)
ANSWER_TIMEOUT: Final = timedelta(seconds=5)


class ClusterGuard(Interceptor):
    """Stands before every activity of a worker that serves the cluster of this name and UID."""

    def __init__(self, cluster: str, cluster_uid: str) -> None:
        self.cluster, self.cluster_uid = cluster, cluster_uid

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Wrap the next interceptor of the chain."""
        return _Guarded(next, self.cluster, self.cluster_uid)


class _Guarded(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, cluster: str, cluster_uid: str) -> None:
        super().__init__(next)
        self.cluster, self.cluster_uid = cluster, cluster_uid

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
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
        decides = BEGUN_BY.get(info.activity_type)
        if decides is not None:
            await self._check_begun_by(decides(self.cluster), info)
        return await super().execute_activity(input)

    async def _check_begun_by(self, decides: str, info: activity.Info) -> None:
        """Check once by whom the workflow was begun, which does not change."""
        asks = activity.client().get_workflow_handle(info.workflow_id or "", run_id=info.workflow_run_id)
        begun_by = (await asks.describe(rpc_timeout=ANSWER_TIMEOUT)).parent_id
        if begun_by != decides:
            raise ApplicationError(
                f"no step is taken: {info.workflow_id} was begun by {begun_by or 'nobody'}, and not by {decides}",
                type="Stranger",
                non_retryable=True,
            )
