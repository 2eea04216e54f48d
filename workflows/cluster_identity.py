"""Passes the identity of the cluster from a workflow to every step and child that it asks for.

It comes in the header with which the workflow was started, and is passed on unchanged. A replay does not compare
headers.
"""

from typing import Any, NoReturn

from temporalio import workflow
from temporalio.worker import (
    ContinueAsNewInput,
    Interceptor,
    StartActivityInput,
    StartChildWorkflowInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)

from dovetail.workflows.outbound import around_requests

with workflow.unsafe.imports_passed_through():
    from dovetail.activities.identity.cluster_header import Headers, cluster_uid_in, with_header


class ClusterIdentity(Interceptor):
    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor] | None:
        """The class that wraps each workflow."""
        return around_requests(_Outbound)


class _Outbound(WorkflowOutboundInterceptor):
    def start_activity(self, input: StartActivityInput) -> workflow.ActivityHandle[Any]:
        input.headers = _handed_on(input.headers)
        return self.next.start_activity(input)

    async def start_child_workflow(self, input: StartChildWorkflowInput) -> workflow.ChildWorkflowHandle[Any, Any]:
        input.headers = _handed_on(input.headers)
        return await self.next.start_child_workflow(input)

    def continue_as_new(self, input: ContinueAsNewInput) -> NoReturn:
        input.headers = _handed_on(input.headers)
        self.next.continue_as_new(input)


def _handed_on(headers: Headers) -> Headers:
    return with_header(headers, cluster_uid_in(workflow.info().headers))
