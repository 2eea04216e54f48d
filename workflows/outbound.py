"""Puts an interceptor around what workflows ask of Temporal, and leaves alone what comes in."""

from collections.abc import Callable

from temporalio.worker import WorkflowInboundInterceptor, WorkflowOutboundInterceptor


def around_requests(
    wrap: Callable[[WorkflowOutboundInterceptor], WorkflowOutboundInterceptor],
) -> type[WorkflowInboundInterceptor]:
    """The class that Temporal makes once for each run of a workflow; `wrap` receives the next in the chain."""

    class Inbound(WorkflowInboundInterceptor):
        def init(self, outbound: WorkflowOutboundInterceptor) -> None:
            super().init(wrap(outbound))

    return Inbound
