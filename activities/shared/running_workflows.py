"""Which workflow runs under an id?

A workflow is described, which is strongly consistent, and never looked for in lists, which lag.
"""

from datetime import timedelta

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

# How long a query waits for its answer.
ANSWER_TIMEOUT = timedelta(seconds=5)


async def is_running(client: Client, workflow_id: str) -> bool:
    """Whether a workflow of that id runs now."""
    return await running_type(client, workflow_id) is not None


async def running_type(client: Client, workflow_id: str) -> str | None:
    """The type that runs under that id; None where none does."""
    try:
        found = await client.get_workflow_handle(workflow_id).describe()
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            return None
        raise
    return found.workflow_type if found.status == WorkflowExecutionStatus.RUNNING else None
