"""Which workflow runs under an id?

A workflow is described, which is strongly consistent, and never looked for in lists, which lag.
"""

from datetime import timedelta
from typing import Final

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import WorkflowExecutionStatus
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

RUNNING: Final = WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING

# How long a query waits for its answer.
ANSWER_TIMEOUT = timedelta(seconds=5)


async def is_running(client: Client, workflow_id: str) -> bool:
    return await running_type(client, workflow_id) is not None


async def running_type(client: Client, workflow_id: str) -> str | None:
    """The type that runs under that id; None where none does.

    The service itself is asked: the description that the SDK makes of an answer costs as much as the call.
    """
    execution = WorkflowExecution(workflow_id=workflow_id)
    request = DescribeWorkflowExecutionRequest(namespace=client.namespace, execution=execution)
    try:
        found = await client.workflow_service.describe_workflow_execution(request, retry=True)
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            return None
        raise
    info = found.workflow_execution_info
    return info.type.name if info.status == RUNNING else None
