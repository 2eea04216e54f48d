"""What Temporal answers that is asked about a workflow."""

from temporalio.api.enums.v1 import WorkflowExecutionStatus
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionResponse


def running_as(workflow_type: str) -> DescribeWorkflowExecutionResponse:
    """A workflow of that type runs."""
    found = DescribeWorkflowExecutionResponse()
    found.workflow_execution_info.type.name = workflow_type
    found.workflow_execution_info.status = WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING
    return found
