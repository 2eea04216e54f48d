"""Refuses steps while this worker may not act: its clock is far off, or a Karpenter runs in the same cluster.

An interceptor of every worker. The step fails at once and is soon retried, by another worker if there is one, so that
the work continues by itself. A drain, a plan and a wait for orders run for hours: whatever they do goes by the time,
and where they ask for it they end in the same way, with all that they remember.
"""

from collections.abc import Callable
from typing import Any

from temporalio.worker import ExecuteActivityInput

from dovetail.activities.around_steps import AroundSteps, GoOn
from dovetail.ports.failures import Retryable

AGAIN_SECONDS = 2.0


def insist(why_unfit: Callable[[], str]) -> None:
    """Retryable while this worker may not act."""
    unfit = why_unfit()
    if unfit:
        raise Retryable("worker", f"no step is taken: {unfit}", AGAIN_SECONDS)


def time_of_steps(now: Callable[[], float], why_unfit: Callable[[], str]) -> Callable[[], float]:
    """The time for steps that run, none of which goes on while this worker may not act."""

    def time_now() -> float:
        insist(why_unfit)
        return now()

    return time_now


class StepGuard(AroundSteps):
    """Stands before every activity. `why_unfit` answers an empty text where the worker may act."""

    def __init__(self, why_unfit: Callable[[], str]) -> None:
        self.why_unfit = why_unfit

    async def around(self, input: ExecuteActivityInput, go_on: GoOn) -> Any:
        insist(self.why_unfit)
        return await go_on(input)
