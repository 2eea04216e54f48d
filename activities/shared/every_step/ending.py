"""Ends the waits that act on nothing as soon as their worker is to stop.

A worker that stops gives its steps their grace, so that what acts comes to its end. A wait that only looks would use it
up for nothing: nobody acts until another worker has it. It fails at once and is tried again in a moment, which costs
the workflow no event. A cut in the middle of a look loses nothing: the next one begins with everything that there is.

The interceptor stands inside the heartbeats', which say that the step only looks again later.
"""

import asyncio
from typing import Any, Final

from temporalio import activity
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from dovetail.activities.shared.every_step.temporal_errors import NotYet

# The steps that write nothing and take nothing from anybody. Upkeep writes, and the reader of warnings takes messages
# from a queue: they end by themselves, or within their grace.
PURE_WAITS: Final = frozenset(
    {
        "await_provisioning_plan",
        "await_disruption_plan",
        "await_orders",
        "await_marked",
        "await_ready",
        "await_gone",
    }
)

AGAIN_SECONDS: Final = 0.1


def ended_by_stop() -> NotYet:
    return NotYet("its worker stops, and another one goes on", AGAIN_SECONDS)


class EndingWaits(Interceptor):
    """Stands before every activity."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Wrap the next interceptor of the chain."""
        return _Ending(next)


class _Ending(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        if activity.info().activity_type not in PURE_WAITS:
            return await super().execute_activity(input)
        stops = asyncio.create_task(activity.wait_for_worker_shutdown())
        step = asyncio.create_task(super().execute_activity(input))
        try:
            await asyncio.wait([step, stops], return_when=asyncio.FIRST_COMPLETED)
            if step.done():
                return step.result()
            raise ended_by_stop()
        finally:
            for task in (step, stops):
                task.cancel()
            await asyncio.gather(step, stops, return_exceptions=True)
