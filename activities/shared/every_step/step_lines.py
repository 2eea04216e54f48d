"""Says in each line of the log to which workflow it belongs, while a step of it runs."""

from typing import Any

from temporalio import activity
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from dovetail.telemetry.log.line import step_fields


class StepLines(Interceptor):
    """Stands around every activity."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Inbound(next)


class _Inbound(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        identity = activity.info().workflow_id
        token = step_fields.set({"workflow_id": identity} if identity else {})
        try:
            return await super().execute_activity(input)
        finally:
            step_fields.reset(token)
