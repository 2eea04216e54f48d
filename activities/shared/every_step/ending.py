"""Ends the waits that act on nothing as soon as their worker stops.

A worker that stops gives its steps a grace, so that what acts can finish. A wait that only looks would waste it: nobody
acts until another worker has the wait. So it fails at once and is retried in a moment, which adds no event to the
workflow. Cutting it off in the middle of a look loses nothing: the next look begins with everything that exists.

The interceptor stands inside that of the heartbeats, which counts such an end as a wait and not as a failure.
"""

import asyncio
from typing import Any, Final

from temporalio import activity
from temporalio.worker import ExecuteActivityInput

from dovetail.activities.around_steps import AroundSteps, GoOn
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


class EndingWaits(AroundSteps):
    """Stands before every activity."""

    async def around(self, input: ExecuteActivityInput, go_on: GoOn) -> Any:
        if activity.info().activity_type not in PURE_WAITS:
            return await go_on(input)
        stops = asyncio.create_task(activity.wait_for_worker_shutdown())
        step = asyncio.ensure_future(go_on(input))
        try:
            await asyncio.wait([step, stops], return_when=asyncio.FIRST_COMPLETED)
            if step.done():
                return step.result()
            raise ended_by_stop()
        finally:
            for task in (step, stops):
                task.cancel()
            await asyncio.gather(step, stops, return_exceptions=True)
