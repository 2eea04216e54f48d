"""Sends the heartbeats of every activity, and with them how far it has come.

An interceptor of every worker. A heartbeat proves that the process lives: with a heartbeat timeout of 10 s a killed
worker costs 10 to 11 s at any step, without heartbeats the whole start-to-close timeout. A step says how far it is with
`report`; the heartbeat carries the latest text, and `temporal workflow describe` shows it. Every activity is
`async def`: a plain function would block the event loop, which sends the heartbeats, and with it the worker.

That the process lives says nothing of the step: the interceptor also notes in StepHealth when each step last had seen
everything that there is (`asleep`, `looked`), and what fails.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from temporalio import activity
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from dovetail.activities.shared.step_health import RunningStep, StepHealth
from dovetail.activities.shared.step_notices import StepNotices
from dovetail.activities.shared.temporal_errors import translate

HEARTBEAT_SECONDS = 2.5

_running: ContextVar[RunningStep | None] = ContextVar("running step", default=None)


def report(text: str) -> None:
    """Say how far the running step has come; shown with its next heartbeat."""
    step = _running.get()
    if step is not None:
        step.text = text


def looked() -> None:
    """The running step has just seen everything that there is to see."""
    step = _running.get()
    if step is not None:
        step.looked()


@contextlib.contextmanager
def asleep() -> Iterator[None]:
    """The running step has seen everything, and sleeps until there is more."""
    step = _running.get()
    if step is None:
        yield
        return
    step.sleeps += 1
    try:
        yield
    finally:
        step.sleeps -= 1
        step.looked()


def beside() -> None:
    """What follows in this task goes on beside the step: its sleeps and looks are not the step's."""
    _running.set(None)


class HeartbeatInterceptor(Interceptor):
    """Puts heartbeats around every activity."""

    def __init__(self, health: StepHealth | None = None, notices: StepNotices | None = None) -> None:
        self.health = health or StepHealth()
        self.notices = notices

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Wrap the next interceptor of the chain."""
        return _HeartbeatInbound(next, self.health, self.notices)


class _HeartbeatInbound(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, health: StepHealth, notices: StepNotices | None) -> None:
        super().__init__(next)
        self.health, self.notices = health, notices

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        info = activity.info()
        argument = input.args[0] if input.args else None
        step = self.health.begin(info.workflow_id or "", info.activity_type, argument, info.attempt)
        token = _running.set(step)
        heartbeats = asyncio.create_task(_send_heartbeats(step))
        try:
            answer = await super().execute_activity(input)
        except Exception as error:
            self._failed(step, argument, error)
            translated = translate(error)
            if translated is error:
                raise
            raise translated from error
        else:
            self.health.succeeded(step)
            return answer
        finally:
            self.health.end(step)
            heartbeats.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await heartbeats
            _running.reset(token)

    def _failed(self, step: RunningStep, argument: object, error: Exception) -> None:
        failing = self.health.failed(step, error)
        if failing is not None and self.notices is not None:
            self.notices.tell(failing, argument, error)


async def _send_heartbeats(step: RunningStep) -> None:
    while True:
        activity.heartbeat(*([step.text] if step.text else []))
        await asyncio.sleep(HEARTBEAT_SECONDS)
