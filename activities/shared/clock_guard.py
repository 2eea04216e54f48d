"""Takes no step while this machine's clock is far off the cluster's.

An interceptor of every worker. Deadlines are judged in the cluster's time, so nothing is decided wrongly; but the cloud
refuses signatures of another time, and what else such a machine gets wrong nobody knows. The step fails at once and is
tried again in a second, by another worker where there is one.
"""

from typing import Any

from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from dovetail.ports.clock import Clock, why_unfit
from dovetail.ports.failures import Retryable

AGAIN_SECONDS = 1.0


class ClockGuard(Interceptor):
    """Stands before every activity."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Wrap the next interceptor of the chain."""
        return _Guarded(next, self.clock)


class _Guarded(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, clock: Clock) -> None:
        super().__init__(next)
        self.clock = clock

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        unfit = why_unfit(self.clock)
        if unfit:
            raise Retryable("worker", unfit, AGAIN_SECONDS)
        return await super().execute_activity(input)
