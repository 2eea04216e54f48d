"""Says in each line of the log to which workflow it belongs, while a step of it runs."""

from typing import Any

from temporalio import activity
from temporalio.worker import ExecuteActivityInput

from dovetail.activities.around_steps import AroundSteps, GoOn
from dovetail.telemetry.log.line import step_fields


class StepLines(AroundSteps):
    """Stands around every activity."""

    async def around(self, input: ExecuteActivityInput, go_on: GoOn) -> Any:
        identity = activity.info().workflow_id
        token = step_fields.set({"workflow_id": identity} if identity else {})
        try:
            return await go_on(input)
        finally:
            step_fields.reset(token)
