"""An interceptor around every step, as one method."""

from abc import abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any

from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

GoOn = Callable[[ExecuteActivityInput], Awaitable[Any]]


class AroundSteps(Interceptor):
    @abstractmethod
    async def around(self, input: ExecuteActivityInput, go_on: GoOn) -> Any:
        """The answer of the step; `go_on` takes it, with whatever else stands around it."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Inbound(next, self.around)


class _Inbound(ActivityInboundInterceptor):
    def __init__(
        self, next: ActivityInboundInterceptor, around: Callable[[ExecuteActivityInput, GoOn], Awaitable[Any]]
    ) -> None:
        super().__init__(next)
        self.around = around

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        return await self.around(input, self.next.execute_activity)
